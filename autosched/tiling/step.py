"""`Step`: one scheduling idea in one place: its decisions, rules, derived quantities, when it has no effect.

Decisions are integers; their domain lists the values, and `labels` names them where a number says little. Rules and
derived quantities are `logic` expressions over decision names and over quantities derived before them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from autosched.logic import Bool, Int


@dataclass(frozen=True, slots=True)
class Decision:
    """A column: `domain` holds the values in order of preference for "no effect" (the first is the neutral one). `held`
    is the value of a decision that matters little, which gives way first where a space would have too many rows (None:
    it gives way later, at `late`; at its neutral value without that)."""

    name: str
    domain: tuple[int, ...]
    labels: tuple[str, ...] = ()
    note: str = ""
    held: int | None = None
    late: int | None = None

    def label(self, value: int) -> int | str:
        """The value as people read it: its label where there are labels."""
        return self.labels[self.domain.index(value)] if self.labels else value


@dataclass(frozen=True, slots=True)
class Handle:
    """A decision as lowering reads it: its name within a part or nest, and `neutral`, the value where a space lacks it
    (None: every space has it)."""

    name: str
    neutral: int | None = None

    def of(self, names: Callable[[str], str], values: Mapping[str, int]) -> int:
        """The value in a row; `names` adds the part's prefix. KeyError where a space must have it and does not."""
        name = names(self.name)
        return values[name] if self.neutral is None else values.get(name, self.neutral)


@dataclass(frozen=True, slots=True)
class Rule:
    """A legality constraint. `sentence` describes its violation, with fields for a row's numbers:
    `{registers} vector registers > 32`. `numbers`: those that only the sentence has."""

    name: str
    holds: Bool
    sentence: str
    numbers: Mapping[str, Int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Step:
    """Decisions, rules, derived quantities (name to expression, in order), and `inert`: for a decision, the condition
    under which it changes nothing (the rule `canonical` then rejects rows with another than its first value)."""

    name: str
    decisions: tuple[Decision, ...] = ()
    rules: tuple[Rule, ...] = ()
    derived: dict[str, Int] = field(default_factory=dict)
    inert: dict[str, Bool] = field(default_factory=dict)


NOTHING_TO_DECIDE = Step("as written", (Decision("threads", (1,)),))
"""Of a plan that leaves nothing open: a space has a decision at least."""


def deciding_steps(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps of a body beside those around it."""
    return tuple(s for s in steps if s != NOTHING_TO_DECIDE)
