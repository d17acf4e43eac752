"""Staged factors: a product of two functions of one element each, where the instruction takes the functions' values.

    (s32(W[p]) - 8) · s32(A[p])       W: u4; W' = s8(W) - 8 is within -8 … 7, so the instruction multiplies W' by A
    C -= f32(A[i]) · f32(B[i])        A' = -A: the sign of a float is a bit of its own
    (f32(A[i]) - 128.0) · f32(B[i])   A: u8; A' is an f16, every one of the 256 values

The function consists of sums, products and left shifts with literals, and conversions. It is proved for every value of
the element that its value survives the conversion to the instruction's type and back. A factor of the whole term (a
sign, an integer) goes to a side that can hold it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Assign
from autosched.ir.value import Arith, Call, Cast, Literal, Read, Unary, Value, converted, is_value, map_value, walk
from autosched.tensorize.adapters.proof import prove, prove_conversion
from autosched.tensorize.adapters.proposal import Adapted, NotProved, Proposal, adapted, lemma
from autosched.tensorize.adapters.site import Site
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.body.equal import canonical
from autosched.tensorize.body.intervals import unwrapped_range
from autosched.tensorize.intrinsic import Intrinsic


@dataclass(frozen=True)
class ElementFunction:
    """`value`, of the term's dtype, depends on the element `read` alone."""

    read: Read
    value: Value

    @property
    def plain(self) -> bool:
        """Whether it is the element itself, or a conversion of it."""
        return self.value == self.read or (isinstance(self.value, Cast) and self.value.operand == self.read)

    @property
    def negated(self) -> bool:
        """Whether it is minus the element, and no more."""
        return isinstance(self.value, Unary) and replace(self, value=self.value.operand).plain

    def staged(self, dtype: DType, read: Read | None = None) -> Value:
        """The value in the instruction's type, for the element or another one of its tensor."""
        value = canonical(converted(self.value, dtype))
        return value if read is None else map_value(value, lambda v: read if v == self.read else v)

    def name(self, dtype: DType) -> str:
        """The adapter in words."""
        tensor = self.read.tensor
        if self.plain:
            return f"widen {tensor} to {dtype}"
        if self.negated:
            return f"negate {tensor}" + (f" in {dtype}" if dtype != self.read.dtype else "")
        return f"stage {tensor} in {dtype}"


def staged(facts: StageFacts, intrinsic: Intrinsic) -> Sequence[Proposal]:
    """The term's two factors in the instruction's types, in the orders of these that convert the fewest."""
    update = facts.update
    inputs = [o.dtype for o in intrinsic.inputs]
    dtype = update.term.dtype
    fits = len(inputs) == 2 and dtype == update.target.dtype == intrinsic.accumulator.dtype
    if not fits or update.combine != "+" or update.saturate:
        return []
    found: dict[tuple[tuple[ElementFunction, DType], ...], int] = {}
    for factors in _factors(update.term, frozenset(t for t, v in facts.program.tensors.items() if v.const)):
        for types in dict.fromkeys(((inputs[0], inputs[1]), (inputs[1], inputs[0]))):
            chosen = tuple(zip(factors, types, strict=True))
            changed = sum(not (f.plain and f.read.dtype == t) for f, t in chosen)
            if changed and all(_may_hold(f, t) for f, t in chosen):
                found[chosen] = changed
    least = min(found.values(), default=0)
    return [_proposal(facts, chosen) for chosen, changed in found.items() if changed == least]


def _may_hold(function: ElementFunction, dtype: DType) -> bool:
    """Whether the type may hold the function's values, as far as ranges tell without trying every element."""
    value = function.value
    if value.dtype.is_integer != dtype.is_integer:
        return False
    if dtype.is_float or (function.plain and function.read.dtype == dtype):
        return True
    found = unwrapped_range(value)
    return found is not None and found.within(dtype.limits)


def _factors(term: Value, const: frozenset[str]) -> list[tuple[ElementFunction, ElementFunction]]:
    """The term as two functions of one element each; several ways, where a factor of the whole may go to either."""
    value = canonical(term)
    outer: list[Value] = []
    minus = isinstance(value, Unary) and value.op == "-"
    parts = _product(value.operand if isinstance(value, Unary) and minus else value)
    sides: list[ElementFunction] = []
    for part in parts:
        inside = list(dict.fromkeys(v for v in walk(part) if isinstance(v, Read)))
        if isinstance(part, Literal):
            outer.append(part)
        elif len(inside) == 1 and _arithmetic(part):
            sides.append(ElementFunction(inside[0], part))
        else:
            return []
    if len(sides) != 2:
        return []
    if not outer and not minus:
        return [(sides[0], sides[1])]
    found = []
    for k in sorted(range(2), key=lambda k: sides[k].read.tensor not in const):  # constants are staged once
        scaled = reduce(lambda a, b: Arith("*", a, b, value.dtype), outer, sides[k].value)
        taken = ElementFunction(sides[k].read, canonical(Unary("-", scaled, value.dtype) if minus else scaled))
        found.append((taken, sides[1]) if k == 0 else (sides[0], taken))
    return found if value.dtype.is_integer else found[:1]


def _product(value: Value) -> list[Value]:
    """The factors of a product; of floats the two of one multiplication, since they do not associate."""
    if isinstance(value, Arith) and value.op == "*":
        if value.dtype.is_integer:
            return [*_product(value.left), *_product(value.right)]
        return [value.left, value.right]
    return [value]


def _arithmetic(value: Value) -> bool:
    """Whether the element is only in sums, products and shifts with literals, and in conversions."""
    match value:
        case Read(_, index, _):
            return not any(is_value(i) for i in index)
        case Literal():
            return True
        case Cast(operand, _, False) | Unary("-", operand, _):
            return _arithmetic(operand)
        case Arith("+" | "-" | "*", left, right, _) if isinstance(left, Literal) or isinstance(right, Literal):
            return _arithmetic(left) and _arithmetic(right)
        case Arith("<<", left, Literal(), _):
            return _arithmetic(left)
    return False


def _proposal(facts: StageFacts, chosen: tuple[tuple[ElementFunction, DType], ...]) -> Proposal:
    update = facts.update
    dtype = update.term.dtype

    def make() -> Adapted:
        lemmas = []
        changed = [(f, t) for f, t in chosen if not (f.plain and f.read.dtype == t)]
        for function, into in dict.fromkeys(changed):
            if into != dtype:
                how = prove_conversion(function.staged(into), function.value)
                read = function.read
                text = f"{show_leaf(function.value)} is a {into} for every {read.dtype} {show_leaf(read)}"
                lemmas.append(lemma(text, how))
        after = Arith("*", chosen[0][0].value, chosen[1][0].value, dtype)
        if canonical(after) == canonical(update.term):
            how = "structure"
        elif dtype.is_integer:
            how = prove(update.term, after, facts.timeout_ms)
        else:
            raise NotProved(f"{show_leaf(update.term)} = {show_leaf(after)}")
        lemmas.append(lemma(f"{show_leaf(update.term)} = {show_leaf(after)}", how))
        site = Site(facts.program, facts.original, update)
        left, right = (_element(site, f, t, dtype) for f, t in chosen)
        core = _assign(facts, left, right)
        names = tuple(f.name(t) for f, t in dict.fromkeys(changed))
        return adapted(facts.program, site.with_assign(core), core, names, lemmas)

    return Proposal(("staged", chosen), make)


def _element(site: Site, function: ElementFunction, into: DType, dtype: DType) -> Value:
    """The factor as the new stage reads it, in the term's dtype."""
    read = function.read
    if not (function.plain and read.dtype == into):
        name = f"{read.tensor}_{'negated' if function.negated else into if function.plain else 'staged'}"
        read = site.converted(read, into, lambda r: function.staged(into, r), name)
    return converted(read, dtype)


def _assign(facts: StageFacts, left: Value, right: Value) -> Assign:
    """The stage's accumulation of the product, with as many roundings as the program's."""
    old, update = facts.original.assign, facts.update
    dtype = update.term.dtype
    target = update.target
    if update.fused:
        return Assign(target.tensor, target.index, "=", Call("fma", (left, right, target), dtype), old.location)
    return Assign(target.tensor, target.index, "+=", Arith("*", left, right, dtype), old.location)
