"""Types in which the sides of a product may be held, so that an instruction takes them.

    f32(X[i, p]) * (f32(W[p, j]) - f32(Z[p // 32, j]))      W, Z: u4; every difference is an f16: proved, value by value
    X[i, p] * W[p, j]                                       f32; rounded to tf32, where a level allows that

A side that is computed is held exactly if its values survive the conversion and back, for all values of the elements in
it. Where rounding is allowed, no range gets smaller, and no side is rounded to fewer bits than tf32 has, or than
the coarsest float among the elements.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from math import prod

from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.value import Arith, Cast, Literal, Read, Unary, Value, converted, walk
from autosched.tensorize.adapters.proof import prove_conversion
from autosched.tensorize.adapters.proposal import NotProved, lemma
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.body.equal import holds
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Obligation

BYTE = 8


@dataclass(frozen=True)
class SideTypes:
    """`types`: for each side that is converted the type it is held in; `rounded`: those of them that change it; `how`
    the others were proved."""

    types: tuple[tuple[Value, DType], ...]
    rounded: tuple[Value, ...] = ()
    how: tuple[str, ...] = ()

    @property
    def lemmas(self) -> tuple[Obligation, ...]:
        found = []
        exact = [(s, t) for s, t in self.types if s not in self.rounded]
        for (side, into), how in zip(exact, self.how, strict=True):
            found.append(lemma(f"{show_leaf(side)} is a {into} for all values of its elements", how))
        for side in self.rounded:
            into = dict(self.types)[side]
            text = f"{into}({show_leaf(side)}) is within 2^-{into.mantissa + 1} of it, relative, but for subnormals"
            found.append(lemma(text, "structure"))
        return tuple(found)


def multiplies_matrices(intrinsic: Intrinsic) -> bool:
    """Whether one call adds up several products of two elements for each sum."""
    return len(intrinsic.inputs) == 2 and prod(a.extent for a in intrinsic.reduction) > 1


def side_types(
    sides: Sequence[Value], dtype: DType, computed: Collection[Value], intrinsics: Iterable[Intrinsic], rounding: bool
) -> list[SideTypes]:
    """The ways to hold two `sides` of a product that is summed in `dtype`, in types of instructions that multiply
    matrices; those that are exact, or if there are none and `rounding` is allowed, those that round the fewest sides.
    `computed` are sides that get an intermediate of their own in any case."""
    if len(sides) != 2 or not dtype.is_float:
        return []
    wanted = {
        tuple(o.dtype for o in i.inputs)
        for i in intrinsics
        if multiplies_matrices(i) and i.accumulator.dtype == dtype
    }
    found: dict[tuple[tuple[Value, DType], ...], SideTypes] = {}
    for pair in sorted(wanted, key=str):
        for types in dict.fromkeys((pair, pair[::-1])):
            way = _held(sides, types, computed, rounding)
            if way is not None and way.types and way.types not in found:
                found[way.types] = way
    least = min((len(w.rounded) for w in found.values()), default=0)
    return [w for w in found.values() if len(w.rounded) == least]


def _held(
    sides: Sequence[Value], types: Sequence[DType], computed: Collection[Value], rounding: bool
) -> SideTypes | None:
    chosen, rounded, how = dict[Value, DType](), [], list[str]()
    for side, into in zip(sides, types, strict=True):
        if side.dtype == into:
            continue
        if isinstance(side, Read) and side not in computed and holds(side.dtype, into):
            continue  # it is widened as any element is
        said = exactly(side, into) if side in computed else None
        if said is None and not (rounding and _may_round(sides, side, into)):
            return None
        if chosen.setdefault(side, into) != into:
            return None
        if said is None:
            rounded.append(side)
        else:
            how.append(said)
    return SideTypes(tuple(chosen.items()), tuple(dict.fromkeys(rounded)), tuple(how))


def _may_round(sides: Sequence[Value], side: Value, into: DType) -> bool:
    if not (side.dtype.is_float and into.is_float) or into.fnuz or into.finite:
        return False
    elements = (s.dtype for s in sides if isinstance(s, Read) and not s.dtype.scale)
    least = min([DTYPES["tf32"].mantissa, *(t.mantissa for t in elements)])
    (low, high), (into_low, into_high) = side.dtype.exponents, into.exponents
    range_kept = into_high >= high and into_low <= low + side.dtype.mantissa
    return into.mantissa >= least and range_kept


def exactly(value: Value, into: DType) -> str | None:
    """How it was shown that `value` is a number of the type for all values of its elements; None where it was not.
    Parts of up to a byte count as any value of their type."""
    value = _opened(value, count())
    if not any(isinstance(v, Read) for v in walk(value)) or value.dtype.is_integer != into.is_integer:
        return None
    try:
        return prove_conversion(converted(value, into), value)
    except (NotProved, KeyError):  # the latter: numbers that are no elements
        return None


def _opened(value: Value, numbers: Iterator[int]) -> Value:
    """The value with its outermost parts of up to a byte as elements that nothing is known of."""
    if isinstance(value, Read | Literal):
        return value
    if value.dtype.bits <= BYTE and value.dtype.kind != "bool":
        return Read(f"part {next(numbers)}", (), value.dtype)
    match value:
        case Arith(op, left, right, dtype):
            return Arith(op, _opened(left, numbers), _opened(right, numbers), dtype)
        case Cast(operand, dtype, saturate):
            return Cast(_opened(operand, numbers), dtype, saturate)
        case Unary(op, operand, dtype):
            return Unary(op, _opened(operand, numbers), dtype)
    return value
