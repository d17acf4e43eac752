"""The one number of a loop that data say: `x == p + r` is `p == x - r`, for one p of the loop or for none.

z3 proves two things of all numbers x of the type: that `p + r` does not wrap in it anywhere in the loop, and that the
condition holds at `x - r` alone. What is not known to lie in the loop is asked of the data.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.nodes import Axis, Stage
from autosched.ir.printer import print_value
from autosched.ir.program import Program
from autosched.ir.rewrites.proof import TIMEOUT_MS, Lemma
from autosched.ir.rewrites.refusal import NotRewritten
from autosched.ir.stages import conjuncts_of
from autosched.ir.value import (
    Arith,
    Cast,
    Comparison,
    Condition,
    FromIndex,
    Index,
    Literal,
    Logical,
    Read,
    Scalar,
    Select,
    Unary,
    Value,
    converted,
    map_value,
    walk,
)
from autosched.logic import Binary, Bool, Const, Int, Var, affine, free_vars, interval, to_z3
from autosched.logic.affine import Affine
from autosched.logic.questions import asked
from autosched.logic.solver import own_context, proving, z3

WIDE = DTYPES["s64"]


@dataclass(frozen=True)
class ChosenNumber:
    """`value`, of an integer type, is the number of the loop; `inside` are the conditions under which it is one, those
    left out that are proved."""

    value: Value
    inside: tuple[Value, ...]
    lemmas: tuple[Lemma, ...]


@dataclass(frozen=True)
class _Equation:
    """`data == form` in a type: `data` does not move with the axis, `form` is the axis and an offset."""

    data: Value
    form: Int
    offset: Int


def conditions_on(stage: Stage, axis: Axis) -> Iterator[Comparison]:
    """The equations of data with an axis among the conditions of a stage and of its choices."""
    whole = [*stage.guards, *(v.condition for v in walk(stage.assign.value) if isinstance(v, Select))]
    for part in dict.fromkeys(c for w in whole for c in conjuncts_of(w)):
        if isinstance(part, Comparison) and part.op in ("==", "!=") and _equation(part, axis.name) is not None:
            equal = Comparison("==", part.left, part.right)
            if part.op == "==" or part not in stage.guards:
                yield equal


def _equation(condition: Comparison, axis: str) -> _Equation | None:
    """None where it is no equation of data with the axis and what does not move with it."""
    dtype = condition.left.dtype
    if not dtype.is_integer:
        return None
    known: list[tuple[bool, Value]] = []
    form: Int = Const(0)
    for minus, term in (*_signed(condition.left), *_signed(condition.right, True)):
        formula = _formula(term)
        if formula is not None:
            form = form + formula if minus else form - formula  # what is taken to the other side
        elif _moves(term, axis):
            return None
        else:
            known.append((minus, term))
    found = affine(form)
    if not known or found is None or found.coefficient(axis) not in (1, -1):
        return None
    if found.coefficient(axis) < 0:
        known, found = [(not minus, term) for minus, term in known], found.scaled(-1)
    rest = Affine({n: c for n, c in found.coefficients.items() if n != axis}, found.constant)
    (minus, first), *others = sorted(known, key=lambda k: k[0])
    data: Value = Unary("-", first, dtype) if minus else first
    for taken, term in others:
        data = Arith("-" if taken else "+", data, term, dtype)
    return _Equation(data, found.expression, rest.expression)


def _signed(value: Value, minus: bool = False) -> Iterator[tuple[bool, Value]]:
    match value:
        case Arith("+" | "-" as op, left, right):
            yield from _signed(left, minus)
            yield from _signed(right, minus != (op == "-"))
        case Unary("-", operand):
            yield from _signed(operand, not minus)
        case _:
            yield minus, value


def _formula(value: Value) -> Int | None:
    match value:
        case FromIndex(index):
            return index
        case Literal(number):
            return Const(int(number))
    return None


def _moves(value: Value, axis: str) -> bool:
    for node in walk(value):
        inside: tuple[object, ...] = node.index if isinstance(node, Read) else ()
        if isinstance(node, FromIndex):
            inside = (node.index,)
        elif isinstance(node, Select):
            inside = (node.condition,)
        elif isinstance(node, Logical):
            inside = node.parts
        if any(axis in free_vars(i) for i in inside if isinstance(i, Int | Bool)):
            return True
    return not any(isinstance(n, Read | Scalar) for n in walk(value))


# -- proofs -----------------------------------------------------------------------------------------------------------


@proving
def proved_single(program: Program, stage: Stage, axis: Axis, condition: Comparison) -> ChosenNumber:
    """The number at which the condition holds. Raises NotRewritten where the type wraps in the loop, with two numbers
    of it that are one in the type where there are some, or where z3 does not decide."""
    found = _equation(condition, axis.name)
    assert found is not None, "one of conditions_on"
    dtype = found.data.dtype
    low, high = dtype.limits
    if not (WIDE.limits[0] <= low and high <= WIDE.limits[1]):
        raise NotRewritten("UNSUPPORTED", f"numbers of {dtype} are no indices", stage.name)
    question = _Question(program, stage, axis, found)
    whole = f"{low} <= {found.form} <= {high} for all {axis.lower} <= {axis.name} < {axis.upper}"
    wraps = question.ask("no wrap", whole, z3.Not(question.held(low, high)))
    if wraps.verdict != "proved":
        raise _wraps(stage, axis, found)
    at = _less(found)
    said = f"{print_value(condition)} in the loop exactly where {axis.name} is {print_value(at)}, which lies in it"
    single = question.ask("one number", said, question.differs())
    if not single.proved:
        raise NotRewritten("UNSUPPORTED", f"z3 did not decide: {said}", stage.name, unknown=True)
    inside, lemmas = [], [wraps, single]
    for bound, op, text in (
        (axis.lower, ">=", f"{axis.lower} <= {print_value(at)}"),
        (axis.upper, "<", f"{print_value(at)} < {axis.upper}"),
    ):
        known = question.ask("in the loop", text, question.outside(op))
        if known.proved:
            lemmas.append(known)
        else:
            inside.append(Comparison(op, *_typed(at, bound)))
    return ChosenNumber(at, tuple(inside), tuple(lemmas))


def _less(found: _Equation) -> Value:
    """The number that data say, less the offset."""
    if found.offset == Const(0):
        return found.data
    offset: Value = FromIndex(found.offset, WIDE)
    if isinstance(found.offset, Const):
        offset = Literal(found.offset.value, WIDE)
    return Arith("-", converted(found.data, WIDE), offset, WIDE)


def _typed(number: Value, bound: Int) -> tuple[Value, Value]:
    """Both in one type that holds them."""
    if isinstance(bound, Const):
        low, high = number.dtype.limits
        dtype: DType = number.dtype if low <= bound.value <= high else WIDE
        return converted(number, dtype), Literal(bound.value, dtype)
    return converted(number, WIDE), FromIndex(bound, WIDE)


class _Question:
    """What z3 is asked of an equation: of all data of the type, as far as the program assumes more of it."""

    def __init__(self, program: Program, stage: Stage, axis: Axis, found: _Equation) -> None:
        self.context = own_context()
        self.axis, self.equation = axis, found
        expressions = (found.form, axis.lower, axis.upper)
        names = {axis.name, *(n for e in expressions for n in free_vars(e))}
        self.names = {n: z3.Int(n, self.context) for n in names}
        self.data = z3.Int("x", self.context)
        low, high = known_range(program, found.data)
        self.facts = [low <= self.data, self.data <= high]
        ranges: dict[str, tuple[int, int]] = dict(program.symbolic)
        for a in stage.axes:
            low, high = interval(a.lower, ranges)[0], interval(a.upper, ranges)[1] - 1
            ranges[a.name] = low, max(low, high)
        self.facts += [z3.And(ranges[n][0] <= v, v <= ranges[n][1]) for n, v in self.names.items() if n in ranges]
        self.form, self.low, self.high = (to_z3(e, self.names, self.context) for e in expressions)
        self.within = z3.And(self.low <= self.names[axis.name], self.names[axis.name] < self.high)
        self.at = self.data - (self.form - self.names[axis.name])

    def held(self, low: int, high: int) -> Any:
        return z3.Implies(self.within, z3.And(low <= self.form, self.form <= high))

    def differs(self) -> Any:
        """That the condition, in the loop, says something else than that the axis is the number, in the loop."""
        there = z3.And(self.low <= self.at, self.at < self.high)
        own = z3.And(self.within, self.data == self.form)
        return own != z3.And(self.names[self.axis.name] == self.at, there)

    def outside(self, op: str) -> Any:
        return z3.Not(self.at >= self.low if op == ">=" else self.at < self.high)

    def ask(self, name: str, claim: str, negated: Any) -> Lemma:
        start = time.perf_counter()
        solver = z3.Solver(ctx=self.context)
        solver.set("timeout", TIMEOUT_MS)
        solver.add(*self.facts, negated)
        answer = solver.check()
        asked("rewrite", f"{name}: {claim}", solver, answer)
        verdict = {"unsat": "proved", "sat": "no"}.get(str(answer), "unknown")
        return Lemma(name, claim, (), verdict, "z3", time.perf_counter() - start)


def known_range(program: Program, data: Value) -> tuple[int, int]:
    """The least and greatest number that data may be: of their type, and as the program assumes of an element."""
    low, high = data.dtype.limits
    while isinstance(data, Cast) and data.operand.dtype.is_integer and _holds(data.operand.dtype, data.dtype):
        data = data.operand
        low, high = max(low, data.dtype.limits[0]), min(high, data.dtype.limits[1])
    name = data.tensor if isinstance(data, Read) else data.name if isinstance(data, Scalar) else ""
    for stated in (a for a in program.lasting_assumptions if a.subject == name):
        low = low if stated.low is None else max(low, int(stated.low))
        high = high if stated.high is None else min(high, int(stated.high))
    return int(low), int(high)


def _holds(narrow: DType, wide: DType) -> bool:
    return wide.limits[0] <= narrow.limits[0] and narrow.limits[1] <= wide.limits[1]


def _wraps(stage: Stage, axis: Axis, found: _Equation) -> NotRewritten:
    """Why the condition may hold for several numbers of the loop: those that are one in the type."""
    dtype = found.data.dtype
    message = f"{dtype}({found.form}) wraps in the loop over {axis.name}"
    count = 1 << dtype.bits
    lower, upper = axis.lower, axis.upper
    if isinstance(lower, Const) and isinstance(upper, Const) and upper.value - lower.value > count:
        first, second = lower.value, lower.value + count
        message += f": for {axis.name} = {first} and {second} it is one number"
        return NotRewritten("NOT_SINGLE", message, stage.name, {"numbers": [first, second]})
    return NotRewritten("NOT_SINGLE", message, stage.name, unknown=True)


# -- values at the number ---------------------------------------------------------------------------------------------


def at_number(value: Value, axis: str, number: ChosenNumber) -> Value:
    """A value with the number in place of the axis. Raises NotRewritten for a condition on axes, or a formula that is
    computed by other means than sums, products and quotients."""

    def index(old: Index) -> Index:
        if not isinstance(old, Int) or axis not in free_vars(old):
            return old
        return number.value if old == Var(axis) else _computed(old, axis, number.value)

    def visit(node: Value) -> Value:
        match node:
            case Read(tensor, old, dtype):
                return Read(tensor, tuple(index(i) for i in old), dtype)
            case FromIndex(old, dtype) if axis in free_vars(old):
                return Cast(_computed(old, axis, number.value), dtype)
        conditions: tuple[Condition, ...] = (node.condition,) if isinstance(node, Select) else ()
        conditions = node.parts if isinstance(node, Logical) else conditions
        if any(isinstance(c, Bool) and axis in free_vars(c) for c in conditions):
            raise NotRewritten("UNSUPPORTED", f"a condition on axes moves with {axis}", "")
        return node

    return map_value(value, visit)


def _computed(formula: Int, axis: str, number: Value) -> Value:
    """A formula with the number for the axis, computed in 64 bits."""
    match formula:
        case Var(name) if name == axis:
            return converted(number, WIDE)
        case Binary("+" | "-" | "*" | "//" | "%" as op, left, right) if axis in free_vars(formula):
            return Arith(op, _computed(left, axis, number), _computed(right, axis, number), WIDE)
        case Const(value):
            return Literal(value, WIDE)
    if axis in free_vars(formula):
        raise NotRewritten("UNSUPPORTED", f"{formula} is no sum, product or quotient", "")
    return FromIndex(formula, WIDE)
