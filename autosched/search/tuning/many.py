"""Tuning many programs at once: the budget goes where the next trials are expected to save most.

What a program's next trials are worth is the time that one is expected to save in a call (`stopping.Outlook`), times
how often the program occurs. Each has a study of its own, which the same command continues, alone or with others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from math import isfinite
from typing import TypeAlias

from autosched.device.protocol import Device
from autosched.errors import NoScheduleError, UsageError, WrongResultError
from autosched.ir.work import operations
from autosched.search.events import Event
from autosched.search.request import TuneRequest
from autosched.search.stopping import Outlook
from autosched.search.tuning.deadline import Deadline, OutOfTime, briefly
from autosched.search.tuning.final import ROUNDS
from autosched.search.tuning.loop import Result, run
from autosched.search.tuning.tune import Tuning, limit_loops, outlook_of, prepare

SLICE = 8
"""Trials between two decisions on who is next."""
_SEARCHING = 0.8  # share of the time for searching; the final rounds have the rest
_ENDED = ("exhausted", "reached", "gain")
Listener: TypeAlias = Callable[[int, Event], None]
"""Called with the number of the program and what happened."""


@dataclass(frozen=True)
class Part:
    """One program's share: how often it occurs, its study, how its search ended. `result` is None where no candidate
    survived (`error` says why), or where the run was interrupted before its turn."""

    weight: float
    tuning: Tuning
    result: Result | None
    error: str = ""

    @property
    def trials(self) -> int:
        return len(self.tuning.study.searched)


@dataclass(frozen=True)
class TunedAll:
    """What tuning several programs found, in their order; `reason` is trials, timeout, exhausted or interrupted."""

    parts: tuple[Part, ...]
    reason: str

    @property
    def total_s(self) -> float | None:
        """Seconds of all calls: times with the fastest kernels, as often as each occurs; None where one has none."""
        times = [p.result.best.time_s if p.result and p.result.best else None for p in self.parts]
        found = [t * p.weight for t, p in zip(times, self.parts, strict=True) if t is not None]
        return sum(found) if len(found) == len(self.parts) else None

    @property
    def exit_code(self) -> int:
        """130 interrupted, 4 a wrong result, 1 a program without a kernel, else 0."""
        if self.reason == "interrupted":
            return 130
        if any(p.tuning.study.wrong for p in self.parts):
            return 4
        return 0 if self.total_s is not None else 1


def tune_all(
    requests: Sequence[TuneRequest],
    weights: Sequence[float],
    trials: int,
    timeout_s: float | None = None,
    listener: Listener | None = None,
    clock: Callable[[], float] = time.monotonic,
    deadline: Deadline | None = None,
) -> TunedAll:
    """Tune every program until all studies together have `trials` trials, or `timeout_s` seconds are over. All of it
    ends then, or at the `deadline` that the caller has entered before.

    `weights` says how often each occurs; `trials` and `timeout_s` of the requests do not count. Raises UsageError for
    no programs, one given twice, weights that are none, and fewer trials than programs; what `prepare` raises.
    """
    _check(requests, weights, trials, timeout_s)
    if deadline is None:
        with Deadline(timeout_s, clock) as own:
            return tune_all(requests, weights, trials, timeout_s, listener, clock, own)
    emit = listener or (lambda number, event: None)
    with ExitStack() as open_devices:
        shares: list[_Share] = []
        for number, (request, weight) in enumerate(zip(requests, weights, strict=True)):
            made = replace(request, trials=trials, timeout_s=None)
            share = _Share(number, made, weight, emit, clock, deadline)
            limit_loops(share.tuning.device, None if timeout_s is None else timeout_s / len(requests))
            open_devices.callback(_closed, share.tuning.device, deadline)
            same = next((s for s in shares if s.study.name == share.study.name), None)
            if same is not None:
                raise UsageError(
                    f"programs {same.number + 1} and {number + 1} are the same: {share.study.name}",
                    hint="give it once, with the number of times that it occurs",
                )
            shares.append(share)
        try:
            reason = _search(shares, trials, timeout_s, clock)
            if reason != "interrupted":
                reason = _race(shares, reason, deadline)
        except OutOfTime:  # between two turns
            deadline.met()
            reason = "timeout"
        return TunedAll(tuple(Part(s.weight, s.tuning, s.result, s.error) for s in shares), reason)


def _race(shares: Sequence[_Share], reason: str, deadline: Deadline) -> str:
    """The final rounds, each with its part of the time that is left; why the run ended."""
    for n, share in enumerate(shares):
        if deadline.over:
            return "timeout"
        left_s = deadline.left_s
        if share.race(None if left_s is None else left_s / (len(shares) - n)) == "interrupted":
            return "interrupted"
    return reason


def _closed(device: Device, deadline: Deadline) -> None:
    deadline.met()
    with briefly(when=deadline.end is not None):
        device.close()


def _check(requests: Sequence[TuneRequest], weights: Sequence[float], trials: int, timeout_s: float | None) -> None:
    if not requests:
        raise UsageError("there is no program to tune")
    if len(weights) != len(requests):
        raise UsageError(f"{len(weights)} weights for {len(requests)} programs", hint="give one for each, in order")
    for weight in weights:
        if not (isfinite(weight) and weight > 0):
            raise UsageError(f"a program cannot occur {weight:g} times", hint="weights are above 0")
    if trials < len(requests):
        raise UsageError(
            f"{trials} trials are fewer than {len(requests)} programs",
            hint=f"trials is the total of all studies: {SLICE * len(requests)} or more let each learn something",
        )
    if timeout_s is not None and timeout_s <= 0:
        raise UsageError(f"timeout is {timeout_s} s, and must be above 0")


def _search(shares: list[_Share], trials: int, timeout_s: float | None, clock: Callable[[], float]) -> str:
    """Everyone's first trials, then slices to who promises most; why it ended."""
    first, late = min(SLICE, trials // len(shares)), False
    while True:
        shares[0].deadline.again()
        left = trials - sum(s.done for s in shares)
        going = [s for s in shares if not s.ended]
        if left < 1 or not going:
            return "trials" if left < 1 else "exhausted"
        left_s = None if timeout_s is None else shares[0].started + _SEARCHING * timeout_s - clock()
        new = [s for s in going if s.done < first]
        if shares[0].deadline.over:
            return "timeout"
        if late or (left_s is not None and left_s <= 0):
            new = [s for s in new if s.done == 0]  # each is measured once: a program without an answer is of no use
            if not new:
                return "timeout"
        chosen = new[0] if new else max(going, key=lambda s: (s.promise(), -s.number))
        count = first - chosen.done if new else SLICE
        reason = chosen.search(min(count, left), left_s)
        late = late or reason == "timeout"
        if reason == "interrupted":
            return reason


class _Share:
    """A program's study while its turn comes and goes; its stopwatch stands still in between."""

    def __init__(
        self,
        number: int,
        request: TuneRequest,
        weight: float,
        emit: Listener,
        clock: Callable[[], float],
        deadline: Deadline,
    ) -> None:
        self.number, self.weight, self.deadline = number, weight, deadline
        self.started = clock()
        self._clock, self._own_s = clock, 0.0
        self._since: float | None = None  # when its turn began
        self._emit = lambda event: emit(number, event)
        with self._turn():
            self.tuning = replace(prepare(request, self._emit, self._own_clock), deadline=deadline)
        self.study = self.tuning.study
        self.result: Result | None = None
        self.error = ""
        self.ended = False
        self._outlook: Outlook | None = None
        self._told = 0
        self._gain: tuple[int, float | None] = (-1, None)

    @property
    def done(self) -> int:
        return len(self.study.searched)

    def promise(self) -> float:
        """Seconds that the next trial is expected to save in all calls. While too little is known, a share of the time
        that falls with the trials made."""
        gain = self._expected_gain()
        time_s = self.study.best_s or float(self.study.space.best(1)[1][0])
        return self.weight * time_s * (SLICE / (SLICE + self.done) if gain is None else gain)

    def search(self, trials: int, left_s: float | None) -> str:
        return self._run(self.done + trials, left_s, 0)

    def race(self, left_s: float | None) -> str:
        """The final round."""
        return self._run(max(1, self.done), left_s, ROUNDS)

    def _run(self, total: int, left_s: float | None, final_rounds: int) -> str:
        request, watch = self.tuning.request, self.study.watch
        with self._turn():
            try:
                self.result = run(
                    self.study,
                    self.tuning.device,
                    total,
                    None if left_s is None else watch.elapsed_s + max(left_s, 1e-3),
                    listener=self._emit,
                    operations=operations(request.program),
                    goals=request.goals,
                    outlook=self._informed() if request.goals.least_gain is not None else None,
                    final_rounds=final_rounds,
                    deadline=self.deadline,
                )
                self.error = ""
            except (NoScheduleError, WrongResultError) as error:  # nothing survived so far; others go on
                self.error = error.message
                self.ended = self.done < total
                return "failed"
        if request.goals.least_gain is not None:  # the loop has told the outlook
            self._told = self.done
        self.ended = self.result.reason in _ENDED
        return self.result.reason

    def _expected_gain(self) -> float | None:
        if self._gain[0] != self.done:
            with self._turn():
                self._gain = self.done, self._informed().gain()
        return self._gain[1]

    def _informed(self) -> Outlook:
        """The outlook, with all trials so far."""
        if self._outlook is None:
            self._outlook, self._told = outlook_of(self.tuning), self.done
        self._outlook.observe(self.study.searched[self._told :])
        self._told = self.done
        return self._outlook

    @contextmanager
    def _turn(self) -> Iterator[None]:
        self._since = self._clock()
        try:
            yield
        finally:
            self._own_s += self._clock() - self._since
            self._since = None

    def _own_clock(self) -> float:
        return self._own_s + (self._clock() - self._since if self._since is not None else 0.0)
