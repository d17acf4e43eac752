"""What stands in an operand where the program has no element, so that the step adds nothing: padding and guards.

For a sum that is zero in most bodies (`0 * b`), for a maximum the least value (`max(c, -inf)`), for a product one. The
question is asked of the instruction's term, since the instruction is what computes with the values put there. Of floats
a zero takes away only what is finite: what it meets, as `exp(a)` in `exp(a) * 0`, is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from math import inf, isinf, isnan

from autosched.ir.oracle import numerics
from autosched.ir.printer import print_value
from autosched.ir.value import (
    Arith,
    Call,
    Cast,
    Literal,
    Read,
    Select,
    Unary,
    Value,
    blank,
    converted,
    map_value,
    reads,
)
from autosched.tensorize.body.canonical import canonical
from autosched.tensorize.body.counterexample import differs_at_once, find_difference, show_leaf
from autosched.tensorize.body.equal import Proof, prove_equal
from autosched.tensorize.body.exact import holds
from autosched.tensorize.body.intervals import exact_range
from autosched.tensorize.reduction.update import Update

MOST_OPERANDS = 3
_UNITS = {"+": 0, "*": 1}
_SHARE = 4
"""The part of a question's time that one on a fill gets is one in so many."""
_MOST_UNKNOWN = 2
"""After so many answers of a solver that gave up, it is not asked about fills again."""

Factors = frozenset[Value]
"""What must be finite: values of the instruction's operands."""


@dataclass(frozen=True)
class Neutral:
    """`fills`: what is staged in each operand, a literal of its type. `sets`: the least sets of operands which add
    nothing once each of them, and any others, hold their fills, with the factors that must be finite for that.
    `beside`: the least sets that do so where the same element has a real step besides. `unknown`: a limit was met.
    `known`: the factors of all sets that were looked at and add nothing."""

    fills: dict[str, Literal]
    sets: dict[frozenset[str], Factors]
    beside: dict[frozenset[str], Factors] = field(default_factory=dict)
    unknown: bool = False
    known: dict[frozenset[str], Factors] = field(default_factory=dict)

    def choose(
        self,
        allowed: frozenset[str],
        beside: bool = False,
        cheap: frozenset[str] = frozenset(),
        preferred: frozenset[str] = frozenset(),
    ) -> frozenset[str] | None:
        """The set within `allowed` to stage: one that leaves no computed factor to be finite if there is one, then of
        fewest operands (those in `cheap` count nothing), then of most in `preferred`, then the first."""
        sets = [s for s in self.sets if s <= allowed]
        if not sets:
            return next((s for s in self.beside if s <= allowed), None) if beside else None
        wider = [s for s in self.known if s <= allowed and any(t < s for t in sets)]

        def cost(names: frozenset[str]) -> tuple[int, ...]:
            computed = sum(not is_element(f) for f in self.finite(names))
            return computed, len(names - cheap), len(names - preferred)

        return min([*sets, *wider], key=cost)

    def finite(self, names: frozenset[str]) -> Factors:
        """What must be finite once these operands hold their fills."""
        if names in self.known:
            return self.known[names]
        return next((f for s, f in (*self.sets.items(), *self.beside.items()) if s <= names), frozenset())

    @property
    def staged(self) -> dict[str, Literal]:
        """The fills whose bits are not zero."""
        return {o: v for o, v in self.fills.items() if v.value != v.dtype.blank}


def neutral(update: Update, init: Value | None, timeout_ms: int) -> Neutral:
    """The best choice of fills for an instruction's update; `init` is the program's initial value."""
    operands = {r.tensor: r for r in update.operands}
    zeros = {o: blank(r.dtype) for o, r in operands.items()}
    if update.combine is None:
        return Neutral(zeros, {frozenset(): frozenset()})
    asked = _Questions(update, init, max(1, timeout_ms // _SHARE))
    best = _sets(asked, zeros)
    if best.sets or len(operands) > MOST_OPERANDS:
        return best
    for fills in product(*(_candidates(r) for r in operands.values())):
        found = _sets(asked, dict(zip(operands, fills, strict=True)))
        if _score(found, update) > _score(best, update):
            best = found
    return best


def of_any(found: Neutral, update: Update, init: Value | None, timeout_ms: int) -> Neutral:
    """What the fills of `found` do to an element that may hold anything, and not only what follows from `init`."""
    if init is None or update.combine in _UNITS or update.combine is None:
        return found  # the initial value did not count
    return _sets(_Questions(update, None, max(1, timeout_ms // _SHARE)), found.fills)


def _score(found: Neutral, update: Update) -> tuple[int, ...]:
    """More sets are better, and smaller ones; in a sum no infinity, which other values could meet."""
    infinite = sum(v.dtype.is_float and isinf(v.value) for v in found.fills.values()) if update.combine == "+" else 0
    smallest = min(map(len, found.sets), default=0)
    return bool(found.sets), -infinite, len(found.sets), -smallest, len(found.beside)


def _candidates(read: Read) -> Iterator[Literal]:
    dtype = read.dtype
    numbers: list[float | int] = [dtype.blank, -inf, inf, 1.0] if dtype.is_float else [0, *dtype.limits, 1, -1]
    for number in dict.fromkeys(numbers):
        if dtype.is_float:
            if float(numerics.round_float(number, dtype)) == number:  # e4m3 has no infinity
                yield Literal(number, dtype)
        elif dtype.limits[0] <= number <= dtype.limits[1]:
            yield Literal(number, dtype)


class _Questions:
    """What fills of some operands do, each asked once. `unknown` counts the answers of a solver that gave up."""

    def __init__(self, update: Update, init: Value | None, timeout_ms: int) -> None:
        self.update = update
        self.init = init
        self.timeout_ms = timeout_ms
        self.unknown = 0
        self._answers: dict[frozenset[tuple[str, Literal]], tuple[str | None, Factors]] = {}

    def __call__(self, fills: Mapping[str, Literal]) -> tuple[str | None, Factors]:
        """`always`, `beside` another step of the same element, `never`, or None where a limit was met; and what must
        be finite."""
        key = frozenset(fills.items())
        if key not in self._answers:
            finite: set[Value] = set()
            answer = self._answered(fills, finite)
            self.unknown += answer is None
            self._answers[key] = answer, frozenset(finite)
        return self._answers[key]

    def _answered(self, fills: Mapping[str, Literal], finite: set[Value]) -> str | None:
        update = self.update
        term, combine, dtype = filled(update, fills), update.combine, update.target.dtype
        constant = constant_of(term, finite)
        if combine in _UNITS:
            if constant is not None:
                return "always" if constant == _UNITS[combine] else "never"
            unit = Literal(_UNITS[combine], term.dtype)
            if dtype.is_float or differs_at_once(term, unit):
                return "never"
            if self.unknown >= _MOST_UNKNOWN:
                return None
            proof = prove_equal(term, unit, self.timeout_ms)
            return None if proof.status == "unknown" else "always" if proof.status == "proved" else "never"
        low = combine == "max"
        if dtype.is_float:
            if constant is None:
                return "never"
            return "always" if _beyond(constant, -inf if low else inf, self.init, low) else "never"
        found = exact_range(term)
        reached = found.high if low else found.low
        if _beyond(reached, dtype.limits[0] if low else dtype.limits[1], self.init, low):
            return "always"
        every = exact_range(update.term)
        return "beside" if (reached <= every.low if low else reached >= every.high) else "never"


def _sets(asked: _Questions, fills: dict[str, Literal]) -> Neutral:
    of_floats = asked.update.target.dtype.is_float
    known: dict[frozenset[str], Factors] = {}
    beside: dict[frozenset[str], Factors] = {}
    refused: list[frozenset[str]] = []
    unknown = False
    sizes = [*range(1, min(len(fills), MOST_OPERANDS) + 1)]
    for size in dict.fromkeys((*sizes, len(fills))):
        for names in map(frozenset, combinations(fills, size)):
            if not of_floats and any(s <= names for s in known):
                known[names] = frozenset()  # whatever the others hold, their fills too
                continue
            answer, finite = asked({o: fills[o] for o in fills if o in names})
            unknown = unknown or answer is None
            if answer == "always":
                known[names] = finite
            else:
                refused.append(names)
                if answer == "beside" and not any(s <= names for s in beside):
                    beside[names] = finite
    # Of floats another fill may undo it, as rsqrt(0) * 0: where several are staged, each of the wider sets must do.
    lasting = {s: f for s, f in known.items() if not any(s < r for r in refused)}
    least = {s: f for s, f in lasting.items() if not any(t < s for t in lasting)}
    return Neutral(fills, least, beside, unknown and not least, lasting)


def filled(update: Update, fills: Mapping[str, Literal]) -> Value:
    """The update's term with literals for some operands."""
    return map_value(update.term, lambda v: fills.get(v.tensor, v) if isinstance(v, Read) else v)


def _beyond(reached: float, end: float, init: Value | None, low: bool) -> bool:
    """Whether a value is never taken: at the type's end, or past the initial value."""
    if isinstance(init, Literal):
        end = max(end, init.value) if low else min(end, init.value)
    return reached <= end if low else reached >= end


def constant_of(value: Value, finite: set[Value]) -> float | int | None:
    """The one value of an expression, but for the sign of a zero; factors that must be finite for that go into
    `finite`."""
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
        case Select(_, then, other, _):
            a, b = constant_of(then, finite), constant_of(other, finite)
            return a if a == b else None
        case Arith(op, left, right, dtype):
            a, b = constant_of(left, finite), constant_of(right, finite)
            if a is not None and b is not None:
                return _number(Arith(op, _literal(a, left), _literal(b, right), dtype))
            known, other = (a, right) if a is not None else (b, left)
            if known is None:
                return None
            if op == "*" and known == 0:
                if dtype.is_float:
                    finite.add(other)
                return 0
            if dtype.is_float and isinf(known) and op in ("+", "-"):
                finite.add(other)
                return -known if op == "-" and a is None else known
    return None


def _literal(number: float | int, like: Value) -> Literal:
    return Literal(float(number) if like.dtype.is_float else int(number), like.dtype)


def _number(value: Value) -> float | int | None:
    match canonical(value):
        case Literal(number, _) if not isnan(number):
            return number
    return None


def is_element(factor: Value) -> bool:
    """Whether a factor is an element, its sign or an exact conversion of it: finite where the element is."""
    match factor:
        case Read():
            return True
        case Cast(operand, dtype, _):
            return holds(operand.dtype, dtype) and is_element(operand)
        case Unary("-", operand, _) | Call("abs", (operand,), _):
            return is_element(operand)
    return False


def never_special(factor: Value) -> bool:
    """Whether a factor is of a type without NaN and infinity, exactly converted."""
    return is_element(factor) and all(r.dtype.finite for r in reads(factor))


def in_program(finite: Iterable[Value], roles: Mapping[str, Value]) -> Factors:
    """Factors of the instruction's operands with what these hold, in the program's elements."""
    return frozenset(map_value(f, lambda v: roles.get(v.tensor, v) if isinstance(v, Read) else v) for f in finite)


def said_finite(factors: Iterable[Value]) -> tuple[str, ...]:
    """One sentence a factor, of the element alone where that says it, each with its name: `finite W`."""
    said = set()
    for factor in factors:
        text = show_leaf(reads(factor)[0]) if is_element(factor) else print_value(factor)
        name = reads(factor)[0].tensor if is_element(factor) else text
        said.add(f"finite {name}: {text} is finite where it meets a zero")
    return tuple(sorted(said))


def shown_to_matter(update: Update, fills: Mapping[str, Literal]) -> Proof:
    """That a step with these fills does change the accumulator, with values for which it does."""
    before = update.target
    op = update.combine or "+"
    term = filled(update, fills)
    term = converted(term, before.dtype)
    return Proof("differs", "running", find_difference(before, Arith(op, before, term, before.dtype)))
