"""What stands in an operand where the program has no element, so that the step adds nothing: padding and guards.

For a sum that is zero in most bodies (`0 * b`), for a maximum the least value (`max(c, -inf)`), for a product one. The
question is asked of the instruction's term, since the instruction is what computes with the values put there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from math import inf, isinf, isnan

from autosched.ir import numerics
from autosched.ir.value import Arith, Call, Cast, Literal, Read, Unary, Value, map_value
from autosched.tensorize.body.canonical import canonical
from autosched.tensorize.body.counterexample import find_difference, leaves
from autosched.tensorize.body.equal import SIGN_OF_ZERO, Proof, prove_equal
from autosched.tensorize.body.intervals import exact_range
from autosched.tensorize.reduction.update import Update

MOST_OPERANDS = 3
_UNITS = {"+": 0, "*": 1}


@dataclass(frozen=True)
class Neutral:
    """`fills`: what is staged in each operand, a literal of its type. `sets`: the least sets of operands which add
    nothing once each of them holds its fill, whatever the others hold, with the operands that must be finite for that.
    `beside`: the least sets that do so where the same element has a real step besides. `unknown`: a limit was met."""

    fills: dict[str, Literal]
    sets: dict[frozenset[str], frozenset[str]]
    beside: dict[frozenset[str], frozenset[str]] = field(default_factory=dict)
    unknown: bool = False

    def choose(self, allowed: frozenset[str], beside: bool = False) -> frozenset[str] | None:
        """The first of the least sets within `allowed`."""
        known = [*self.sets, *(self.beside if beside else ())]
        return next((s for s in known if s <= allowed), None)

    @property
    def staged(self) -> dict[str, Literal]:
        """The fills that are not zero."""
        return {o: v for o, v in self.fills.items() if v.value != 0}


def neutral(update: Update, init: Value | None, timeout_ms: int) -> Neutral:
    """The best choice of fills for an instruction's update; `init` is the program's initial value."""
    operands = {r.tensor: r for r in update.operands}
    zeros = {o: Literal(0.0 if r.dtype.is_float else 0, r.dtype) for o, r in operands.items()}
    if update.combine is None:
        return Neutral(zeros, {frozenset(): frozenset()})
    best = _sets(update, init, zeros, timeout_ms)
    if best.sets or len(operands) > MOST_OPERANDS:
        return best
    for fills in product(*(_candidates(r) for r in operands.values())):
        found = _sets(update, init, dict(zip(operands, fills, strict=True)), timeout_ms)
        if _score(found) > _score(best):
            best = found
    return best


def _score(found: Neutral) -> tuple[int, int, int]:
    return len(found.sets), -min(map(len, found.sets), default=0), len(found.beside)


def _candidates(read: Read) -> Iterator[Literal]:
    dtype = read.dtype
    numbers: list[float | int] = [0.0, -inf, inf, 1.0] if dtype.is_float else [0, *dtype.limits, 1, -1]
    for number in dict.fromkeys(numbers):
        if dtype.is_float:
            if float(numerics.round_float(number, dtype)) == number:  # e4m3 has no infinity
                yield Literal(number, dtype)
        elif dtype.limits[0] <= number <= dtype.limits[1]:
            yield Literal(number, dtype)


def _sets(update: Update, init: Value | None, fills: dict[str, Literal], timeout_ms: int) -> Neutral:
    sets: dict[frozenset[str], frozenset[str]] = {}
    beside: dict[frozenset[str], frozenset[str]] = {}
    unknown = False
    for size in range(1, min(len(fills), MOST_OPERANDS) + 1):
        for names in map(frozenset, combinations(fills, size)):
            if any(s <= names for s in sets):
                continue
            finite: set[str] = set()
            answer = _adds_nothing(update, init, {o: fills[o] for o in names}, finite, timeout_ms)
            unknown = unknown or answer is None
            if answer == "always":
                sets[names] = frozenset(finite)
            elif answer == "beside" and not any(s <= names for s in beside):
                beside[names] = frozenset(finite)
    return Neutral(fills, sets, beside, unknown and not sets)


def filled(update: Update, fills: Mapping[str, Literal]) -> Value:
    """The update's term with literals for some operands."""
    return map_value(update.term, lambda v: fills.get(v.tensor, v) if isinstance(v, Read) else v)


def _adds_nothing(
    update: Update, init: Value | None, fills: Mapping[str, Literal], finite: set[str], timeout_ms: int
) -> str | None:
    """`always`, `beside` another step of the same element, `never`, or None where a limit was met."""
    term, combine, dtype = filled(update, fills), update.combine, update.target.dtype
    constant = constant_of(term, finite)
    if combine in _UNITS:
        if constant is not None:
            return "always" if constant == _UNITS[combine] else "never"
        if dtype.is_float:
            return "never"
        proof = prove_equal(term, Literal(_UNITS[combine], term.dtype), timeout_ms)
        return None if proof.status == "unknown" else "always" if proof.status == "proved" else "never"
    low = combine == "max"
    if dtype.is_float:
        if constant is None:
            return "never"
        return "always" if _beyond(constant, -inf if low else inf, init, low) else "never"
    found = exact_range(term)
    reached = found.high if low else found.low
    if _beyond(reached, dtype.limits[0] if low else dtype.limits[1], init, low):
        return "always"
    every = exact_range(update.term)
    return "beside" if (reached <= every.low if low else reached >= every.high) else "never"


def _beyond(reached: float, end: float, init: Value | None, low: bool) -> bool:
    """Whether a value is never taken: at the type's end, or past the initial value."""
    if isinstance(init, Literal):
        end = max(end, init.value) if low else min(end, init.value)
    return reached <= end if low else reached >= end


def constant_of(value: Value, finite: set[str]) -> float | int | None:
    """The one value of an expression, but for the sign of a zero; what must be finite for that goes into `finite`."""
    match canonical(value, value.dtype.is_float):
        case Literal(number, _):
            return number
    match value:
        case Literal(number, _):
            return number
        case Cast(operand, dtype, saturate):
            inner = constant_of(operand, finite)
            return None if inner is None else _number(Cast(_literal(inner, operand), dtype, saturate))
        case Unary("-", operand, _):
            inner = constant_of(operand, finite)
            return None if inner is None else _number(Unary("-", _literal(inner, operand), value.dtype))
        case Call("abs", (operand,), _):
            inner = constant_of(operand, finite)
            return None if inner is None else _number(Call("abs", (_literal(inner, operand),), value.dtype))
        case Arith(op, left, right, dtype):
            a, b = constant_of(left, finite), constant_of(right, finite)
            if a is not None and b is not None:
                return _number(Arith(op, _literal(a, left), _literal(b, right), dtype))
            known, other = (a, right) if a is not None else (b, left)
            if known is None:
                return None
            if op == "*" and known == 0:
                if dtype.is_float:
                    finite |= _names(other)
                return 0
            if dtype.is_float and isinf(known) and op in ("+", "-"):
                finite |= _names(other)
                return -known if op == "-" and a is None else known
    return None


def _literal(number: float | int, like: Value) -> Literal:
    return Literal(float(number) if like.dtype.is_float else int(number), like.dtype)


def _number(value: Value) -> float | int | None:
    match canonical(value):
        case Literal(number, _) if not isnan(number):
            return number
    return None


def _names(value: Value) -> set[str]:
    return {leaf.tensor for leaf in leaves(value) if isinstance(leaf, Read)}


def assumptions(
    finite: frozenset[str], shown: Mapping[str, str], of_floats: bool, combine: str | None
) -> tuple[str, ...]:
    """What staging fills of floats assumes; `shown` is how the program names an operand's element."""
    if not of_floats:
        return ()
    said = tuple(sorted({f"{shown[o]} is finite where it meets a zero" for o in finite}))
    return (*said, SIGN_OF_ZERO) if combine == "+" else said


def shown_to_matter(update: Update, fills: Mapping[str, Literal]) -> Proof:
    """That a step with these fills does change the accumulator, with values for which it does."""
    before = update.target
    op = update.combine or "+"
    term = filled(update, fills)
    term = term if term.dtype == before.dtype else Cast(term, before.dtype)
    return Proof("differs", "running", find_difference(before, Arith(op, before, term, before.dtype)))
