"""Synthesises preconditions on values: the ranges in which a clamp inside an instruction never acts.

The lattice has one box for each operand alone, the box over two operands that admits most pairs, and the exact
predicate on a group of terms. Ranges that the program assumes, operand types and short reductions narrow what is asked;
where nothing is left, the condition is discharged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import prod

from autosched.ir.nodes import Assume
from autosched.ir.oracle import numerics
from autosched.ir.printer import print_value
from autosched.ir.value import Read, Value
from autosched.tensorize.body.arrays import evaluate
from autosched.tensorize.body.counterexample import leaves
from autosched.tensorize.body.intervals import Range, exact_range
from autosched.tensorize.match_types import Condition

Box = dict[str, Range]
"""Tensor to the range of its elements."""


@dataclass(frozen=True)
class ClampedSum:
    """A sum of at most `terms` values of `term` that is clamped to `limits`. `ranges`: what is known of each tensor
    that the term reads; `const` names those whose values are known before the run, `derived` those that are computed
    on the way, of which nobody outside can promise anything. The very values of those `given` are known, and `ranges`
    holds their least and greatest: what is narrower is not met."""

    term: Value
    terms: int
    limits: tuple[int, int]
    ranges: tuple[tuple[str, Range], ...]
    const: frozenset[str] = frozenset()
    derived: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset()

    def sums(self, box: Mapping[str, Range]) -> Range:
        """Bounds of the sums of up to `terms` terms with elements in `box`; a padded term is zero."""
        inputs: dict[Value, Range] = {r: box[r.tensor] for r in self.reads}
        one = exact_range(self.term, inputs)
        return Range(min(one.low, 0) * self.terms, max(one.high, 0) * self.terms)

    def safe(self, box: Mapping[str, Range]) -> bool:
        return self.sums(box).within(self.limits)

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        return tuple(r for r in leaves(self.term) if isinstance(r, Read))

    @property
    def whole(self) -> Box:
        return dict(self.ranges)


@lru_cache(maxsize=256)
def weakest(group: ClampedSum) -> tuple[Condition, ...] | None:
    """The conditions (all of them together) under which no sum of the group is clamped: () where none is needed, None
    where the lattice has none.

    The first is the one to state: on one operand rather than two, on constant data rather than other, on a parameter
    rather than what is computed from it, then the widest.
    The others of the lattice are its `alternatives`.
    """
    whole = group.whole
    if group.safe(whole):
        return ()
    singles = [b for t in whole if (b := _single(group, t)) is not None]
    singles.sort(key=lambda b: (*_kind(group, b), -_volume(b)))
    boxes = list(singles)
    joint = _joint(group)
    if joint is not None and all(_volume(joint) > _volume(b) for b in singles):
        boxes.append(joint)
    boxes = [b for b in boxes if not group.given & {*_narrowed(group, b)}] or boxes
    if not boxes:
        return None
    others = [" and ".join(_text(t, box[t]) for t in _narrowed(group, box)) for box in boxes[1:]]
    low, high = group.limits
    others.append(f"{low} <= every sum of {group.terms} neighbouring {print_value(group.term)} <= {high}")
    chosen = boxes[0]
    tight = violated_by_one(group, chosen) is not None
    names = _narrowed(group, chosen)
    return tuple(range_condition(t, chosen[t], tight, tuple(others) if n == 0 else ()) for n, t in enumerate(names))


def range_condition(tensor: str, kept: Range, tight: bool = False, alternatives: tuple[str, ...] = ()) -> Condition:
    """The condition that the elements of a tensor lie within `kept`."""
    stated = Assume(tensor, kept.low, kept.high)
    return Condition("range", _text(tensor, kept), tight, alternatives, stated)


def _kind(group: ClampedSum, box: Box) -> tuple[bool, bool]:
    """Whether a box restricts data that are not constant, and whether it restricts a tensor that is no parameter."""
    asked = set(_narrowed(group, box))
    return not asked <= group.const, bool(asked & group.derived)


def violated_by_one(group: ClampedSum, box: Box) -> dict[str, dict[str, int]] | None:
    """For each bound of the box, elements one past it with which a sum is clamped; None where some bound has no such
    elements, so that the box is not the widest."""
    found = {}
    for tensor in _narrowed(group, box):
        whole, kept = group.whole[tensor], box[tensor]
        for side, past in (("low", kept.low - 1), ("high", kept.high + 1)):
            if not whole.low <= past <= whole.high:
                continue
            others = {t: (r.low, r.high) for t, r in box.items() if t != tensor}
            clamped = _clamped_at(group, {**others, tensor: (past,)})
            if clamped is None:
                return None
            found[f"{tensor} {side}"] = clamped
    return found


def _clamped_at(group: ClampedSum, choices: Mapping[str, tuple[int, ...]]) -> dict[str, int] | None:
    keys = [r for r in leaves(group.term) if isinstance(r, Read)]
    if len(keys) != len(leaves(group.term)):
        return None
    for values in product(*choices.values()):
        elements = dict(zip(choices, values, strict=True))
        inputs = {r: numerics.container(r.dtype)(elements[r.tensor]) for r in keys}
        total = group.terms * int(evaluate(group.term, inputs))
        if not group.limits[0] <= total <= group.limits[1]:
            return elements
    return None


def _text(tensor: str, kept: Range) -> str:
    return f"{kept.low} <= {tensor} <= {kept.high}"


def _narrowed(group: ClampedSum, box: Box) -> list[str]:
    return [t for t, whole in group.ranges if box[t] != whole]


def _volume(box: Box) -> int:
    return prod(r.high - r.low + 1 for r in box.values())


def _single(group: ClampedSum, tensor: str) -> Box | None:
    """The widest box on one tensor alone."""
    kept = _widest(group.whole[tensor], lambda r: group.safe({**group.whole, tensor: r}))
    return None if kept is None else {**group.whole, tensor: kept}


def _joint(group: ClampedSum) -> Box | None:
    """The box over two tensors that admits most pairs."""
    if len(group.ranges) != 2:
        return None
    (first, whole), (second, _) = group.ranges
    best: Box | None = None
    for one in _growing(whole):
        two = _partner(group, one)
        if two is not None and (best is None or _volume(best) < _volume({first: one, second: two})):
            best = {first: one, second: two}
    if best is None:
        return None
    one, two = best[first], best[second]
    grown = _extended(one, whole, lambda r: group.safe({first: r, second: two}))
    return {first: grown, second: two}


def _partner(group: ClampedSum, one: Range) -> Range | None:
    """The widest range of the second tensor that goes with `one` of the first."""
    (first, _), (second, whole) = group.ranges
    return _widest(whole, lambda r: group.safe({first: one, second: r}))


_STEPS = 512


def _growing(whole: Range) -> Iterator[Range]:
    """Ranges around the value nearest to zero, each within the next; all of them where they are few."""
    centre = min(max(0, whole.low), whole.high)
    most = max(whole.high - centre, centre - whole.low)
    for n in range(1, min(most, _STEPS) + 1):
        m = n if most <= _STEPS else max(1, most * n // _STEPS)
        yield Range(max(whole.low, centre - m), min(whole.high, centre + m))


def _widest(whole: Range, safe: Callable[[Range], bool]) -> Range | None:
    """The widest safe range around the value nearest to zero (by magnitude, then on either side), of two values at
    least; None where there is none."""
    centre = min(max(0, whole.low), whole.high)
    low, high = 0, max(whole.high - centre, centre - whole.low)

    def around(m: int) -> Range:
        return Range(max(whole.low, centre - m), min(whole.high, centre + m))

    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if safe(around(middle)) else (low, middle - 1)
    if low == 0:
        return None
    return _extended(around(low), whole, safe)


def _extended(kept: Range, whole: Range, safe: Callable[[Range], bool]) -> Range:
    """The range with its upper, then its lower end moved outwards as far as is safe."""
    low, high = kept.high, whole.high
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if safe(Range(kept.low, middle)) else (low, middle - 1)
    upper, low, high = low, whole.low, kept.low
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if safe(Range(middle, upper)) else (middle + 1, high)
    return Range(low, upper)
