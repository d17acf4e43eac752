"""One tuned kernel against every peer, interleaved in one process: peer, ours, next peer, ours, … over many rounds.

A process of its own (`compare`), so that libraries find their thread counts in the environment, and a library that dies
takes nothing with it. Ratios are medians of ratios of neighbours in time, with quartiles; above 1 ours is faster.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

SAMPLE_S = 1e-2
"""Calls of one sample last this long together, so that what the other side left in the caches is soon gone."""
LIMIT_S = 900.0
Times = tuple[float, float, float]


@dataclass(frozen=True)
class Bout:
    """What to compare: a stored study's best, against peers on the same data."""

    store: str
    study: str
    packed: bool
    threads: int
    rounds: int


@dataclass(frozen=True)
class Against:
    """One peer: quartiles of its seconds a call and of peer / ours. `why_not`: it is shown, but is no anchor."""

    name: str
    family: str
    seconds: Times
    ratio: Times
    why_not: str = ""


@dataclass(frozen=True)
class Outcome:
    """`peak_ops`: measured operations a second; `bound_s`: measured seconds of moving the least bytes; `wrong`: peers
    whose numbers differ from ours, and how."""

    seconds: Times
    against: list[Against]
    operations: float
    bytes_moved: int
    peak_ops: float
    peak_name: str
    bound_s: float
    cpu: str
    versions: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    error: str = ""

    @property
    def share(self) -> tuple[float, str]:
        """Of the nearer physical limit, and which: `peak` or `bandwidth`."""
        compute = self.operations / self.peak_ops / self.seconds[1] if self.peak_ops else 0.0
        memory = self.bound_s / self.seconds[1]
        return (compute, "peak") if compute >= memory else (memory, "bandwidth")


def compare(bout: Bout) -> Outcome | str:
    """The outcome, or why there is none."""
    threads = str(bout.threads)
    limits = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), threads)
    # Idle threads of a peer must sleep, or they hold a core while the next one is timed.
    limits |= {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0"}
    limits |= {"OPENBLAS_THREAD_TIMEOUT": "4"}
    command = [sys.executable, "-m", "benchmarks.contest"]
    try:
        done = subprocess.run(
            command, input=json.dumps(asdict(bout)), capture_output=True, text=True, env=os.environ | limits,
            check=False, timeout=LIMIT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"the comparison did not end within {LIMIT_S:.0f} s"
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return from_json(json.loads(done.stdout.splitlines()[-1]))


def from_json(data: dict[str, Any]) -> Outcome:
    against = [Against(**a | {"seconds": tuple(a["seconds"]), "ratio": tuple(a["ratio"])}) for a in data["against"]]
    return Outcome(**data | {"against": against, "seconds": tuple(data["seconds"])})


def _compare(bout: Bout) -> Outcome:
    import numpy as np

    from autosched.cli.stored import kernel_of, picked
    from autosched.codegen.callable import CompiledKernel, aligned
    from autosched.codegen.llvm.jit import compile_object, load
    from autosched.codegen.llvm.module import print_llvm
    from autosched.ir import parse, random_inputs
    from autosched.machine.detect import cpu_model, usable_cpus
    from autosched.store.sqlite import SqliteStore
    from benchmarks import peers
    from benchmarks.peak import Peak
    from benchmarks.stream import Stream
    from benchmarks.work import work_of

    os.sched_setaffinity(0, set(usable_cpus()[-bout.threads :]))
    with SqliteStore(bout.store, read_only=True) as opened:
        record, trials = opened.study(bout.study), opened.trials(bout.study)
    lowered = kernel_of(record, picked(record, trials, None))
    program = parse(record.program, filename=record.name)
    arrays = random_inputs(program, np.random.default_rng(7))
    held = {n: aligned(t.extents, t.dtype) for n, t in program.tensors.items() if n in program.parameters}
    for n in program.inputs:
        held[n][...] = arrays[n]
    task = peers.Task(program, {n: held[n] for n in program.inputs}, bout.threads, bout.packed)
    contenders, notes = peers.contenders(task)
    versions = peers.versions()
    # After the peers: torch brings an OpenMP runtime that the others must share.
    kernel = CompiledKernel(lowered, load(compile_object(print_llvm(lowered))))
    packed = kernel.pack({n: held[n] for n in kernel.constants})
    pointers, raw = kernel.pointers(held, packed), kernel.run_raw

    def ours() -> None:  # what a caller from C would pass: no checks of arguments in the call
        raw(*pointers)

    ours()
    wrong: dict[str, str] = {}
    fair = []
    for contender in contenders:
        contender.run()
        if differs := contender.difference(held[program.outputs[0]]):
            wrong[contender.name] = differs
        else:
            fair.append(contender)
    work = work_of(program)
    peak, stream = Peak(program, bout.threads), Stream(work.bytes_in, work.bytes_out, bout.threads)
    repeats = {c.name: _repeats(c.run) for c in fair}
    mine = _repeats(ours)
    samples: dict[str, list[tuple[float, float]]] = {c.name: [] for c in fair}
    alone: list[float] = []
    for number in range(bout.rounds):
        for c in fair if number % 2 else fair[::-1]:
            samples[c.name].append((_time(c.run, repeats[c.name]), _time(ours, mine)))
        if not fair:
            alone.append(_time(ours, mine))
        if number % 4 == 0:
            peak.sample()
        stream.sample()
    against = [
        Against(c.name, c.family, _quartiles([p for p, _ in samples[c.name]]),
                _quartiles([p / o for p, o in samples[c.name]]), c.why_not)
        for c in fair
    ]  # fmt: skip
    return Outcome(
        _quartiles([o for s in samples.values() for _, o in s] + alone), against, work.operations,
        work.bytes_in + work.bytes_out, peak.operations_per_s, peak.name, stream.best_s, cpu_model(), versions, notes,
        wrong,
    )  # fmt: skip


def _quartiles(samples: list[float]) -> Times:
    if len(samples) < 2:
        return samples[0], samples[0], samples[0]
    low, middle, high = statistics.quantiles(samples, n=4, method="inclusive")
    return low, middle, high


def _repeats(call: Callable[[], Any]) -> int:
    once = min(_time(call, 1) for _ in range(3))
    return max(1, int(SAMPLE_S / once))


def _time(call: Callable[[], Any], repeats: int) -> float:
    call()  # its own data comes back into the caches, and idle threads of the other side fall asleep
    started = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - started) / repeats


if __name__ == "__main__":
    print(json.dumps(asdict(_compare(Bout(**json.load(sys.stdin))))))
