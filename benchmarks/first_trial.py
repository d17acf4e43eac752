"""How long a search takes until its first trial: matching, layout, expected outputs, building, checking.

    python -m benchmarks.first_trial                                 # everything on the CPU and the simulator
    python -m benchmarks.first_trial --only 'swiglu*' --on cpu cuda  # some cases; `cuda` times what precedes the GPU

Each case runs in a process of its own. Processor seconds count its children too, and are what to compare where others
use the machine; `wall` is from the call of `tune` (interpreter and imports before it take about a second). `cuda`
needs no GPU: spaces of an H100 are laid out and the expected outputs computed as that device does, nothing is run.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from autosched.ir.program import Program
from autosched.ir.workload import workload_names

LIMIT_S = 10.0
"""What is asked, on two cores."""
PROGRAMS = Path(__file__).parent / "programs"
LARGE = (
    "matmul m=4096 n=4096 k=4096", "matmul m=16 n=14336 k=4096", "batch_matmul batch=96 m=512 n=512 k=64",
    "gemv m=16384 k=8192", "conv1d n=32 w=4096 ci=256 co=256", "conv2d n=16 h=56 w=56 ci=256 co=256",
    "conv2d_nchw n=16 h=56 w=56 ci=256 co=256", "conv2d_bias_relu n=32 h=28 w=28 ci=256 co=256",
    "depthwise_conv2d n=32 h=112 w=112 c=64", "conv3d d=32 h=56 w=56 ci=64 co=64",
    "conv2d_transposed n=16 h=56 w=56 ci=128 co=128", "softmax m=8192 n=2048", "layer_norm m=8192 n=4096",
    "reduce m=16384 n=8192", "reduce m=16384 n=8192 over=columns", "elementwise m=8192 n=8192 op=gelu",
    "matmul_bias_gelu m=2048 n=8192 k=2048", "matmul_requant m=2048 n=4096 k=4096",
)  # fmt: skip
OWN = ("attention.py:attention", "attention.py:attention h=16 n=2048", "attention.py:causal", "attention.py:flash",
       "feed_forward.py:swiglu", "feed_forward.py:swiglu m=4096 k=4096 n=11008", "feed_forward.py:mlp",
       "feed_forward.py:mlp m=4096 k=4096 n=16384", "feed_forward.py:weights4")  # fmt: skip
PLACES = ("cpu", "simulator", "cuda")


def cases() -> tuple[str, ...]:
    """Names of the cases: a workload or a file's function, and sizes."""
    return (*workload_names(), *LARGE, *OWN)


@dataclass(frozen=True)
class First:
    """`cpu_s` are processor seconds with all children, `main_s` without; `steps` wall seconds by phase. `error` says
    why there was no trial."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    main_s: float = 0.0
    steps: dict[str, float] = field(default_factory=dict)
    status: str = ""
    error: str = ""

    @property
    def before_s(self) -> float:
        """Seconds without those in which the first candidate is checked and timed."""
        return self.wall_s - self.steps.get("its own", 0.0)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.first_trial", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--only", nargs="*", default=["*"], metavar="PATTERN")
    parser.add_argument("--on", nargs="*", default=["cpu", "simulator"], choices=PLACES)
    parser.add_argument("--limit", type=float, default=180.0, help="seconds for a case")
    parser.add_argument("--profile", action="store_true", help="print where the main process spends its time")
    parser.add_argument("--one", nargs=2, metavar=("CASE", "WHERE"), help=argparse.SUPPRESS)
    parser.add_argument("-o", "--out", type=Path, metavar="FILE.json")
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(asdict(_profiled(*options.one) if options.profile else first(*options.one))))
        return 0
    found: dict[str, First] = {}
    chosen = [case for case in cases() if any(fnmatch(case, pattern) for pattern in options.only)]
    for case in chosen:
        for where in options.on:
            one = _apart(case, where, options.limit, options.profile)
            found[f"{case} on {where}"] = one
            print(line(case, where, one), flush=True)
    over = [name for name, one in found.items() if one.error or one.before_s > LIMIT_S]
    count = f"{len(found) - len(over)} of {len(found)}"
    print(f"{count} had their first trial within {LIMIT_S:g} s" + "".join(f"\n  not: {n}" for n in over))
    if options.out:
        told = {name: asdict(one) for name, one in found.items()}
        options.out.write_text(json.dumps({"schema": "autosched/benchmarks/first_trial/1", "cases": told}, indent=1))
    return 0


def line(case: str, where: str, one: First) -> str:
    """One line of the table."""
    spent = ", ".join(f"{name} {s:.1f}" for name, s in one.steps.items() if s >= 0.05)
    wall = f"{one.before_s:6.1f} s ({one.wall_s:.1f} with it)"
    said = one.error or f"{wall}, processor {one.cpu_s:6.1f} s ({one.main_s:.1f} here): {spent}; {one.status}"
    return f"{case:<48} {where:<10} {said}"


def program(case: str) -> Program:
    """The program that a case names."""
    from autosched.ir.resolve import resolve

    name, *pairs = case.split()
    sizes = {key: int(value) if value.isdigit() else value for key, _, value in (pair.partition("=") for pair in pairs)}
    return resolve(str(PROGRAMS / name) if ".py:" in name else name, sizes)


def first(case: str, where: str) -> First:
    """Tune until the first trial, in this process."""
    from autosched.machine.catalogue import load_target

    wanted = program(case)
    if where == "cuda":
        return _timed(lambda note: _before_the_card(wanted, note))
    from autosched import api

    target = api.target("native") if where == "cpu" else load_target("x86-avx512")
    return _timed(lambda note: _tuned(wanted, target, where, note))


def _timed(work: Callable[[dict[str, float]], str]) -> First:
    steps: dict[str, float] = {}
    before, clock = _spent(), time.perf_counter()
    status = work(steps)
    wall_s, after = time.perf_counter() - clock, _spent()
    return First(wall_s, sum(after) - sum(before), after[0] - before[0], steps, status)


def _spent() -> tuple[float, float]:
    """Processor seconds of this process, and of its children that have ended."""
    own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime, ended.ru_utime + ended.ru_stime


class _Enough(BaseException):
    pass


def _tuned(wanted: Program, target: Any, where: str, steps: dict[str, float]) -> str:
    from autosched.search import events
    from autosched.search.request import TuneRequest
    from autosched.search.tuning.tune import tune

    clock, said = time.perf_counter(), ""

    def listen(event: events.Event) -> None:
        nonlocal said
        if isinstance(event, events.Proposed):
            steps.setdefault("proposed", time.perf_counter() - clock)
        if isinstance(event, events.Matched | events.StudyOpened | events.Scored | events.TrialDone):
            name = {"Matched": "match", "StudyOpened": "study"}.get(type(event).__name__, type(event).__name__.lower())
            steps[name] = time.perf_counter() - clock
        if isinstance(event, events.TrialDone):
            steps["its own"] = sum(event.trial.measurement.costs_s.get(name, 0.0) for name in ("check", "time"))
            said = event.trial.measurement.status + (
                f" ({event.trial.measurement.message[:80]})" if event.trial.measurement.message else ""
            )
            raise _Enough

    try:
        tune(TuneRequest(wanted, target, device=where), listen)
    except _Enough:
        steps["closed"] = time.perf_counter() - clock
    return said


def _before_the_card(wanted: Program, steps: dict[str, float]) -> str:
    from autosched.device.correctness import oracle
    from autosched.device.correctness.sampled import is_large, sampled
    from autosched.machine.catalogue import load_target
    from autosched.search.request import TuneRequest
    from autosched.search.tuning.tune import prepare

    clock = time.perf_counter()
    tuning = prepare(TuneRequest(wanted, load_target("nvidia-h100"), device="simulator"), warm=True)
    steps["laid out"] = time.perf_counter() - clock
    tuning.study.ask(8)
    steps["proposed"] = time.perf_counter() - clock
    large = is_large(wanted)
    _ = sampled(wanted, 0) if large else oracle.compute(wanted, 0)
    steps["expected"] = time.perf_counter() - clock
    return "boxes" if large else "whole"


def _profiled(case: str, where: str) -> First:
    import cProfile
    import pstats

    profile = cProfile.Profile(time.process_time)
    found = profile.runcall(first, case, where)
    pstats.Stats(profile, stream=sys.stderr).sort_stats("cumulative").print_stats(60)
    return found


def _apart(case: str, where: str, limit_s: float, profile: bool) -> First:
    command = [sys.executable, "-m", "benchmarks.first_trial", "--one", case, where, *(["--profile"] * profile)]
    errors = None if profile else subprocess.PIPE
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return First(wall_s=limit_s, error=f"no trial within {limit_s:g} s")
    if done.returncode:
        return First(error=(done.stderr or "failed").strip().splitlines()[-1])
    return First(**json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    raise SystemExit(main())
