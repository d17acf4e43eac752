"""The normal form of a stage: `target = target ⊕ term` for each point of its axes.

The many spellings of one accumulation (`C += x`, `C = x + C`, `C = fma(a, b, C)`, `C -= x`, a sum written out over
constant subscripts, `sat_s32(s64(C) + s64(x))`) become one `Update`, so that proofs see a combination, a term and
nothing else. Every rewriting here is exact, or is named in the result (`fused`, `saturate`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from autosched.errors import AutoschedError
from autosched.ir.dtypes import DType
from autosched.ir.nodes import Axis, Stage
from autosched.ir.rewrites.rewrite import rounded_once
from autosched.ir.value import (
    Arith,
    Call,
    Cast,
    Condition,
    Read,
    Select,
    Unary,
    Value,
    is_value,
    map_value,
    reads,
)
from autosched.ir.variables import index_vars
from autosched.logic import Const, Var
from autosched.logic.remember import Remembering, remembers_hash
from autosched.tensorize.body.intervals import Range, exact_range
from autosched.tensorize.intrinsic import Intrinsic

_COMBINE = {"=": None, "+=": "+", "-=": "+", "*=": "*", "min=": "min", "max=": "max"}


class NotAnUpdate(AutoschedError):
    """A stage that is not of the form `target = target ⊕ term`."""


@dataclass(frozen=True, slots=True)
class Clamp:
    """Sums of `group` terms along `axis` are clamped to `dtype` before they are added to the target; `groups` are the
    coordinates of each."""

    dtype: DType
    group: int
    axis: str
    groups: tuple[tuple[int, ...], ...] = ()


@remembers_hash
@dataclass(frozen=True, slots=True)
class Update(Remembering):
    """`combine` is `+ * min max`, or None for a plain assignment of `term`. `fused`: product and addition round once.
    `saturate`: the sum is clamped to this dtype each time it is added to the target. `negated`: the term carries a
    minus that the source wrote as `-=`. `clamp`: the term is right where this clamp, left out of it, never acts."""

    target: Read
    combine: str | None
    term: Value
    axes: tuple[Axis, ...]
    guards: tuple[Condition, ...] = ()
    init: Value | None = None
    fused: bool = False
    saturate: DType | None = None
    negated: bool = False
    clamp: Clamp | None = None

    @property
    def operands(self) -> tuple[Read, ...]:
        """The distinct elements that the term reads, in order (subscripts of data-dependent addresses left out)."""
        return operand_reads(self.term)

    @property
    def axes_reduced(self) -> tuple[Axis, ...]:
        """The axes that the target's address does not move with."""
        used = index_vars(self.target.index)
        return tuple(a for a in self.axes if a.name not in used)


@lru_cache(maxsize=4096)
def operand_reads(value: Value) -> tuple[Read, ...]:
    """The distinct reads of `value` that are operands, not parts of another read's address."""
    found = dict.fromkeys(reads(value))
    for read in tuple(found):
        for part in read.index:
            for inner in reads(part) if is_value(part) else ():
                found.pop(inner, None)
    return tuple(found)


@lru_cache(maxsize=4096)
def update_of(stage: Stage, merging: bool = False) -> Update:
    """The normal form of `stage`; NotAnUpdate where it reads its target in some other way. `merging`: where a choice
    keeps what the target holds, its condition becomes one of the guards (an instruction's; those of a program's stage
    stand in the stage itself)."""
    assign = replace(stage.assign, value=rounded_once(stage.assign.value))
    combine = _COMBINE[assign.op]
    plain = Update(stage.target, combine, assign.value, stage.axes, stage.guards, stage.init)
    if assign.op == "-=":
        return replace(plain, term=negate(assign.value), negated=True)
    if combine is not None or not any(_is(r, stage.target) for r in reads(assign.value)):
        return plain
    value, kept = assign.value, list[Condition]()
    while merging and (merged := merge_of(value, stage.target)) is not None:
        kept.append(merged.condition)
        value = merged.then
    plain = replace(plain, guards=(*plain.guards, *kept))
    if kept and not any(_is(r, stage.target) for r in reads(value)):
        return replace(plain, term=value)
    found = _split(value, stage.target)
    if found is None or not found.terms:
        raise NotAnUpdate(f"{assign.tensor} is read in a way that is no accumulation", location=assign.location)
    term = found.terms[0]
    for other in found.terms[1:]:
        term = Arith(found.combine, term, other, term.dtype)
    return replace(
        plain, combine=found.combine, term=term, fused=found.fused, saturate=found.saturate, negated=found.negated
    )


def merge_of(value: Value, target: Read) -> Select | None:
    """`value` as a choice between something else and what the target holds already, by what is not the target."""
    if not isinstance(value, Select) or not _is(value.other, target):
        return None
    tested = reads(value.condition) if is_value(value.condition) else ()
    return None if any(r.tensor == target.tensor for r in tested) else value


def assignment_of(stage: Stage) -> Update:
    """The stage as an assignment of a value that may depend on what the element holds: `C[i] += x` of `C[i] + x`."""
    assign, target = stage.assign, stage.target
    value = rounded_once(assign.value)
    if assign.op != "=":
        value = Arith(assign.op.removesuffix("="), target, value, target.dtype)
    return Update(target, None, value, stage.axes, stage.guards, stage.init)


def update_of_intrinsic(intrinsic: Intrinsic) -> Update:
    """As `update_of`, with dimensions indexed by constants turned into axes (`Intrinsic.operand_axes` names them)."""
    if update_of_intrinsic not in intrinsic.cache:
        intrinsic.cache[update_of_intrinsic] = _update_of_intrinsic(intrinsic)
    found: Update = intrinsic.cache[update_of_intrinsic]
    return found


def _update_of_intrinsic(intrinsic: Intrinsic) -> Update:
    stage = intrinsic.stage
    try:
        update = update_of(stage, merging=True)
    except NotAnUpdate as error:
        name, target = stage.assign.tensor, intrinsic.accumulator
        own = f"`{name}_before: {target.dtype}[{', '.join(map(str, target.shape))}]`"
        hint = f"let what it reads of {name} be an operand of its own, {own}"
        raise NotAnUpdate(error.message, hint=hint, location=error.location) from None
    named = [a for a in intrinsic.axes if "." in a.name]
    if not named:
        return replace(update, axes=intrinsic.axes)
    if len(named) > 1:
        raise NotAnUpdate(f"{intrinsic.name} is written out over more than one dimension")
    if update.combine is None:
        raise NotAnUpdate(f"{intrinsic.name} is written out over {named[0].name}, and adds nothing up")
    axis = named[0]
    terms, clamp = _unclamped(summands(update.term, update.combine), update, axis.name)
    templates, places = [], []
    for term in terms:
        place: set[int] = set()

        def lift(v: Value, place: set[int] = place) -> Value:
            if not isinstance(v, Read) or v.tensor not in intrinsic.operand_axes:
                return v
            index = list(v.index)
            for d, name in enumerate(intrinsic.operand_axes[v.tensor]):
                part = index[d]
                if name == axis.name and isinstance(part, Const):
                    place.add(part.value)
                    index[d] = Var(axis.name)
            return replace(v, index=tuple(index))

        templates.append(map_value(term, lift))
        places.append(place)
    covered = sorted(p for place in places for p in place)
    if len(set(templates)) != 1 or any(len(p) != 1 for p in places) or covered != list(range(axis.extent)):
        raise NotAnUpdate(
            f"{intrinsic.name}: its written-out terms are not one term at {axis.name} = 0 … {axis.extent - 1}, and "
            "what has `operands`, `emit` or `pseudocode` is matched as one term: without these each element named "
            "one by one is an operand of its own"
        )
    if clamp is not None:
        flat = [next(iter(place)) for place in places]
        groups = tuple(tuple(flat[k : k + clamp.group]) for k in range(0, len(flat), clamp.group))
        clamp = replace(clamp, groups=groups)
    return replace(update, term=templates[0], axes=intrinsic.axes, clamp=clamp)


def _unclamped(terms: list[Value], update: Update, axis: str) -> tuple[list[Value], Clamp | None]:
    """The terms with clamps of whole groups left out: `s32(sat_s16(x + y))` is x and y where the clamp does not act."""
    dtype = update.term.dtype
    groups = [g for t in terms if (g := _clamped_sum(t)) is not None]
    if update.combine != "+" or not dtype.is_integer or len(groups) != len(terms):
        return terms, None
    known = {(len(parts), into) for parts, into in groups if parts}
    if len(known) != 1:
        return terms, None
    ((size, into),) = known
    flat: list[Value] = [Cast(part, dtype) for parts, _ in groups for part in parts]
    return flat, Clamp(into, size, axis)


def _clamped_sum(term: Value) -> tuple[tuple[Value, ...], DType] | None:
    """The parts of `wide(sat_t(x + y + …))` and t, where the inner sum itself cannot wrap."""
    inner = term
    while isinstance(inner, Cast) and not inner.saturate and holds_integers(inner.operand.dtype, inner.dtype):
        inner = inner.operand
    if not (isinstance(inner, Cast) and inner.saturate and inner.dtype.is_integer and inner.operand.dtype.is_integer):
        return None
    parts = summands(inner.operand, "+")
    total = Range(0, 0)
    for part in parts:
        total = total + exact_range(part)
    if len(parts) < 2 or not total.within(inner.operand.dtype.limits):
        return None
    return tuple(parts), inner.dtype


def holds_integers(source: DType, wide: DType) -> bool:
    """Whether every value of an integer type is one of another."""
    if not (source.is_integer and wide.is_integer):
        return False
    return wide.limits[0] <= source.limits[0] and source.limits[1] <= wide.limits[1]


def negate(value: Value) -> Value:
    return value.operand if isinstance(value, Unary) and value.op == "-" else Unary("-", value, value.dtype)


def summands(value: Value, combine: str) -> list[Value]:
    """The terms of a sum (or product, minimum …) written out in one expression.

    A widening cast of a sum distributes over its terms only where the sum provably does not wrap.
    """
    if isinstance(value, Arith) and value.op == combine:
        return summands(value.left, combine) + summands(value.right, combine)
    if isinstance(value, Cast) and combine == "+" and not value.saturate:
        inner = summands(value.operand, combine)
        source = value.operand.dtype
        if len(inner) > 1 and source.is_integer and value.dtype.is_integer and value.dtype.bits >= source.bits:
            total = Range(0, 0)
            for term in inner:
                total = total + exact_range(term)
            if total.within(source.limits):
                return [Cast(term, value.dtype) for term in inner]
    return [value]


@dataclass(frozen=True)
class _Split:
    combine: str
    terms: tuple[Value, ...] = ()
    fused: bool = False
    saturate: DType | None = None
    negated: bool = False


def _is(read: Value, target: Read) -> bool:
    return isinstance(read, Read) and (read.tensor, read.index) == (target.tensor, target.index)


def _holds(value: Value, target: Read) -> bool:
    return any(_is(r, target) for r in reads(value))


def _split(value: Value, target: Read) -> _Split | None:
    """`value` as the target combined with terms; None where it is something else."""
    match value:
        case Read() if _is(value, target):
            return _Split("")
        case Arith("+" | "*" | "min" | "max" as op, left, right):
            for old, new in ((left, right), (right, left)):
                if _holds(old, target) and not _holds(new, target):
                    return _extend(_split(old, target), op, new)
        case Arith("-", left, right) if _holds(left, target) and not _holds(right, target):
            found = _extend(_split(left, target), "+", negate(right))
            return replace(found, negated=True) if found else None
        case Call("fma", (a, b, c)) if _holds(c, target) and not (_holds(a, target) or _holds(b, target)):
            found = _extend(_split(c, target), "+", Arith("*", a, b, value.dtype))
            return replace(found, fused=True) if found else None
        case Cast(inner, dtype, True) if dtype == target.dtype and dtype.is_integer:
            return _saturating(inner, target)
    return None


def _extend(found: _Split | None, op: str, term: Value) -> _Split | None:
    if found is None or found.saturate is not None or found.combine not in ("", op):
        return None
    return replace(found, combine=op, terms=(*found.terms, term))


def _saturating(inner: Value, target: Read) -> _Split | None:
    """`sat(wide(C) + x)`: a clamped addition, where the wide sum itself cannot wrap."""
    parts = summands(inner, "+")
    old = [p for p in parts if _is(p, target) or (isinstance(p, Cast) and _is(p.operand, target) and not p.saturate)]
    terms = tuple(p for p in parts if p not in old)
    if len(old) != 1 or not terms or any(_holds(t, target) for t in terms) or not inner.dtype.is_integer:
        return None
    total = exact_range(old[0])
    for term in terms:
        total = total + exact_range(term)
    if not total.within(inner.dtype.limits):
        return None
    return _Split("+", terms, saturate=target.dtype)
