"""Tune one program in a process of its own, from a standing start, and tell how the time went.

    echo '{"workload": "matmul", "sizes": {"m": 64}}' | python -m benchmarks.common.tuning

Input and output are one JSON object each (`Request`, `Tuned`): whatever happens in there, the caller goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from autosched.cli.entry import ONE_THREAD
from autosched.ir.program import Program

GRACE_S = 120.0
"""What a run may take beyond its own timeout: matching, the oracle, the final round."""


@dataclass(frozen=True)
class Request:
    """`packed`: what the program calls `const` may be prepared before the run; else nothing is constant. `sizes` are
    sizes, dtypes and options. `store` is a path; a study that it holds is continued. `file`: where the function is that
    `workload` names, if it is no built-in one."""

    workload: str
    sizes: dict[str, Any]
    store: str
    packed: bool = True
    threads: int = 1
    trials: int = 64
    seed: int = 0
    timeout_s: float = 600.0
    file: str = ""

    def program(self) -> Program:
        from autosched import parse, workload

        if self.file:
            found = parse(Path(self.file).read_text(encoding="utf-8"), self.file, self.workload, sizes=self.sizes)
        else:
            found = workload(self.workload, **self.sizes)
        if self.packed:
            return found
        return replace(found, tensors={n: replace(t, const=False) for n, t in found.tensors.items()})


@dataclass(frozen=True)
class Tuned:
    """`history` holds (trials done, seconds since the call of `tune`, seconds of the best so far); `wall_s` is the
    whole process, interpreter start included; `cpu_s` are processor seconds of the call, those of the processes that it
    started and that have ended included; `seconds` splits the call by phase, `target` is what measuring the
    machine took before it (once a store), and `costs_s` splits what candidates took. `events` counts what was told, by
    kind. `error` says why there is no kernel."""

    study: str = ""
    best_s: float | None = None
    spread: float | None = None
    trials: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    costs_s: dict[str, float] = field(default_factory=dict)
    history: list[tuple[int, float, float]] = field(default_factory=list)
    plan: str = ""
    intrinsics: list[str] = field(default_factory=list)
    schedule: dict[str, Any] = field(default_factory=dict)
    distinguishable: bool | None = None
    events: dict[str, int] = field(default_factory=dict)
    wall_s: float = 0.0
    error: str = ""
    cpu_s: float = 0.0

    @property
    def candidates_per_s(self) -> float:
        """Trials over the whole call of `tune`: matching, scoring, the oracle and the final round included."""
        return self.trials / self.seconds["total"] if self.seconds.get("total") else 0.0

    def reached(self, share: float) -> tuple[int, float] | None:
        """Trials and seconds until `share` of the final speed was there: that of the final round, which is no lucky
        sample of one trial (of the search's best, where none of its trials was as fast)."""
        if not self.history:
            return None
        limit = max(min(best for _, _, best in self.history), self.best_s or 0.0) / share
        done, at_s, _ = next(h for h in self.history if h[2] <= limit)
        return done, at_s


def tune(request: Request) -> Tuned:
    """The request in a fresh process. The target's measured figures are kept beside the store."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.common.tuning"]
    environment = ONE_THREAD | os.environ | {"XDG_CACHE_HOME": str(Path(request.store).parent)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages have it, and no process compiles them anew
    limit_s = request.timeout_s + GRACE_S
    try:
        done = subprocess.run(
            command, input=json.dumps(asdict(request)), capture_output=True, text=True, env=environment, check=False,
            timeout=limit_s,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Tuned(error=f"no end after {limit_s:.0f} s", wall_s=time.perf_counter() - started)
    wall_s = time.perf_counter() - started
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        return Tuned(error=last[0], wall_s=wall_s)
    return replace(from_json(json.loads(done.stdout.splitlines()[-1])), wall_s=wall_s)


def from_json(data: dict[str, Any]) -> Tuned:
    return Tuned(**data | {"history": [tuple(h) for h in data["history"]]})


def _run(request: Request) -> Tuned:
    from autosched import api
    from autosched.errors import AutoschedError
    from autosched.search.events import Event, TrialDone
    from autosched.search.request import TuneRequest
    from autosched.search.tuning.tune import tune as run

    history: list[tuple[int, float, float]] = []
    told: dict[str, int] = {}
    before = time.perf_counter()
    target = api.target("native")
    started, cpu_before = time.perf_counter(), _processor_s()

    def listen(event: Event) -> None:
        told[type(event).__name__] = told.get(type(event).__name__, 0) + 1
        if isinstance(event, TrialDone) and event.best_s is not None:
            history.append((event.done, time.perf_counter() - started, event.best_s))

    try:
        asked = TuneRequest(
            request.program(), target, device="cpu", trials=request.trials, timeout_s=request.timeout_s,
            seed=request.seed, threads=request.threads, store=api.store(request.store), catalogue=api.catalogue(),
        )  # fmt: skip
        tuning, result = run(asked, listen)
    except AutoschedError as error:
        return Tuned(error=f"{type(error).__name__}: {error.message}", events=told)
    costs: dict[str, float] = {}
    for trial in tuning.study.trials:
        for kind, spent in trial.measurement.costs_s.items():
            costs[kind] = costs.get(kind, 0.0) + spent
    best = result.best
    if best is None:
        return Tuned(error=result.reason, events=told)
    wrong = f"{result.failed.get('wrong', 0)} candidates computed wrong numbers" if result.wrong else ""
    return Tuned(
        tuning.study.name, best.time_s, best.trial.measurement.spread, result.done, result.failed,
        result.seconds | {"target": started - before}, costs, history, best.candidate.plan.name,
        list(best.candidate.plan.intrinsics), dict(best.trial.schedule), result.distinguishable, told, error=wrong,
        cpu_s=_processor_s() - cpu_before,
    )  # fmt: skip


def _processor_s() -> float:
    """Of this process and of those that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


if __name__ == "__main__":
    argparse.ArgumentParser(
        prog="python -m benchmarks.common.tuning",
        description=(__doc__ or "").splitlines()[0],
        epilog="Reads a JSON object on stdin.",
    ).parse_args()
    print(json.dumps(asdict(_run(Request(**json.load(sys.stdin))))))
