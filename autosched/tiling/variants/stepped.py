"""Programs whose expressions are taken apart into what single instructions of an accelerator compute.

An expression is covered by instructions that overwrite their target, as a tree by patterns, with the fewest cycles.
What the patterns join becomes intermediates (`ir.rewrites.in_steps`), and the matcher then proves each step: a cover
that is wrong here costs time, and is refused there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.ir.rewrites.in_steps import in_steps
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.ir.value import (
    Arith,
    Call,
    Cast,
    Comparison,
    Literal,
    Read,
    Scalar,
    Select,
    Unary,
    Value,
    is_value,
    reads,
)
from autosched.ir.variables import value_vars
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.lengths import at_full_length
from autosched.tensorize.match_types import Match
from autosched.tensorize.matcher.match import match
from autosched.tensorize.reduction.update import update_of_intrinsic
from autosched.tiling.variants.adapted import Variant, adapted_programs

Bound = dict[str, Value]
"""What each operand of an instruction stands for."""


@dataclass(frozen=True)
class Pattern:
    """What an instruction computes of an element; `axes` of its target, and of each operand; `cycles` of an element."""

    intrinsic: Intrinsic
    value: Value
    axes: tuple[str, ...]
    along: Mapping[str, frozenset[str]]
    cycles: float


@dataclass(frozen=True)
class Cover:
    """Instructions of a value: cycles of an element, and what of the value each step in front of the last computes,
    those inside of others first."""

    cycles: float
    steps: tuple[Value, ...] = ()


def stepped_programs(
    program: Program,
    target: Target,
    matches: Sequence[Match],
    intrinsics: Sequence[Intrinsic],
    numerics: str,
    conditions: str,
) -> Iterator[Variant]:
    """The program with the stages that no instruction of an accelerator fits in steps that some do, where there are
    such, and what adapters make of it."""
    patterns = patterns_of(intrinsics, target)
    fitted = {m.stage.name for found in matches for m in found.mappings if m.intrinsic.isa == target.isa}
    parts: dict[str, tuple[Value, ...]] = {}
    for stage in program.stages:
        found = cover_of(stage, patterns) if patterns and stage.name not in fitted else None
        if found is not None and found.steps:
            parts[stage.name] = found.steps
    rewrite = in_steps(program, parts) if parts else None
    if rewrite is None:
        return
    own = [i for i in intrinsics if i.isa == target.isa]
    again = match(rewrite.after, own, numerics)
    step = RewriteVerdict("steps", "", tuple(parts), numerics="bitwise", because=rewrite.proof)
    for variant in adapted_programs(rewrite.after, again, own, numerics, conditions):
        yield replace(variant, rewrites=(*variant.rewrites, step))


def patterns_of(intrinsics: Sequence[Intrinsic], target: Target) -> list[Pattern]:
    """Those of the target's instructions that overwrite an element with one of elements."""
    found = []
    for i in intrinsics:
        if i.isa != target.isa or i.accumulates or i.numerics.bounded:
            continue
        whole = at_full_length(i)
        i = i if whole is None else whole[0]
        axes = i.operand_axes
        along = {o.name: frozenset(a for a in axes[o.name] if a is not None) for o in i.inputs}
        own = tuple(a for a in axes[i.accumulator.name] if a is not None)
        cycles = 1 / target.issues(i) / i.accumulator.elements
        found.append(Pattern(i, update_of_intrinsic(i).term, own, along, cycles))
    return found


def cover_of(stage: Stage, patterns: Sequence[Pattern]) -> Cover | None:
    """The instructions that compute what a stage assigns, or adds to what it sums up: those of the fewest cycles. None
    where some part of it has none."""
    value = stage.assign.value
    if stage.assign.op != "=":  # the sum itself is another instruction's
        found = _covers(stage, patterns).of(value)
        return found if found is None or _leaf(value) else Cover(found.cycles, (*found.steps, value))
    return None if _leaf(value) else _covers(stage, patterns).of(value)


def uncovered(stage: Stage, patterns: Sequence[Pattern]) -> Value | None:
    """The first part of a stage's value that no instruction computes, though all that it is computed from is there."""
    return _covers(stage, patterns).first(stage.assign.value)


def types_of(value: Value) -> list[DType]:
    """The types of what a node is computed from."""
    return [part.dtype for part in _parts(value)]


def _leaf(value: Value) -> bool:
    return isinstance(value, Read | Literal | Scalar)


def _covers(stage: Stage, patterns: Sequence[Pattern]) -> _Covers:
    return _Covers(stage, patterns, {})


@dataclass
class _Covers:
    stage: Stage
    patterns: Sequence[Pattern]
    known: dict[Value, Cover | None]

    def of(self, value: Value) -> Cover | None:
        """The best cover of a value; None where it has none."""
        if _leaf(value):
            return Cover(0.0)
        if value not in self.known:
            found = [c for p in self.patterns for bound in unified(p.value, value, {}) if (c := self._by(p, bound))]
            self.known[value] = min(found, key=lambda c: c.cycles, default=None)
        return self.known[value]

    def _by(self, pattern: Pattern, bound: Bound) -> Cover | None:
        if not self._lies(pattern, bound):
            return None
        cycles, steps = pattern.cycles, dict[Value, None]()
        for part in bound.values():
            inner = self.of(part)
            if inner is None:
                return None
            new = not _leaf(part) and part not in steps
            cycles += inner.cycles if new else 0.0
            steps |= dict.fromkeys(inner.steps)
            steps |= {part: None} if not _leaf(part) else {}
        return Cover(cycles, tuple(steps))

    def _lies(self, pattern: Pattern, bound: Bound) -> bool:
        """Whether each axis of the instruction's target has an axis of the stage to run along: one that moves only
        operands which the instruction indexes by it."""
        moved = {o: value_vars(v) for o, v in bound.items()}
        axes = [a.name for a in self.stage.axes]
        along = [
            [a for a in axes if all(t in pattern.along[o] for o, names in moved.items() if a in names)]
            for t in pattern.axes
        ]
        ways = permutations(axes, len(along))
        return any(all(a in own for a, own in zip(chosen, along, strict=True)) for chosen in ways)

    def first(self, value: Value) -> Value | None:
        if _leaf(value) or self.of(value) is not None:
            return None
        inside = (self.first(part) for part in _parts(value))
        return next((part for part in inside if part is not None), value)


def _parts(value: Value) -> tuple[Value, ...]:
    match value:
        case Arith(_, left, right) | Comparison(_, left, right):
            return left, right
        case Unary(_, operand) | Cast(operand):
            return (operand,)
        case Call(_, args):
            return args
        case Select(condition, then, other):
            return (*((condition,) if is_value(condition) else ()), then, other)
    return ()


def unified(pattern: Value, value: Value, bound: Bound) -> Iterator[Bound]:
    """The ways in which a value is an instruction's, operand by operand: same operations, in either order where that
    changes no bit."""
    if isinstance(pattern, Read):
        if pattern.dtype != value.dtype or bound.get(pattern.tensor, value) != value or not _steady(value):
            return
        yield {**bound, pattern.tensor: value}
    elif isinstance(pattern, Literal):
        if pattern == value:
            yield bound
    elif _head(pattern) == _head(value) is not None:
        ours, theirs = _parts(pattern), _parts(value)
        yield from _all_unified(ours, theirs, bound)
        if isinstance(value, Arith) and _commutes(value):
            yield from _all_unified(ours, theirs[::-1], bound)


def _steady(value: Value) -> bool:
    """Whether it can stand in an operand's place: no condition, and no element that data choose."""
    plain = all(not is_value(i) for r in reads(value) for i in r.index)
    return plain and (not isinstance(value, Literal) or not isinstance(value.value, bool))


def _all_unified(ours: tuple[Value, ...], theirs: tuple[Value, ...], bound: Bound) -> Iterator[Bound]:
    if not ours:
        if not theirs:
            yield bound
    elif theirs:
        for found in unified(ours[0], theirs[0], bound):
            yield from _all_unified(ours[1:], theirs[1:], found)


def _commutes(value: Arith) -> bool:
    return value.op in ("+", "*") or (value.op in ("&", "|", "^", "min", "max") and not value.dtype.is_float)


def _head(value: Value) -> tuple[object, ...] | None:
    """What a node is without what it is computed from."""
    match value:
        case Arith(op) | Unary(op) | Comparison(op):
            return type(value), op, value.dtype
        case Call(function):
            return Call, function, value.dtype, len(value.args)
        case Cast():
            return Cast, value.dtype, value.saturate, value.operand.dtype
        case Select(condition):
            return (Select, value.dtype) if is_value(condition) else None
    return None
