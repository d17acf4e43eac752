"""Typed events of a tuning run. The library emits them; the command line (or anyone) listens."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from autosched.store.records import Trial


@dataclass(frozen=True)
class Matched:
    """Matching is done: intrinsic to (verdict, mappings). `peak` names the fastest instruction among the matches whose
    rate the target knows, and its operations a second on the threads allowed. `planned` are the instructions of plans,
    also of those of rewritten programs."""

    verdicts: dict[str, tuple[str, int]]
    seconds: float
    peak: tuple[str, float] | None = None
    planned: tuple[str, ...] = ()


@dataclass(frozen=True)
class NotPlanned:
    """Mappings that matching reports and no plan holds. Finding out why takes longer than most spaces do, so only who
    asks for `reasons` waits for it."""

    find: Callable[[], Iterable[tuple[str, tuple[str, ...]]]]

    @cached_property
    def reasons(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Each reason, with the mappings that it keeps out."""
        return tuple(self.find())


@dataclass(frozen=True)
class Unplanned:
    """A stage that no plan computes with an instruction, though `intrinsics` fit it, and why that is."""

    stage: str
    intrinsics: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class NotRunWhole:
    """The device will not run kernels of this size to check them, or loops of theirs that are cut down only: `message`
    says how large they are, and what it runs."""

    message: str


@dataclass(frozen=True)
class Scored:
    """The spaces are laid out and scored: plans, those of them near the best by the clock (others are hardly searched),
    legal rows, rows in all, rejections per rule. Where a device measures aside, that is done beside the first trials,
    and comes after them."""

    plans: int
    near: int
    rows: int
    rows_in_all: int
    rejected: dict[str, int]
    seconds: float


@dataclass(frozen=True)
class StudyOpened:
    name: str
    done: int
    total: int
    best_s: float | None
    created: bool
    seed: int


@dataclass(frozen=True)
class NearMiss:
    """The study is new, but `study` in the same store is of the same program; what differs, in words."""

    study: str
    differences: tuple[str, ...]


@dataclass(frozen=True)
class WithoutEffect:
    """A schedule of the user's sets decisions that change nothing beside its others: they are at their first values."""

    decisions: tuple[str, ...]


@dataclass(frozen=True)
class Proposed:
    """The strategy has chosen so many candidates; they are built and measured next."""

    candidates: int


@dataclass(frozen=True)
class TrialDone:
    """`best_s` are the seconds of the best so far, by what the study minimises."""

    trial: Trial
    best_s: float | None
    done: int
    total: int
    failed: dict[str, int]
    elapsed_s: float


@dataclass(frozen=True)
class NewBest:
    trial: Trial
    gflops: float


@dataclass(frozen=True)
class FinalRound:
    """`more` of the candidates join a second race: the first showed that the machine was another when they ran."""

    candidates: int
    more: int = 0


@dataclass(frozen=True)
class Noisy:
    """Something else kept the machine busy: `disturbed` of `rounds` rounds of the final, slower by `slowdown` (0.2: a
    fifth). `again`: they are run again; else what quiet rounds there are decide."""

    disturbed: int
    rounds: int
    slowdown: float
    again: bool


@dataclass(frozen=True)
class RaceLost:
    """No candidate came to the end of the final round, at least one for want of time: what the search measured counts.
    `message` says what became of the first."""

    message: str


@dataclass(frozen=True)
class FinalFailed:
    """Candidates of the final round that did not come out right again: how many `of` how many, by kind."""

    failed: dict[str, int]
    of: int


@dataclass(frozen=True)
class NoFinal:
    """No final round was held, since no time was left for it: what the search measured counts."""


@dataclass(frozen=True)
class MeasuredAgain:
    """A trial whose samples differed too widely to lose by: its seconds at first, and those that count."""

    first_s: float
    again_s: float | None


@dataclass(frozen=True)
class WorkerDied:
    kind: str
    message: str


@dataclass(frozen=True)
class PlanGivenUp:
    """The first trials of a plan all failed: while other plans have rows, no more are proposed of it. `message` is the
    first line of what its last trial said."""

    plan: str
    failed: int
    message: str


@dataclass(frozen=True)
class Stopped:
    """The search ended: `reason` is that of `Result`."""

    reason: str
    seconds: dict[str, float] = field(default_factory=dict)


Event: TypeAlias = (
    Matched
    | NotPlanned
    | Unplanned
    | NotRunWhole
    | Scored
    | NearMiss
    | WithoutEffect
    | StudyOpened
    | Proposed
    | TrialDone
    | NewBest
    | FinalRound
    | Noisy
    | RaceLost
    | FinalFailed
    | NoFinal
    | MeasuredAgain
    | WorkerDied
    | PlanGivenUp
    | Stopped
)
Listener: TypeAlias = Callable[[Event], None]
