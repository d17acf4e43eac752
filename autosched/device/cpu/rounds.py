"""`Rounds`: builds checked and timed by a worker, one alone or several in turn; how a device asks is its own matter."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from autosched.device.cpu.timing import spread
from autosched.device.job import Effort, Outcome
from autosched.device.protocol import Build
from autosched.errors import UsageError
from autosched.store.records import Measurement

CACHES = ("warm", "cold")
SLOWER = 3.0
"""A candidate this many times slower than the best is not sampled further."""
RUNS, LONGEST_S = 30, 600.0
"""What the deadline grows by: so many times what the model says that one call takes (a candidate is called about 12
times, most of them to be checked), and at most so many seconds."""
DRIFT = 2.0
"""How much longer a stage of builds in turn may take than a whole measurement did: the machine may be slower now."""


class Ask(Protocol):
    """Puts a question about builds to the worker, which holds their data then, and has an answer within `deadline_s`
    (`interleaved`: for each stage): the worker's, or an `Outcome` that says how it ended."""

    def __call__(self, builds: Sequence[Build], deadline_s: float, what: str, *message: Any) -> Any: ...


@dataclass
class Rounds:
    """`deadline_s` bounds loading, checking and timing of one candidate, and grows with what one call takes
    (`deadline_of`); one `rough` times slower than the best is sampled a few times only. `fastest_s` is the best time
    seen of the data that the worker holds. UsageError on options that cannot be right."""

    efforts: Mapping[str, Effort]
    rough: float
    cache: str
    deadline_s: float
    fastest_s: float | None = None

    def __post_init__(self) -> None:
        if self.cache not in CACHES:
            raise UsageError(f"the cache is {' or '.join(CACHES)}, not {self.cache!r}")
        if not self.deadline_s > 0:
            raise UsageError(f"a deadline of {self.deadline_s} s leaves no time")

    def measure(self, ask: Ask, build: Build, repeats: str, best_s: float | None) -> Measurement:
        """Check, then time. A candidate that is clearly slower than `best_s` gets few samples (None: than the fastest
        so far)."""
        if repeats not in self.efforts:
            raise UsageError(f"repeats is one of {', '.join(self.efforts)}, not {repeats!r}")
        if build.error is not None or build.payload is None:
            return unbuilt(build)
        best_s = self.fastest_s if best_s is None else best_s
        limit_s = None if best_s is None else SLOWER * best_s
        rough_s = None if best_s is None or repeats != "search" else self.rough * best_s
        effort = replace(self._effort(repeats), slower_than_s=limit_s, rough_above_s=rough_s)
        clock = time.perf_counter()
        outcome = ask([build], self.deadline_of(build), "measure", build.payload, effort)
        found = measurement(build, outcome, time.perf_counter() - clock)
        if found.time_s is not None:
            self.fastest_s = min(found.time_s, self.fastest_s or found.time_s)
        return found

    def interleaved(self, ask: Ask, builds: Sequence[Build], rounds: int) -> list[Measurement]:
        """All builds in turn, `rounds` times (A B C A B C …), so that a drift of the machine meets all alike.

        One measurement a build, in order. A build that ends the worker is left out of the next attempt. No stage (the
        check of a build, its run in a round) may take longer than a measurement alone might, `DRIFT` times.
        """
        effort = self._effort("final")
        results = {i: unbuilt(b) for i, b in enumerate(builds) if b.error is not None or b.payload is None}
        while left := [i for i in range(len(builds)) if i not in results]:
            asked = [builds[i] for i in left]
            jobs = tuple(b.payload for b in asked)
            clock = time.perf_counter()
            deadline_s = DRIFT * max(map(self.deadline_of, asked))
            answer = ask(asked, deadline_s, "interleaved", jobs, rounds, effort)
            took_s = (time.perf_counter() - clock) / len(left)
            if isinstance(answer, list):
                results |= {i: measurement(builds[i], o, took_s) for i, o in zip(left, answer, strict=True)}
                continue
            culprit = left[number_of(answer.extra.get("stage", ""))]
            results[culprit] = measurement(builds[culprit], answer, took_s)
        return [results[i] for i in range(len(builds))]

    def deadline_of(self, build: Build) -> float:
        """Seconds that checking and timing a build may take, by what the model says of a call: one far behind the
        fastest need not be waited for."""
        call_s = build.candidate.analytic_s or 0.0
        call_s = call_s if self.fastest_s is None else min(call_s, SLOWER * self.fastest_s)
        return self.deadline_s + min(RUNS * call_s, LONGEST_S)

    def _effort(self, repeats: str) -> Effort:
        return replace(self.efforts[repeats], cold=self.cache == "cold")


def measurement(build: Build, outcome: Outcome, took_s: float) -> Measurement:
    """The median of the outcome's samples, with what the build says; `took_s` is the time of it all, in seconds."""
    costs = {"build": build.seconds} | (outcome.costs_s or {"check": took_s})
    time_s = None
    if outcome.status == "ok":
        ordered = sorted(outcome.samples_s)
        middle = len(ordered) // 2
        time_s = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return Measurement(
        status=outcome.status,
        time_s=time_s,
        samples_s=outcome.samples_s,
        spread=spread(outcome.samples_s),
        max_abs_error=outcome.max_abs_error,
        tolerance=outcome.tolerance,
        message=outcome.message,
        kernel_sha=build.kernel_sha,
        costs_s=costs,
        extra=build.extra | outcome.extra,
    )


def unbuilt(build: Build) -> Measurement:
    """The measurement of a build that failed."""
    return Measurement("build", message=build.error or "nothing was built", costs_s={"build": build.seconds})


def number_of(stage: str) -> int:
    """The job's number in a stage such as `check 3`."""
    last = stage.split(" ")[-1]
    return int(last) if last.isdigit() else 0
