"""Tune one case from a standing start, then time everything interleaved: ours, each peer, the peak loop, ours …"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.cases import CASES, Case

SAMPLE_S = 1e-2
"""Calls of one round last this long together, so that what the peers leave in the caches is soon gone."""


@dataclass
class CaseResult:
    """Times are medians in seconds with their quartiles; `peak_ops` is the measured peak of all threads in operations a
    second, taken in the same run; `wall_s` is the whole `autosched tune` command, interpreter start included; `costs_s`
    splits what candidates took into build, check and time, summed over all trials."""

    case: str
    threads: int
    cpu: str
    operations: float
    wall_s: float
    trials: int
    seconds: dict[str, float]
    costs_s: dict[str, float]
    schedule: dict[str, Any]
    times: dict[str, tuple[float, float, float]]
    peak_ops: float
    intrinsic: str
    ratios: dict[str, float] = field(default_factory=dict)

    @property
    def share(self) -> float:
        return self.operations / self.times["ours"][1] / self.peak_ops

    @property
    def candidates_per_s(self) -> float:
        """Over the whole wall time: start-up, matching, scoring and the final round included."""
        return self.trials / self.wall_s

    def line(self) -> str:
        low, mid, high = (self.operations / t / 1e9 for t in reversed(self.times["ours"]))
        parts = {k: self.costs_s.get(k, 0.0) for k in ("build", "check", "time")}
        parts["rest"] = self.wall_s - sum(parts.values())
        split = ", ".join(f"{k} {v:.1f}" for k, v in parts.items())
        target = CASES[self.case]
        peers = ", ".join(f"{r:.3f}x of {name}" for name, r in self.ratios.items())
        return (
            f"{self.case} ({self.threads} thread): {mid:.1f} GOP/s [{low:.1f}, {high:.1f}] = {self.share:.1%} of "
            f"the peak {self.peak_ops / 1e9:.0f} ({self.intrinsic}; asked {target.target_share:.0%}); "
            f"{peers or 'no peer'}\n"
            f"  {self.trials} trials in {self.wall_s:.1f} s of wall time (asked {target.limit_s:.0f}); "
            f"{self.candidates_per_s:.1f} candidates/s; seconds: {split} (match {self.seconds['match']:.1f})"
        )

    def row(self) -> str:
        peers = "<br>".join(f"{r:.3f}x {name}" for name, r in self.ratios.items())
        speed = self.operations / self.times["ours"][1] / 1e9
        return (
            f"| {self.case} | {self.threads} | {speed:.1f} GOP/s | {self.share:.1%} | {peers} "
            f"| {self.trials} trials, {self.wall_s:.1f} s | {self.candidates_per_s:.1f} |"
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"share": self.share, "candidates_per_s": self.candidates_per_s}


def run_case(case: Case, threads: int, trials: int, rounds: int) -> CaseResult:
    """Tune in a process of its own, with an empty store and cache, then compare in another."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "study.db"
        defines = [x for k, v in case.sizes.items() for x in ("-D", f"{k}={v}")]
        command = [sys.executable, "-m", "autosched", "tune", case.workload, *defines, "-n", str(trials)]
        command += ["--threads", str(threads), "--store", str(store), "--json", "-q"]
        environment = os.environ | {"XDG_CACHE_HOME": folder}
        started = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        wall_s = time.perf_counter() - started
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}\nexit status {done.returncode}\n{done.stderr}")
        tuned = json.loads(done.stdout)
        limits = {k: str(threads) for k in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        # Idle threads of a peer must sleep, or they hold a core while the next one is timed.
        limits |= {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0", "OPENBLAS_THREAD_TIMEOUT": "4"}
        compared = subprocess.run(
            [
                sys.executable,
                "-m",
                "benchmarks.measure",
                case.name,
                str(threads),
                str(store),
                tuned["study"],
                str(rounds),
            ],
            capture_output=True,
            text=True,
            env=environment | limits,
            check=False,
        )
        if compared.returncode != 0:
            raise SystemExit(compared.stderr)
        found = json.loads(compared.stdout)
    times = {name: tuple(t) for name, t in found["times"].items()}
    return CaseResult(
        case.name,
        threads,
        found["cpu"],
        found["operations"],
        wall_s,
        tuned["trials"]["done"],
        tuned["seconds"],
        found["costs_s"],
        tuned["best"]["schedule"],
        times,  # type: ignore[arg-type]
        found["peak_ops"],
        found["intrinsic"],
        found["ratios"],
    )


def compare(case: Case, threads: int, store: Path, study: str, rounds: int) -> dict[str, Any]:
    """Interleaved timing in this process. Ratios are medians of per-round ratios, peer over ours (above 1: faster)."""
    import numpy as np

    from autosched import api
    from autosched.cli.stored import kernel_of, picked
    from autosched.codegen.callable import CompiledKernel, aligned
    from autosched.codegen.llvm.compile import compile_object
    from autosched.codegen.llvm.jit import load
    from autosched.codegen.llvm.module import print_llvm
    from autosched.ir import random_inputs
    from autosched.ir.work import operations
    from autosched.machine.detect import cpu_model, detect, usable_cpus
    from autosched.store.sqlite import SqliteStore

    os.sched_setaffinity(0, set(usable_cpus()[-threads:]))
    with SqliteStore(str(store), read_only=True) as opened:
        record, trials = opened.study(study), opened.trials(study)
    costs: dict[str, float] = {}
    for trial in trials:
        for kind, spent in trial.measurement.costs_s.items():
            costs[kind] = costs.get(kind, 0.0) + spent
    lowered = kernel_of(record, picked(record, trials, None))
    kernel = CompiledKernel(lowered, load(compile_object(print_llvm(lowered))))
    program = case.program()
    arrays = random_inputs(program, np.random.default_rng(7))
    held = {n: aligned(t.extents, t.dtype) for n, t in program.tensors.items() if n in program.parameters}
    for n in program.inputs:
        held[n][...] = arrays[n]
    packed = kernel.pack({n: held[n] for n in kernel.constants})
    pointers = kernel.pointers(held, packed)  # what a caller from C would pass: no checks of arguments in the call
    calls: dict[str, Callable[[], Any]] = {"ours": lambda: kernel.run_raw(*pointers)}
    for name, make in case.peers.items():
        call = make(arrays, threads)
        if call is not None:
            calls[name] = call
    intrinsic = api.catalogue().find(lowered.intrinsics[0].name)
    peak = Peak(intrinsic, detect(), threads)
    samples: dict[str, list[float]] = {name: [] for name in calls}
    peaks: list[float] = []
    repeats = {name: _repeats(call) for name, call in calls.items()}
    for _ in range(rounds):
        for name, call in calls.items():
            samples[name].append(_time(call, repeats[name]))
        peaks.append(peak.operations_per_s())
    ratios = {
        name: statistics.median(p / o for p, o in zip(samples[name], samples["ours"], strict=True))
        for name in calls
        if name != "ours"
    }
    return {
        "cpu": cpu_model(),
        "costs_s": costs,
        "operations": operations(program),
        "times": {n: statistics.quantiles(s, n=4) for n, s in samples.items()},
        "peak_ops": statistics.median(peaks),
        "intrinsic": intrinsic.name,
        "ratios": ratios,
    }


class Peak:
    """The issue loop of one intrinsic: enough independent accumulators, nothing else."""

    def __init__(self, intrinsic: Any, target: Any, threads: int) -> None:
        from autosched.machine.peaks import measure_peaks

        self._measure = lambda: measure_peaks(target, [intrinsic], bandwidth=False)
        self._intrinsic, self._threads = intrinsic, threads

    def operations_per_s(self) -> float:
        """Of all threads: those of one core, times the number of cores used."""
        peaks = self._measure()
        return peaks.issues_per_s(self._intrinsic.name) * self._intrinsic.operations * self._threads


def _repeats(call: Callable[[], Any]) -> int:
    call()
    once = min(_time(call, 1) for _ in range(3))
    return max(1, int(SAMPLE_S / once))


def _time(call: Callable[[], Any], repeats: int) -> float:
    started = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - started) / repeats


if __name__ == "__main__":
    name, threads, store, study, rounds = sys.argv[1:]
    print(json.dumps(compare(CASES[name], int(threads), Path(store), study, int(rounds))))
