"""A term restated for an instruction: `c · x' · y' + rest`, where x' and y' are elements of the instruction's types."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

from autosched.ir.dtypes import DType
from autosched.ir.value import Arith, Cast, Literal, Read, Scalar, Unary, Value, converted, map_value
from autosched.logic import Int
from autosched.tensorize.adapters.integers.factor import AdaptedFactor, factor_of
from autosched.tensorize.adapters.integers.polynomial import Monomial, Polynomial, polynomial, signed
from autosched.tensorize.adapters.proof import prove
from autosched.tensorize.adapters.proposal import lemma
from autosched.tensorize.addresses.axes import value_axes
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.body.equal import canonical
from autosched.tensorize.match_types import Obligation

_MOST_PRODUCTS = 4
"""Products of one size that a term is taken apart into."""


@dataclass(frozen=True)
class Restated:
    """`term` (of `dtype`) is `coefficient · Π invariants · left · right + rest` modulo 2^bits of `dtype`; the
    product is summed in `wide`, at least as many bits. No atom of `invariants` moves along a reduction, those of each
    monomial of `rest` that do are summed."""

    term: Value
    wide: DType
    left: AdaptedFactor
    right: AdaptedFactor
    coefficient: int
    invariants: tuple[Value, ...]
    rest: Polynomial
    expanded: str = ""
    """What the parts of `rest` are that no shift explains: `zero points` (sums of one factor), `expand` (products that
    fewer elements need) or `split` (products as large as the first)."""

    @property
    def dtype(self) -> DType:
        return self.term.dtype

    @property
    def factors(self) -> tuple[AdaptedFactor, AdaptedFactor]:
        return self.left, self.right

    @property
    def plain(self) -> bool:
        """Whether the product can be added to the program's own accumulator."""
        return self.coefficient == 1 and not self.invariants and self.wide == self.dtype

    @property
    def converted(self) -> int:
        """How many of the two elements are."""
        return sum(f.converted for f in self.factors)

    @property
    def names(self) -> tuple[str, ...]:
        """The adapters, in words that `Mapping.adapters` lists."""
        found = [f.name for f in dict.fromkeys(self.factors) if f.converted]
        found += [self.expanded] if self.expanded else []
        if self.coefficient == -1:
            found.append("negate")
        elif self.coefficient != 1 or self.invariants:
            found.append("scale")
        if self.wide.bits > self.dtype.bits:
            found.append(f"truncate {self.wide} to {self.dtype}")
        elif self.wide != self.dtype:
            found.append(f"{self.wide} as {self.dtype}")
        return tuple(found)


def restate(term: Value, reduced: frozenset[str], wide: DType, types: tuple[DType, DType]) -> Restated | None:
    """The term for an instruction that multiplies elements of `types` into `wide`; None where it has no such form.
    `names` are empty where it is so already. Raises TooLong."""
    dtype = term.dtype
    if not dtype.is_integer or not wide.is_integer or dtype.bits > wide.bits:
        return None
    terms = polynomial(term)
    product = _main(terms, reduced)
    if product is None:
        return None
    coefficient = terms[product]
    moving = [a for a in product if value_axes(a) & reduced]
    reads = [_element(a) for a in moving]
    if len(moving) != 2 or reads[0] is None or reads[1] is None:
        return None
    left, right = factor_of(reads[0], types[0]), factor_of(reads[1], types[1])
    if left is None or right is None:
        return None
    invariants = tuple(a for a in product if a not in moving)
    rest = {m: c for m, c in terms.items() if m != product}
    if any(_axes(m) >= _axes(product) and not _is_product(m, reduced) for m in rest):
        return None  # what is left would be as much work, and none that an instruction could do
    expanded = _named(product, rest, reduced)
    # x y = (x + a)(y + b) - b x - a y - a b
    x, y = moving
    for atoms, offset in (((x,), right.offset), ((y,), left.offset), ((), left.offset * right.offset)):
        monomial = tuple(sorted((*invariants, *atoms), key=repr))
        rest[monomial] = rest.get(monomial, 0) - coefficient * offset
    rest = {m: signed(c, dtype) for m, c in rest.items() if signed(c, dtype)}
    return Restated(term, wide, left, right, coefficient, invariants, rest, expanded)


def proof_of(restated: Restated, timeout_ms: int) -> tuple[Obligation, ...]:
    """Proves the restated term equal to the term on all inputs; the argument, lemma by lemma. Raises NotProved."""
    wide = restated.wide
    lines = [f.lemma(wide, timeout_ms) for f in dict.fromkeys(restated.factors) if f.converted]
    x, y = (_shifted(f, wide) for f in restated.factors)
    product: Value = Cast(Arith("*", x, y, wide), restated.dtype)
    after = total(scaled(product, restated.coefficient, restated.invariants), restated.rest)
    plain, lemmas = unfolded(restated.term, timeout_ms)
    how = prove(plain, after, timeout_ms)
    lines += lemmas
    lines.append(lemma(f"{show_leaf(plain)} = {show_leaf(after)} modulo 2^{restated.dtype.bits} on all inputs", how))
    lines.append(
        lemma(
            "both sides are summed over the same points, and sums of equal terms are equal modulo "
            f"2^{restated.dtype.bits}; what does not move along the reduction is taken out of its sum",
            "structure",
        )
    )
    return tuple(lines)


def unfolded(term: Value, timeout_ms: int) -> tuple[Value, list[Obligation]]:
    """The term with widening casts moved to what their sums and products are made of, and shifts as products: each
    step proved on its own."""
    lines: list[Obligation] = []

    def on_value(node: Value) -> Value:
        dtype = node.dtype
        v, s = Scalar("v", dtype), Scalar("s", dtype)  # any values in the places of the operands
        match node:
            case Arith("<<", left, Literal(int(places), _)) if 0 <= places < dtype.bits:
                holes: dict[Value, Value] = {v: left}
                claim: tuple[Value, Value] = replace(node, left=v), Arith("*", v, _number(1 << places, dtype), dtype)
            case Arith("<<", left, places) if not isinstance(places, Literal):
                holes = {v: left, s: places}
                power = Arith("<<", Literal(1, dtype), s, dtype)
                claim = replace(node, left=v, right=s), Arith("*", v, power, dtype)
            case Unary("~", left):
                holes, minus = {v: left}, _number(-1, dtype)
                claim = replace(node, operand=v), _plus(Arith("*", v, minus, dtype), minus)
            case _:
                return widening(node)
        lines.append(lemma(f"{show_leaf(claim[0])} = {show_leaf(claim[1])}", prove(claim[0], claim[1], timeout_ms)))
        return map_value(claim[1], lambda x: holes.get(x, x))

    def widening(node: Value) -> Value:
        if (
            not isinstance(node, Cast)
            or not isinstance(node.operand, Arith | Unary)
            or not node.operand.dtype.is_integer
        ):
            return node
        if node.dtype.bits <= node.operand.dtype.bits or node.saturate:
            return node
        terms = polynomial(node)
        if len(terms) == 1 and canonical(node) in next(iter(terms)):
            return node
        found = total(Literal(0, node.dtype), terms)
        lines.append(lemma(f"{show_leaf(node)} = {show_leaf(found)}", prove(node, found, timeout_ms)))
        return found

    return map_value(term, on_value), list(dict.fromkeys(lines))


def scaled(value: Value, coefficient: int, factors: tuple[Value, ...]) -> Value:
    """`coefficient · Π factors · value`, all of value's dtype."""
    dtype = value.dtype
    found = reduce(lambda a, b: Arith("*", a, b, dtype), factors, value)
    if coefficient == -1:
        return Unary("-", found, dtype)
    return found if coefficient == 1 else Arith("*", found, _number(coefficient, dtype), dtype)


def total(start: Value, rest: Polynomial) -> Value:
    """`start` plus the monomials."""
    found = start
    for atoms, coefficient in rest.items():
        if not atoms:
            found = _plus(found, _number(coefficient, start.dtype))
            continue
        # A minus reads better than a factor of -1.
        minus = signed(coefficient, start.dtype) < 0 and signed(coefficient, start.dtype) != start.dtype.limits[0]
        value = scaled(atoms[0], -coefficient if minus else coefficient, atoms[1:])
        found = Arith("-" if minus else "+", found, value, start.dtype)
    return found


def _number(n: int, dtype: DType) -> Literal:
    low, _ = dtype.limits
    return Literal((n - low) % (1 << dtype.bits) + low, dtype)


def _shifted(factor: AdaptedFactor, wide: DType) -> Value:
    plain = converted(factor.read, wide)
    return _plus(plain, Literal(factor.offset, wide)) if factor.offset else plain


def _plus(a: Value, b: Value) -> Value:
    return Arith("+", a, b, a.dtype)


def _main(terms: Polynomial, reduced: frozenset[str]) -> Monomial | None:
    """The product of several moving atoms that is left to the instruction: the one that has all axes of the others and
    more, which are sums that many elements share; else the first of a few, the others being sums like it."""
    products = [m for m in terms if _moving(m, reduced) > 1]
    main = [m for m in products if all(_axes(n) < _axes(m) for n in products if n != m)]
    if main or len(products) > _MOST_PRODUCTS:
        return main[0] if main else None
    return next((m for m in products if all(_axes(n) <= _axes(m) for n in products)), None)


def _is_product(monomial: Monomial, reduced: frozenset[str]) -> bool:
    """Whether what moves of it is an element, or two."""
    moving = [a for a in monomial if value_axes(a) & reduced]
    return len(moving) <= 2 and all(_element(a) is not None for a in moving)


def _named(product: Monomial, rest: Polynomial, reduced: frozenset[str]) -> str:
    """`Restated.expanded` of a term."""
    products = [m for m in rest if _moving(m, reduced) > 1]
    if any(_axes(m) == _axes(product) for m in products):
        return "split"
    return "expand" if products else "zero points" if rest else ""


def _axes(monomial: Monomial) -> frozenset[str]:
    return frozenset().union(*(value_axes(a) for a in monomial))


def _moving(monomial: Monomial, reduced: frozenset[str]) -> int:
    return sum(bool(value_axes(a) & reduced) for a in monomial)


def _element(atom: Value) -> Read | None:
    """The element that an atom widens (or holds), addressed without data."""
    read = atom.operand if isinstance(atom, Cast) and not atom.saturate else atom
    if not isinstance(read, Read) or not read.dtype.is_integer or not all(isinstance(i, Int) for i in read.index):
        return None
    return read
