"""What a rewritten form of a program would gain by the clock; no device is used."""

from __future__ import annotations

from dataclasses import dataclass, replace

from autosched.errors import AutoschedError, NoScheduleError
from autosched.search.request import TuneRequest
from autosched.search.space.scored_space import space_of
from autosched.search.strategy.memory import has_clock
from autosched.search.tuning.tune import FORMS_S, Tuning, plans_of
from autosched.tensorize.explanation.forms import Form


@dataclass(frozen=True)
class Gain:
    """The clock's seconds of the fastest row: of the program as it is written, and of a form of it."""

    written_s: float
    rewritten_s: float

    @property
    def ratio(self) -> float:
        """How many times as fast the form is."""
        return self.written_s / self.rewritten_s


def fastest_s(request: TuneRequest) -> float | None:
    """The clock's seconds of the fastest row for the request; None where there is none, or no plan."""
    try:
        space = space_of(plans_of(request)[1], seed=request.seed)
    except NoScheduleError:
        raise  # it may be the deadline
    except AutoschedError:
        return None
    return None if space.empty else float(space.best(1)[1][0])


def gain_of(form: Form, request: TuneRequest, written_s: float | None) -> Gain | None:
    """What the form gains for the request; `written_s` is the clock's time of the program as written. None where the
    clock has no time of one of them."""
    rewritten_s = fastest_s(replace(request, program=form.program))
    return Gain(written_s, rewritten_s) if written_s and rewritten_s else None


def gains(tuning: Tuning) -> list[Gain | None]:
    """The gain of each form of a run; None where the run's time is over, or where scoring takes longer than
    `FORMS_S`."""
    found: list[Gain | None] = []
    space = tuning.study.space

    def work() -> None:
        written_s = float(space.best(1)[1][0])
        found.extend(gain_of(form, tuning.request, written_s) for form in tuning.forms)

    if tuning.forms and tuning.request.objective == "latency" and has_clock(space):
        tuning.deadline.within(FORMS_S, work)
    return found + [None] * (len(tuning.forms) - len(found))
