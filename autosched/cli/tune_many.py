"""`autosched tune A B …`: several programs, one budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from autosched.cli.answers.tune_report import as_json
from autosched.cli.output import answer, answer_json, raced, table, talk
from autosched.ir.work import operations
from autosched.report.text import seconds, speed
from autosched.search import events
from autosched.search.request import TuneRequest
from autosched.search.tuning.deadline import Deadline
from autosched.search.tuning.many import Part, TunedAll, tune_all


@dataclass(frozen=True)
class Said:
    """How much is printed, and in which form."""

    quiet: bool
    verbose: bool
    json: bool


def tune_many(
    requests: Sequence[TuneRequest], weights: Sequence[float], first: TuneRequest, said: Said, limit: Deadline
) -> int:
    """Tune the requests with the budget of `first`, until the `limit`, and print the answer; returns the exit
    status."""
    found = tune_all(requests, weights, first.trials, first.timeout_s, _Lines(requests, said), deadline=limit)
    if said.json:
        answer_json(many_json(found, first.trials))
    elif said.quiet:
        answer(_total(found))
    else:
        rows = [(*_row(part), part.tuning.study.name) for part in found.parts]
        table(("occurs", "trials", "best", "speed", "of all", "study"), [_with_share(r, found) for r in rows])
        answer(_total(found))
    for part in found.parts:
        if part.error:
            talk().print(f"{part.tuning.study.name}: {part.error}", markup=False)
    return found.exit_code


def many_json(found: TunedAll, trials: int) -> dict[str, Any]:
    """Schema autosched/tune-many/1; each program is the object of autosched/tune/1, with `occurs` and `error`."""
    return {
        "schema": "autosched/tune-many/1",
        "trials": {"total": trials, "done": sum(p.trials for p in found.parts)},
        "ended": found.reason,
        "time_s": found.total_s,
        "programs": [
            (as_json(p.tuning, p.result) if p.result else {"study": p.tuning.study.name, "best": None})
            | {"occurs": p.weight, "error": p.error or None}
            for p in found.parts
        ],
    }


def _row(part: Part) -> tuple[str, int, str, str, float]:
    best = part.result.best if part.result else None
    work = operations(part.tuning.request.program)
    time_s = best.time_s if best else None
    return f"{part.weight:g}", part.trials, seconds(time_s), speed(work, time_s), (time_s or 0.0) * part.weight


def _with_share(row: tuple[str, int, str, str, float, str], found: TunedAll) -> tuple[object, ...]:
    return (*row[:4], f"{row[4] / found.total_s:.0%}" if found.total_s else "-", row[5])


def _total(found: TunedAll) -> str:
    trials = sum(p.trials for p in found.parts)
    return f"all    {seconds(found.total_s)} for all calls   after {trials} trials"


class _Lines:
    """One line for every new best, and for the first failure of a kind."""

    def __init__(self, requests: Sequence[TuneRequest], said: Said) -> None:
        self._requests, self._said = requests, said
        self._names = [""] * len(requests)
        self._kinds: set[tuple[int, str]] = set()

    def __call__(self, number: int, event: events.Event) -> None:
        if self._said.quiet:
            return
        match event:
            case events.StudyOpened() if not self._names[number]:
                self._names[number] = event.name
                self._line(number, f"{event.done} trials before" if event.done else "new")
            case events.NewBest():
                time_s = event.trial.measurement.time_s
                work = operations(self._requests[number].program)
                self._line(number, f"trial {event.trial.number:>4}  {seconds(time_s)}  {speed(work, time_s)}")
            case events.TrialDone() if not event.trial.measurement.ok:
                m = event.trial.measurement
                if self._said.verbose or (number, m.status) not in self._kinds:
                    self._kinds.add((number, m.status))
                    first = (m.message.strip().splitlines() or ["no message"])[0]
                    self._line(number, f"trial {event.trial.number:>4}  failed ({m.status}): {first}")
            case events.FinalRound() if self._said.verbose:
                self._line(number, raced(event.candidates, event.more))
            case _:
                pass

    def _line(self, number: int, text: str) -> None:
        talk().print(f"{number + 1}  {self._names[number]}  {text}", markup=False)
