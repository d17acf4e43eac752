"""Integer expressions over axes as LLVM values: sums of loop counters and conditions.

An expression becomes a `Linear`: a constant plus multiples of SSA values. Unrolled variables are constants in `env`, so
an unrolled body costs one dictionary pass an address and no symbolic substitution.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from autosched.codegen.analysis.known import decided
from autosched.codegen.llvm.emitter import Emitter
from autosched.logic import (
    Affine,
    And,
    Binary,
    Bool,
    Compare,
    Const,
    Int,
    Not,
    Or,
    Truth,
    Var,
    Where,
    affine,
)
from autosched.logic.expr import COMPARE

Range = tuple[int, int] | None
COMPARES = {"<": "slt", "<=": "sle", "==": "eq", "!=": "ne", ">": "sgt", ">=": "sge"}


@dataclass(frozen=True, slots=True)
class Linear:
    """`constant + sum(factor * ssa)`; terms are sorted, so equal sums are equal values."""

    constant: int
    terms: tuple[tuple[str, int], ...] = ()

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        if not other.terms:
            return Linear(self.constant + factor * other.constant, self.terms)
        return make_linear(
            self.constant + factor * other.constant, (*self.terms, *((t, c * factor) for t, c in other.terms))
        )

    def times(self, factor: int) -> Linear:
        if factor == 0:
            return Linear(0)
        return Linear(self.constant * factor, tuple((t, c * factor) for t, c in self.terms))


@lru_cache(maxsize=1 << 12)
def fixed(value: int) -> Linear:
    """A number: unrolled variables and addresses are the same few again and again."""
    return Linear(value)


def make_linear(constant: int, terms: Iterable[tuple[str, int]]) -> Linear:
    """A Linear with equal terms joined."""
    total: dict[str, int] = {}
    for name, c in terms:
        total[name] = total.get(name, 0) + c
    return Linear(constant, tuple(sorted((t, c) for t, c in total.items() if c)))


class Indexing:
    """Integer expressions in one function. `env` binds loop variables; `ranges` bounds SSA values (inclusive)."""

    def __init__(self, emitter: Emitter) -> None:
        self.out = emitter
        self.env: dict[str, Linear] = {}
        self.ranges: dict[str, Range] = {}
        self._forms: dict[int, tuple[Int, Affine | None]] = {}
        self._sums: dict[tuple[int, ...], tuple[Affine, tuple[Linear, ...], tuple[tuple[str, int], ...]]] = {}

    # -- scalars ------------------------------------------------------------------------------------------------

    def linear(self, node: Int) -> Linear:
        """`node` in the current environment (KeyError for a variable that no loop binds: a lowering mistake)."""
        if type(node) is Var:  # most often, by far
            return self.env[node.name]
        if type(node) is Const:
            return fixed(node.value)
        known = self._forms.get(id(node))
        if known is None:
            known = (node, affine(node))
            self._forms[id(node)] = known  # the node is kept alive, so its id stays its own
        if known[1] is not None:
            return self._bind(known[1])
        match node:
            case Binary("+", a, b):
                return self.linear(a).plus(self.linear(b))
            case Binary("-", a, b):
                return self.linear(a).plus(self.linear(b), -1)
            case Binary("*", a, b):
                x, y = self.linear(a), self.linear(b)
                if not y.terms:
                    return x.times(y.constant)
                return y.times(x.constant) if not x.terms else self._operation("mul nsw i64", x, y)
            case Binary("//" | "%" as op, a, b):
                return self._divide(op, self.linear(a), self.linear(b))
            case Binary(op, a, b):
                return self._extreme(op, self.linear(a), self.linear(b))
            case Where(condition, a, b):
                chosen = self.condition(condition)
                if isinstance(chosen, bool):
                    return self.linear(a if chosen else b)
                then, other = self.operand(self.linear(a)), self.operand(self.linear(b))
                text = f"select i1 {chosen}, i64 {then}, i64 {other}"
                return self._atom(text, self.out.depth_of(chosen, then, other), self._hull(a, b))
        raise AssertionError(f"not an integer expression: {node!r}")

    def _bind(self, form: Affine) -> Linear:
        constant, moving = form.constant, list[tuple[Linear, int]]()
        for name, c in form.coefficients.items():
            value = self.env[name]
            constant += c * value.constant
            if value.terms:
                moving.append((value, c))
        if not moving:
            return fixed(constant)
        if len(moving) == 1:  # the usual case: its terms are different and in order already
            ((value, c),) = moving
            return Linear(constant, value.terms if c == 1 else tuple((t, c * k) for t, k in value.terms))
        # What moves is the same in all copies of an unrolled body. The values are kept, so their ids stay their own.
        key = id(form), *(id(value) for value, _ in moving)
        known = self._sums.get(key)
        if known is None:
            terms = make_linear(0, ((t, c * k) for value, c in moving for t, k in value.terms)).terms
            known = self._sums[key] = form, tuple(value for value, _ in moving), terms
        return Linear(constant, known[2])

    def range_of(self, value: Linear) -> Range:
        """Inclusive bounds of a sum, None where a term has none."""
        low = high = value.constant
        for name, c in value.terms:
            bound = self.ranges.get(name)
            if bound is None:
                return None
            low += min(c * bound[0], c * bound[1])
            high += max(c * bound[0], c * bound[1])
        return low, high

    def operand(self, value: Linear) -> str:
        """The SSA value or constant of a sum (i64), computed at the outermost scope possible."""
        if not value.terms:
            return str(value.constant)
        result = ""
        # Outer terms first, so that their partial sum is shared and stays outside inner loops.
        for name, c in sorted(value.terms, key=lambda t: self.out.depth.get(t[0], 0)):
            part = name
            if c != 1:
                text = f"mul nsw i64 {name}, {c}"
                part = self.out.pure(text, self.out.depth_of(name), text)
            if result:
                text = f"add nsw i64 {result}, {part}"
                part = self.out.pure(text, self.out.depth_of(result, part), text)
            result = part
        if value.constant:
            text = f"add nsw i64 {result}, {value.constant}"
            result = self.out.pure(text, self.out.depth_of(result), text)
        return result

    def _atom(self, text: str, depth: int, bounds: Range) -> Linear:
        name = self.out.pure(text, depth, text)
        self.ranges.setdefault(name, bounds)
        return Linear(0, ((name, 1),))

    def _operation(self, op: str, x: Linear, y: Linear) -> Linear:
        a, b = self.operand(x), self.operand(y)
        return self._atom(f"{op} {a}, {b}", self.out.depth_of(a, b), None)

    def _hull(self, a: Int, b: Int) -> Range:
        x, y = self.range_of(self.linear(a)), self.range_of(self.linear(b))
        return None if x is None or y is None else (min(x[0], y[0]), max(x[1], y[1]))

    def _extreme(self, op: str, x: Linear, y: Linear) -> Linear:
        bounds = self.range_of(x.plus(y, -1))
        if bounds is not None and bounds[1] <= 0:
            return x if op == "min" else y
        if bounds is not None and bounds[0] >= 0:
            return y if op == "min" else x
        a, b = self.operand(x), self.operand(y)
        name = self.out.declarations.need("i64", f"llvm.s{op}.i64", "i64", "i64")
        p, q, pick = self.range_of(x), self.range_of(y), (min if op == "min" else max)
        hull = None if p is None or q is None else (pick(p[0], q[0]), pick(p[1], q[1]))
        return self._atom(f"call i64 {name}(i64 {a}, i64 {b})", self.out.depth_of(a, b), hull)

    def _divide(self, op: str, x: Linear, y: Linear) -> Linear:
        if y.terms or y.constant <= 0:
            return self._divide_any(op, x, y)
        d = y.constant
        # Multiples of the divisor leave the division exactly; what is left often has a range below it.
        quotient = make_linear(x.constant // d, ((t, c // d) for t, c in x.terms if c % d == 0))
        rest = make_linear(x.constant % d, ((t, c) for t, c in x.terms if c % d))
        bounds = self.range_of(rest)
        if bounds is not None and bounds[0] // d == bounds[1] // d:
            whole = bounds[0] // d
            return Linear(whole).plus(quotient) if op == "//" else rest.plus(Linear(-whole * d))
        a = self.operand(rest)
        depth = self.out.depth_of(a)
        if op == "%" and d & (d - 1) == 0:
            return self._atom(f"and i64 {a}, {d - 1}", depth, (0, d - 1))
        if bounds is not None and bounds[0] >= 0:
            text = f"udiv i64 {a}, {d}" if op == "//" else f"urem i64 {a}, {d}"
            part = self._atom(text, depth, (bounds[0] // d, bounds[1] // d) if op == "//" else (0, d - 1))
        elif d & (d - 1) == 0:
            part = self._atom(f"ashr i64 {a}, {d.bit_length() - 1}", depth, self._quotient_range(bounds, d))
        else:
            remainder = self.out.pure(text := f"srem i64 {a}, {d}", depth, text)
            negative = self.out.pure(text := f"icmp slt i64 {remainder}, 0", depth, text)
            if op == "%":
                lifted = self.out.pure(text := f"add i64 {remainder}, {d}", depth, text)
                return self._atom(f"select i1 {negative}, i64 {lifted}, i64 {remainder}", depth, (0, d - 1))
            toward = self.out.pure(text := f"sdiv i64 {a}, {d}", depth, text)
            below = self.out.pure(text := f"sext i1 {negative} to i64", depth, text)
            part = self._atom(f"add i64 {toward}, {below}", depth, self._quotient_range(bounds, d))
        return part.plus(quotient) if op == "//" else part

    @staticmethod
    def _quotient_range(bounds: Range, d: int) -> Range:
        return None if bounds is None else (bounds[0] // d, bounds[1] // d)

    def _divide_any(self, op: str, x: Linear, y: Linear) -> Linear:
        """Floor division by a divisor that is not a positive constant; by zero it gives 0 and traps nowhere."""
        a, b = self.operand(x), self.operand(y)
        depth = self.out.depth_of(a, b)

        def pure(text: str) -> str:
            return self.out.pure(text, depth, text)

        zero = pure(f"icmp eq i64 {b}, 0")
        safe = pure(f"select i1 {zero}, i64 1, i64 {b}")
        remainder = pure(f"srem i64 {a}, {safe}")
        mixed = pure(f"xor i64 {remainder}, {safe}")
        opposite = pure(f"icmp slt i64 {mixed}, 0")
        inexact = pure(f"icmp ne i64 {remainder}, 0")
        below = pure(f"and i1 {opposite}, {inexact}")
        if op == "%":
            lifted = pure(f"add i64 {remainder}, {safe}")
            result = pure(f"select i1 {below}, i64 {lifted}, i64 {remainder}")
        else:
            toward = pure(f"sdiv i64 {a}, {safe}")
            borrow = pure(f"sext i1 {below} to i64")
            result = pure(f"add i64 {toward}, {borrow}")
        return self._atom(f"select i1 {zero}, i64 0, i64 {result}", depth, None)

    # -- conditions ---------------------------------------------------------------------------------------------

    def condition(self, node: Bool) -> bool | str:
        """A lane-free condition: decided, or an i1."""
        match node:
            case Truth(value):
                return value
            case Compare(op, a, b):
                return self._compare(op, self.linear(a).plus(self.linear(b), -1))
            case And(parts):
                return self._join("and", [self.condition(p) for p in parts])
            case Or(parts):
                return self._join("or", [self.condition(p) for p in parts])
            case Not(part):
                inner = self.condition(part)
                if isinstance(inner, bool):
                    return not inner
                text = f"xor i1 {inner}, true"
                return self.out.pure(text, self.out.depth_of(inner), text, "c")
        raise AssertionError(f"not a condition: {node!r}")

    def _compare(self, op: str, difference: Linear) -> bool | str:
        if not difference.terms:
            return bool(COMPARE[op](difference.constant, 0))
        answer = decided(op, self.range_of(difference))
        if answer is not None:
            return answer
        moving = self.operand(Linear(0, difference.terms))
        text = f"icmp {COMPARES[op]} i64 {moving}, {-difference.constant}"
        return self.out.pure(text, self.out.depth_of(moving), text, "c")

    def _join(self, op: str, parts: list[bool | str], lanes: int = 1) -> bool | str:
        absorbing = op == "or"
        if absorbing in [p for p in parts if isinstance(p, bool)]:
            return absorbing
        names = [p for p in parts if isinstance(p, str)]
        if not names:
            return not absorbing
        kind = "i1" if lanes == 1 else f"<{lanes} x i1>"
        result = names[0]
        for name in names[1:]:
            text = f"{op} {kind} {result}, {name}"
            result = self.out.pure(text, self.out.depth_of(result, name), text, "m")
        return result
