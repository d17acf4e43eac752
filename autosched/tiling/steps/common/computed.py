"""Operands computed in the load: what each element that they are computed from looks like to the nest, and what
computing them costs.

An element that moves with the operand is read from a narrow panel, re-laid before the run in the order of use, or from
its tensor. One that stays for a group of depth units (`S[p // 32, j]`, a scale) is loaded once for each group, in a
loop of its own around the group's units. Of elements of four bits a narrow panel has two in a byte, neighbours along
the depth; where floats are made of them without a conversion (`codegen.lower`) 32 bits have eight, or four of eight
bits. An element that stays for two units (`W[p // 2, j]`, a byte with two weights in it) is read like a byte of two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from math import gcd
from typing import TypeGuard

from autosched.backends import backend_of
from autosched.ir.dtypes import dtype
from autosched.ir.value import Arith, Call, Cast, Literal, Read, Select, Value, blank, is_plain, map_value, walk
from autosched.ir.value import children as parts_of
from autosched.logic import TRUE, Binary, Const, Int, Var, free_vars
from autosched.logic.walk import children, substitute_int
from autosched.tensorize.addresses.axes import value_axes
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.integer_differences import lifted, map_differences
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.on_the_way import LOAD, PACKING, OnTheWay
from autosched.tiling.steps.common.layout import panel_elements, tensor_elements, vectorises

FEW_BITS = 4
FEW = dtype("u4")
PAIR = 2
WORDS = {FEW_BITS: (8, 4), 8: (4,)}
"""How many elements of so many bits a word may have, where floats are made of them without a conversion. Elsewhere a
byte has two of four bits, and an element of eight is by itself."""
FUNCTION = 20
"""Operations of a function's formula, as of `exp`."""
TAKING_OUT = 1
"""Operations that take an element out of a word: a shift or a mask of what all of them are loaded by."""
PADDING = 2
"""A narrow panel may hold so many times the elements of its tensor (whole registers, past the ends)."""


@dataclass(frozen=True)
class SourceElement:
    """An element that an operand is computed from. `nest`: the nest as if the operand were this element; where it stays
    for the units of a group (`grouped`) the depth counts groups there. `panel`: whether it is re-laid before the run.
    `word`: how many units of the depth `nest` counts as one; `joined`: since so many elements were put in a word."""

    read: Read
    nest: Nest
    panel: bool
    grouped: bool = False
    word: int = 1
    joined: bool = False

    def moves(self, operand: str) -> bool:
        """Whether it may be another one at each depth unit."""
        depth = self.nest.depth
        return not self.grouped and depth is not None and depth in self.nest.operand_axes(operand)


def loaded(nest: Nest, operand: str) -> bool:
    """Whether an operand is computed where its registers are loaded."""
    return operand in nest.computed and nest.computed[operand].place == LOAD


@of_nest
def sources(nest: Nest, operand: str) -> tuple[SourceElement, ...] | None:
    """What the operand is computed from; None where some of it cannot be loaded as vectors, or where the nest needs
    more of the operand than its elements: fills, whole matrices."""
    matrices = nest.intrinsic.matrices is not None or operand in nest.intrinsic.windows
    cut = [a for a in nest.operand_axes(operand) if a.reduction and a.extent % a.unit]
    if matrices or nest.guarded[operand] != TRUE or nest.mapping.fills.get(operand) or cut:
        return None
    found = [_source(nest, operand, read) for read in nest.computed[operand].sources]
    return None if any(s is None for s in found) else tuple(s for s in found if s is not None)


def _source(nest: Nest, operand: str, read: Read) -> SourceElement | None:
    if not is_plain(read.index):
        return None
    const = nest.mapping.program.tensors[read.tensor].const
    group = group_units(nest, operand)
    grouped = group > 1 and nest.depth is not None and _stays(read, nest.depth, group)
    word = PAIR if nest.depth is not None and _counts(nest.depth) and _by_pairs(read, nest.depth) else 1
    grouped = grouped and word == 1
    seen = _as_operand(nest, operand, read, group if grouped else word)
    try:
        _ = seen.placed_guards
    except LookupError:
        return None  # only a choice in the value keeps it inside its tensor
    least = max(tensor_elements(seen, operand), nest.intrinsic.operands[operand].elements)
    along = grouped or word > 1 or set(nest.operand_axes(operand)) <= set(seen.operand_axes(operand))
    if const and along and panel_elements(seen, operand) <= PADDING * least:
        alone = not grouped and word == 1
        if alone and _counts(nest.depth) and nest.depth.extent > 1 and (several := word_units(nest, operand, read)) > 1:
            seen = _in_words(nest, operand, read, nest.depth, several)
            return SourceElement(read, seen, True, word=several, joined=True)
        return SourceElement(read, seen, True, grouped, word)
    return SourceElement(read, seen, False, grouped, word) if vectorises(seen, operand) else None


@of_nest
def word_units(nest: Nest, operand: str, read: Read) -> int:
    """How many elements of a tensor a word of its narrow panel has, neighbours along the depth: of WORDS the most that
    divide the depth and its groups, where floats are made of them without a conversion."""
    assert nest.depth is not None
    bits = read.dtype.bits
    least = PAIR if bits == FEW_BITS else 1
    if not tabled(nest) or nest.intrinsic.operands[operand].dtype.name != "f32":
        return least
    if bits > FEW_BITS and not _in_differences(nest.computed[operand].value, read):
        return least  # no table has so many numbers
    group = group_units(nest, operand)
    units = gcd(nest.depth.full_units, group) if group > 1 else nest.depth.full_units
    return next((w for w in WORDS.get(bits, ()) if units % w == 0), least)


def _in_differences(value: Value, read: Read) -> bool:
    """Whether a value has the element in differences of integers as floats alone."""

    def without(left: Value, right: Value) -> tuple[Value, Value]:
        first, second = (Literal(0.0, side.dtype) if _lifts(side, read) else side for side in (left, right))
        return first, second

    return read not in set(walk(map_differences(value, without)))


def _lifts(side: Value, read: Read) -> bool:
    found = lifted(side)
    return found is not None and found[0] == read


def tabled(nest: Nest) -> bool:
    """Whether one instruction takes a register's lanes out of a table of all numbers of four bits."""
    permutes = backend_of(nest.intrinsic.isa).permutes
    return any(n >= 1 << FEW_BITS for feature, n in permutes if feature in nest.intrinsic.requires)


def _counts(depth: NestAxis | None) -> TypeGuard[NestAxis]:
    """Whether the depth's units are values of a program axis."""
    return depth is not None and depth.unit == 1 and len(depth.members) == 1 and depth.members[0][1] == 0


def _in_words(nest: Nest, operand: str, read: Read, depth: NestAxis, count: int) -> Nest:
    """The nest with words in the operand's place, of so many neighbours along the depth each: the first has the lowest
    bits."""
    size = read.dtype.bits
    word = dtype(f"u{count * size}")

    def bits(unit: Int) -> Value:
        index = tuple(substitute_int(i, {depth.name: unit}) for i in read.index if isinstance(i, Int))
        element: Value = replace(read, index=index)
        if element.dtype.is_float:
            element = Call(f"bits_{FEW}", (element,), FEW)
        return Arith("&", Cast(element, word), Literal((1 << size) - 1, word), word)

    def place(k: int) -> Value:
        here = bits(Var(depth.name) * count + k)
        if k and depth.extent % count:
            here = Select(Var(depth.name) * count + k < depth.extent, here, Literal(0, word), word)
        return Arith("<<", here, Literal(k * size, word), word) if k else here

    joined = reduce(lambda left, right: Arith("|", left, right, word), map(place, range(count)))
    seen = _with_depth(nest, depth, -(-depth.extent // count))
    index = tuple(substitute_int(i, {depth.name: Var(depth.name) * count}) for i in read.index if isinstance(i, Int))
    mapping = replace(nest.mapping, operands={**nest.mapping.operands, operand: replace(read, index=index)})
    return replace(seen, mapping=mapping, computed={operand: OnTheWay(read.tensor, "", joined, PACKING)})


def _with_depth(nest: Nest, depth: NestAxis, extent: int) -> Nest:
    (name, lower, _), *_ = depth.members
    short = replace(depth, extent=extent, members=((name, lower, extent),))
    return replace(nest, axes=tuple(short if a is depth else a for a in nest.axes))


def _as_operand(nest: Nest, operand: str, read: Read, group: int) -> Nest:
    """The nest with the element in the operand's place; of a group of depth units, with the depth in groups."""
    if group > 1:
        assert nest.depth is not None
        read = replace(read, index=tuple(_in_groups(i, nest.depth, group) for i in read.index if isinstance(i, Int)))
        nest = _with_depth(nest, nest.depth, -(-nest.depth.extent // group))
    mapping = replace(nest.mapping, operands={**nest.mapping.operands, operand: read})
    return replace(nest, mapping=mapping, computed={})


@of_nest
def group_units(nest: Nest, operand: str) -> int:
    """Depth units for which some of what the operand is computed from stays: of the divisors of the depth in their
    addresses what divides all; 1 where there are none."""
    depth = nest.depth
    if not _counts(depth) or depth is not nest.blocked_reduction or not loaded(nest, operand):
        return 1
    if nest.stepped != TRUE:  # rows end within a group: no loop over all of its units keeps what stays for it
        return 1
    counted = [r for r in nest.computed[operand].sources if is_plain(r.index) and not _by_pairs(r, depth)]
    divisors = [d for r in counted for d in _divisors(r, depth)]
    return gcd(*divisors) if divisors else 1


def _by_pairs(read: Read, depth: NestAxis) -> bool:
    """Whether the element stays for two depth units: loops around so few would be worth nothing."""
    divisors = _divisors(read, depth)
    return bool(divisors) and gcd(*divisors) == PAIR


def _divisors(read: Read, depth: NestAxis) -> list[int]:
    """The number by which each subscript divides the depth, where that is all that the element has of it."""
    found = []
    for part in read.index:
        if isinstance(part, Int) and depth.name in free_vars(part):
            inside = _quotients(part, depth.name)
            if inside is None:
                return []
            found += inside
    return found


def _quotients(part: Int, name: str) -> list[int] | None:
    """The divisors of `name // d` in an expression; None where it has the variable elsewhere too."""
    match part:
        case Binary("//", Var(inner), Const(d)) if inner == name and d > 0:
            return [d]
        case Var(inner) if inner == name:
            return None
    found: list[int] = []
    for child in children(part):
        inside = _quotients(child, name) if isinstance(child, Int) else []
        if inside is None:
            return None
        found += inside
    return found


def _stays(read: Read, depth: NestAxis, group: int) -> bool:
    divisors = _divisors(read, depth)
    return bool(divisors) and all(d % group == 0 for d in divisors)


def _in_groups(part: Int, depth: NestAxis, group: int) -> Int:
    """A subscript of an element that stays for a group, over the number of the group."""
    match part:
        case Binary("//", Var(inner), Const(d)) if inner == depth.name:
            return Var(inner) // (d // group)
        case Binary(op, left, right):
            return Binary(op, _in_groups(left, depth, group), _in_groups(right, depth, group))
    return part


@of_nest
def element_bytes(nest: Nest, operand: str) -> float:
    """Bytes of memory behind one element of the operand: what is read for it, where it is computed in the load."""
    if not loaded(nest, operand):
        return float(nest.intrinsic.operands[operand].dtype.bytes)
    units = 1 if nest.depth is None else nest.depth.units
    size = 0.0
    for source in sources(nest, operand) or ():
        share = group_units(nest, operand) if source.grouped else 1 if source.moves(operand) else units
        share *= PAIR if source.word > 1 else 1
        size += nest.mapping.program.tensors[source.read.tensor].dtype.bytes / share
    return size


@of_nest
def kept_parts(nest: Nest, operand: str) -> tuple[Value, ...]:
    """The largest parts of the value that stay for a group of depth units, or for all: registers hold them meanwhile.
    What a choice keeps from being computed is no such part."""

    def parts(value: Value) -> tuple[Value, ...]:
        if not any(isinstance(v, Read) for v in walk(value)):
            return ()
        if stays(nest, operand, value):
            return (value,)
        return () if isinstance(value, Read | Select) else tuple(p for v in parts_of(value) for p in parts(v))

    return tuple(dict.fromkeys(parts(nest.computed[operand].value))) if loaded(nest, operand) else ()


def stays(nest: Nest, operand: str, value: Value) -> bool:
    """Whether a part of an operand's value is the same for all depth units of a group."""
    found = sources(nest, operand) or ()
    grouped = {s.read: blank(s.read.dtype) for s in found if s.grouped}
    depth = {name for name, _, _ in nest.depth.members} if nest.depth is not None else set()
    return not depth & value_axes(map_value(value, lambda v: grouped.get(v, v) if isinstance(v, Read) else v))


@of_nest
def long_words(nest: Nest, operand: str) -> int:
    """Words of more than two elements behind one of the operand: registers hold them for as many depth units."""
    return sum(s.joined and s.word > PAIR for s in sources(nest, operand) or ())


@of_nest
def operations(nest: Nest, operand: str) -> int:
    """Vector operations for one register of the operand at each depth unit, its loads aside."""
    if not loaded(nest, operand):
        return 0
    kept, found = kept_parts(nest, operand), sources(nest, operand) or ()
    words = {s.read for s in found if s.joined and s.word > PAIR}

    def count(value: Value) -> int:
        if value in kept or not any(isinstance(v, Read) for v in walk(value)):
            return 0
        if isinstance(value, Cast) and value.operand in words:  # out of a table, or where a mask is paid for anyway
            return TAKING_OUT + 1 if value.dtype.is_float else 0
        return _operations(value) + sum(map(count, parts_of(value)))

    taken_out = sum(s.joined and s.word == PAIR for s in found) * TAKING_OUT
    return count(nest.computed[operand].value) + taken_out


def _operations(value: Value) -> int:
    """Of one node: integers of fewer bits become floats by way of 32 bits."""
    match value:
        case Read():
            return 0
        case Call(function):
            return 0 if function.startswith("bits_") else FUNCTION
        case Cast(operand, into, _) if operand.dtype.is_integer and operand.dtype.bits < 32 and into.is_float:
            return 2
    return 1
