"""One tuned kernel against every peer, interleaved in one process: peer, ours, next peer, ours, … over many rounds.

A process of its own (`compare`), so that libraries find their thread counts in the environment, and a library that dies
takes nothing with it. Ratios are medians of ratios of neighbours in time, with quartiles; above 1 ours is faster.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from typing import Any

from autosched.ir.program import Program
from benchmarks.common import cpus
from benchmarks.common.sampling import Times, quartiles, repeats_of, time_calls
from benchmarks.peers.task import Array

LIMIT_S = 900.0
PEAK_EVERY = 4
"""Rounds between two samples of the peak, which take longer than those of the kernels."""
SHOWN_ROUNDS = 1
"""Rounds in which a peer takes part that is shown only: reference code takes seconds a call."""


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
    """`peak_ops`: measured operations a second; `bound_s`: measured seconds of moving the least bytes, the best pass of
    a plain loop; `loop_s` and `of_loop`: that loop as a peer, in turn with ours (None in results of before); `huge`:
    which shares of our largest buffer and of the loop's lie in huge pages; `wrong`: peers whose numbers differ from
    ours, and how; `within`: what our kernel checks, within which everybody's data are drawn, and `outside_s`: its
    seconds on data of the whole range, where what stands by runs."""

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
    loop_s: Times | None = None
    of_loop: Times | None = None
    huge: tuple[float | None, float | None] = (None, None)
    within: str = ""
    outside_s: Times | None = None

    @property
    def share(self) -> tuple[float, str]:
        """Of the nearer physical limit, and which: `peak` or `bandwidth`."""
        compute = self.operations / self.peak_ops / self.seconds[1] if self.peak_ops else 0.0
        memory = self.bound_s / self.seconds[1]
        return (compute, "peak") if compute >= memory else (memory, "bandwidth")

    @property
    def held(self) -> tuple[float, str]:
        """The share that a target is held against: of the bandwidth that is there while we run, so in turn with the
        loop where that was measured. Its best pass is the luckiest of a hundred, in a last cache that others share."""
        share, limit = self.share
        return (self.of_loop[1], limit) if limit == "bandwidth" and self.of_loop else (share, limit)


def compare(bout: Bout) -> Outcome | str:
    """The outcome, or why there is none."""
    found = ask("benchmarks.common.contest", asdict(bout), bout.threads)
    return found if isinstance(found, str) else from_json(found)


def ask(module: str, question: dict[str, Any], threads: int, limit_s: float = LIMIT_S) -> dict[str, Any] | str:
    """What `python -m module` answers to a JSON object, in a process with so many threads; or why it does not."""
    count = str(threads)
    limits = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), count)
    # Idle threads of a peer must sleep, or they hold a core while the next one is timed; but not between two calls of
    # its own, or each would wait for them to wake. So they spin for about a millisecond, which SETTLE_S outlasts.
    limits |= {"GOMP_SPINCOUNT": "30000", "KMP_BLOCKTIME": "1", "OPENBLAS_THREAD_TIMEOUT": "22"}
    limits |= cpus.places(cpus.chosen(threads))
    command = [sys.executable, "-m", module]
    try:
        done = subprocess.run(
            command, input=json.dumps(question), capture_output=True, text=True, env=os.environ | limits,
            check=False, timeout=limit_s,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"the comparison did not end within {limit_s:.0f} s"
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


TUPLES = ("seconds", "loop_s", "of_loop", "huge", "outside_s")


def from_json(data: dict[str, Any]) -> Outcome:
    against = [Against(**a | {"seconds": tuple(a["seconds"]), "ratio": tuple(a["ratio"])}) for a in data["against"]]
    times = {k: tuple(data[k]) for k in TUPLES if data.get(k) is not None}
    return Outcome(**data | times | {"against": against})


def _compare(bout: Bout) -> Outcome:
    from autosched.machine.detect import cpu_model
    own = cpus.chosen(bout.threads)
    cpus.hold(own)  # before torch and others are loaded, which start threads
    from benchmarks import peers
    from benchmarks.common.kernel import load_kernel
    from benchmarks.common.pages import huge_share
    from benchmarks.common.peak import Peak
    from benchmarks.common.stream import KINDS, Stream
    from benchmarks.common.work import work_of

    contenders: list[peers.Contender] = []
    notes: dict[str, str] = {}

    def meet(program: Program, arrays: dict[str, Array]) -> None:
        task = peers.Task(program, {n: arrays[n] for n in program.inputs}, own, bout.packed)
        found, missing = peers.contenders(task)
        contenders.extend(found)
        notes.update(missing)

    kernel = load_kernel(bout.store, bout.study, meet)
    program, ours = kernel.program, kernel.run
    cpus.place(own)
    ours()
    wrong: dict[str, str] = {}
    fair = []
    for contender in contenders:
        contender.run()
        if differs := contender.difference(kernel.arrays[program.outputs[0]]):
            wrong[contender.name] = differs
        else:
            fair.append(contender)
    work = work_of(program)
    peak, stream = Peak(program, bout.threads), Stream(work.bytes_in, work.bytes_out, bout.threads)
    repeats = {c.name: repeats_of(c.run) for c in fair}
    mine = repeats_of(ours)
    samples: dict[str, list[tuple[float, float]]] = {c.name: [] for c in fair}
    loops: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    standing_by: list[float] = []
    theirs = repeats_of(kernel.outside) if kernel.outside else 0
    for number in range(bout.rounds):
        now = [c for c in fair if not c.why_not or number < SHOWN_ROUNDS]
        for c in now if number % 2 else now[::-1]:
            samples[c.name].append((time_calls(c.run, repeats[c.name]), time_calls(ours, mine)))
        if kernel.outside:
            standing_by.append(time_calls(kernel.outside, theirs))
        if number % PEAK_EVERY == 0:
            with cpus.everywhere(own):
                peak.sample()
        for kind, pairs in loops.items():
            pairs.append((stream.sample(kind), time_calls(ours, mine)))
    in_turn = min(loops.values(), key=lambda pairs: quartiles([s for s, _ in pairs])[1])
    against = [
        Against(c.name, c.family, quartiles([p for p, _ in samples[c.name]]),
                quartiles([p / o for p, o in samples[c.name]]), c.why_not)
        for c in fair
    ]  # fmt: skip
    return Outcome(
        quartiles([o for s in (*samples.values(), *loops.values()) for _, o in s]), against, work.operations,
        work.bytes_in + work.bytes_out, peak.operations_per_s, peak.name, stream.best_s, cpu_model(), peers.versions(),
        notes, wrong, "", quartiles([s for s, _ in in_turn]), quartiles([s / o for s, o in in_turn]),
        (huge_share(kernel.largest), huge_share(max(stream.memory[0], key=len))),
        ", ".join(kernel.within), quartiles(standing_by) if standing_by else None,
    )  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(asdict(_compare(Bout(**json.load(sys.stdin))))))
