"""What a guard excludes, of floats: steps that are left out of single lanes, and factors that must be finite.

Where a guard fails the program computes nothing, so no element may matter there, NaN and infinities included. A zero in
one factor does not see to that: `0 * NaN` is NaN. Instructions whose sums lie lane by lane in registers leave such
steps out (a mask on the sum, a branch, a bound of the loop). What multiplies whole matrices, and borders of a tensor,
which libraries fill with zeros too, hold a fill; the other factor is then assumed to be finite, by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Mapping as MappingOf

from autosched.ir.program import Program
from autosched.ir.value import Condition as Guard
from autosched.ir.value import Literal, Read, Value, reads
from autosched.logic import Bool, Const, Int, affine, below_zero, interval
from autosched.tensorize.addresses.axes import Assignment
from autosched.tensorize.addresses.points import condition_axes
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.body.neutral import Factors, Neutral, is_element, never_special, said_finite
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Obligation, Reason
from autosched.tensorize.matcher.staging import covering_operands

STRICT = ("bitwise", "special")
"""Levels at which nothing is assumed to be finite."""


def left_out(
    facts: StageFacts, intrinsic: Intrinsic, assignment: Assignment, level: str, border: Callable[[Guard], bool]
) -> frozenset[Bool]:
    """The guards whose steps kernels leave out: none of integers, none of what is summed within one issue, and at the
    levels that assume factors to be finite no borders (`is_border`)."""
    if not facts.update.target.dtype.is_float or facts.update.combine is None or not intrinsic.by_lane:
        return frozenset()
    summed_inside = assignment.inner - facts.spatial
    found = []
    for guard in facts.program_guards:
        if not isinstance(guard, Bool) or condition_axes(guard) & summed_inside:
            continue
        if level in STRICT or not border(guard):
            found.append(guard)
    return frozenset(found)


def is_border(facts: StageFacts, roles: MappingOf[str, Read], guard: Guard) -> bool:
    """Whether a guard keeps a subscript in its tensor: `0 <= y + r - 1`, where `X[y + r - 1]` would begin before."""
    form = below_zero(guard) if isinstance(guard, Bool) else None
    if form is None:
        return False
    for read in roles.values():
        for part, extent in zip(read.index, facts.program.tensors[read.tensor].shape, strict=True):
            mine = affine(part) if isinstance(part, Int) else None
            if mine is None or not isinstance(part, Int) or not isinstance(extent, Const):
                continue
            low, high = interval(part, facts.ranges)
            if high >= extent.value and mine.coefficients == form.coefficients:
                return True
            if low < 0 and mine.scaled(-1).coefficients == form.coefficients:
                return True
    return False


def outside_factors(
    facts: StageFacts, neutral: Neutral, covers: MappingOf[Guard, tuple[str, ...] | None], roles: MappingOf[str, Read]
) -> Factors:
    """What must be finite for guards on axes outside the tile: they are held by any operands that move with all of
    their axes and add nothing."""
    found: set[Value] = set()
    for guard, covering in covers.items():
        if covering == ():
            able = frozenset(covering_operands(roles, facts.free_axes(condition_axes(guard))))
            for names in neutral.sets:
                found |= neutral.finite(names) if names <= able else frozenset()
    return frozenset(found)


def still_open(program: Program, finite: Iterable[Value]) -> tuple[Factors, tuple[Obligation, ...]]:
    """The factors that may be NaN or infinite for all that is known, and what was shown of the others. Elements of a
    type without such values are never; of other tensors a program may assume both bounds."""
    bounded = {a.subject: a for a in program.lasting_assumptions if a.low is not None and a.high is not None}
    left: list[Value] = []
    shown: dict[Obligation, None] = {}
    for factor in finite:
        tensors = [r.tensor for r in reads(factor)]
        if never_special(factor):
            continue
        if is_element(factor) and tensors[0] in bounded:
            a = bounded[tensors[0]]
            text = f"{show_leaf(reads(factor)[0])} is finite, since {_short(a.low)} <= {a.subject} <= {_short(a.high)}"
            shown[Obligation("body", text, "structure")] = None
        elif not isinstance(factor, Literal):
            left.append(factor)
    return frozenset(left), tuple(shown)


def _short(bound: float | None) -> str:
    return f"{bound:g}"


def not_finite(finite: Factors, level: str) -> Reason:
    """Why a mapping that relies on finite factors is none at a level that assumes nothing of the kind."""
    needed = " and ".join(s.split(": ", 1)[1] for s in said_finite(finite))
    text = f"only if {needed}, and {level} assumes no such thing"
    return Reason("NUMERICS", text, fix="accept --numerics reassociated")
