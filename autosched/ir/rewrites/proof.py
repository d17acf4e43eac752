"""`prove`: whether a claim about values holds over the reals, by z3.

A claim is a comparison of values; so are the facts it is proved from. An element or a scalar is a real number, `+ - * /
min max abs` mean themselves, and any other function is an unknown function. The laws of exp, log and sqrt enter
as instances that z3 checks the premises of:

    exp(c1 m1 + c2 m2 + …) = E1^k1 E2^k2 …    E > 0 a number for each m, where z3 proved that the argument is that sum
    log(b exp(e)) = log(b) + e                where z3 proved that the argument is b exp(e)
    sqrt(x) sqrt(x) = x, exp(log(x)) = x      x > 0
    x <= y implies exp(x) <= exp(y), exp(0) = 1

What is left is a statement about polynomials, which z3 decides. Divisors are taken to be no zeros, and what a logarithm
or a root is taken of to be positive: elsewhere the program computes no number.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import Any

from autosched.ir.printer import print_value
from autosched.ir.rewrites.algebra.normal import NoForm, normal
from autosched.ir.rewrites.algebra.sums import Apply, Atom, Monomial, RealSum, atom_key
from autosched.ir.value import (
    Arith,
    Call,
    Cast,
    Comparison,
    FromIndex,
    Literal,
    Logical,
    Read,
    Scalar,
    Select,
    Unary,
    Value,
    walk,
)
from autosched.logic import Bool
from autosched.logic.questions import asked, is_written
from autosched.logic.solver import own_context, proving, z3

TIMEOUT_MS = 2000
"""For each question to z3."""
MOST_DECIDED = 1024
"""Claims whose verdicts are kept."""


@dataclass(frozen=True)
class Lemma:
    """A claim and what became of it: `verdict` is `proved`, `no` or `unknown`; `seconds` is what it took."""

    name: str
    claim: str
    given: tuple[str, ...]
    verdict: str
    by: str
    seconds: float

    @property
    def proved(self) -> bool:
        return self.verdict == "proved"


def prove(name: str, claim: Value, given: Sequence[Value] = (), real: bool = False) -> Lemma:
    """Ask z3 whether `claim` follows from `given`; `real` leaves all conversions between floats out."""
    key = claim, tuple(given), real
    known = None if is_written() else _DECIDED.get(key)
    if known is None:
        start = time.perf_counter()
        verdict, by = _decided(name, claim, given, real)
        seconds = time.perf_counter() - start
    else:
        verdict, by, seconds = known
    if by == "z3" and verdict != "unknown":  # more time may decide what is not
        if len(_DECIDED) >= MOST_DECIDED:
            _DECIDED.clear()
        _DECIDED[key] = verdict, by, seconds
    return Lemma(name, print_value(claim), tuple(map(print_value, given)), verdict, by, seconds)


_DECIDED: dict[tuple[Value, tuple[Value, ...], bool], tuple[str, str, float]] = {}
"""Verdicts of claims, and the seconds that they took: tiles and blocks of several sizes ask the same ones."""


@proving
def _decided(name: str, claim: Value, given: Sequence[Value], real: bool) -> tuple[str, str]:
    """The verdict, and who says so: z3, or the reason why it cannot be asked."""
    terms = _Terms([claim, *given], real)
    try:
        facts = [terms.truth(g) for g in given]
        goal = terms.truth(claim)
        questions = [(z3.Not(premise), terms.facts[:known]) for premise, known in terms.premises]
        questions.append((z3.Not(goal), [*terms.facts, *facts]))
    except NoForm as why:
        return "unknown", str(why)
    if _holds_never(terms, facts):
        return "unknown", "z3"
    for number, (negated, known) in enumerate(questions):
        solver = z3.Solver(ctx=terms.context)
        solver.set("timeout", TIMEOUT_MS)
        solver.add(*known, negated)
        answer = solver.check()
        asked("rewrite", f"{name}: {print_value(claim)}", solver, answer)
        if answer != z3.unsat:
            return ("no" if answer == z3.sat and number == len(questions) - 1 else "unknown"), "z3"
    return "proved", "z3"


def _holds_never(terms: _Terms, facts: list[Any]) -> bool:
    """Whether the facts contradict each other: anything would follow from them."""
    solver = z3.Solver(ctx=terms.context)
    solver.set("timeout", TIMEOUT_MS)
    solver.add(*terms.facts, *facts)
    return bool(solver.check() == z3.unsat)


class _Terms:
    """z3's terms of values, with the laws' instances among `facts`. A premise is a claim and how many of the facts it
    may be proved from."""

    def __init__(self, values: Iterable[Value], real: bool) -> None:
        self.context = own_context()
        self.real = real
        self.facts: list[Any] = []
        self.premises: list[tuple[Any, int]] = []
        self._atoms: dict[str, Any] = {}
        self._roots: dict[str, Any] = {}
        self._exponentials: list[tuple[Any, Any]] = []
        self._units = _units(values, real)

    def truth(self, claim: Value) -> Any:
        """A comparison, or several joined by `and`."""
        match claim:
            case Logical("and", parts, _):
                return z3.And([self.truth(p) for p in parts if not isinstance(p, Bool)])
            case Comparison(op, left, right, _):
                a, b = self.term(left), self.term(right)
                return {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]
        raise NoForm(f"no claim: {print_value(claim)}")

    def term(self, value: Value) -> Any:
        match value:
            case Literal(x) if value.dtype.is_float:
                if x - x != 0:
                    raise NoForm("an infinity")
                return z3.Q(*Fraction(x).as_integer_ratio(), ctx=self.context)
            case Read() | Scalar() | FromIndex():
                return self._number(print_value(value))
            case _ if not value.dtype.is_float and not isinstance(value, Select):
                return self._number(print_value(value))
            case Unary("-", operand, _):
                return -self.term(operand)
            case Arith("+" | "-" | "*" | "/" | "min" | "max" as op, left, right, _):
                return self._arith(op, self.term(left), self.term(right))
            case Select(condition, then, other, _) if not isinstance(condition, Bool):
                return z3.If(self.truth(condition), self.term(then), self.term(other))
            case Call("fma", (a, b, c), _):
                return self.term(a) * self.term(b) + self.term(c)
            case Call("exp", (argument,), _):
                return self._exp(argument)
            case Call("log", (argument,), _):
                return self._log(value, argument)
            case Call("sqrt" | "rsqrt" as function, (argument,), _):
                root = self._root(self.term(argument), normal(argument, self.real))
                return root if function == "sqrt" else 1 / root
            case Call(function, args, _):
                return self._function(function, [self.term(a) for a in args])
            case Cast(operand, dtype, _) if operand.dtype.is_float:
                form = normal(value, self.real)
                if form == normal(operand, self.real):
                    return self.term(operand)
                return self._function(f"cast {dtype}", [self.term(operand)])
        return self._number(print_value(value))

    def _arith(self, op: str, a: Any, b: Any) -> Any:
        match op:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
            case "/":
                self.facts.append(b != 0)
                return a / b
        return z3.If(a >= b, a, b) if op == "max" else z3.If(a <= b, a, b)

    def _number(self, name: str) -> Any:
        return self._atoms.setdefault(name, z3.Real(name, self.context))

    def _function(self, name: str, args: list[Any]) -> Any:
        if name == "abs":
            return z3.If(args[0] >= 0, args[0], -args[0])
        sorts = [z3.RealSort(self.context)] * (len(args) + 1)
        return z3.Function(name, *sorts)(*args)

    def _exp(self, argument: Value) -> Any:
        form = normal(argument, self.real)
        direct = self.term(argument)
        self.premises.append((direct == self._sum(form), len(self.facts)))
        result = self._power_of_e(form)
        zero = z3.RealVal(0, self.context)
        for other, value in [*self._exponentials, (zero, z3.RealVal(1, self.context))]:
            self.facts += [z3.Implies(direct <= other, result <= value), z3.Implies(other <= direct, value <= result)]
        self._exponentials.append((direct, result))
        return result

    def _power_of_e(self, form: RealSum) -> Any:
        result = z3.RealVal(1, self.context)
        for monomial, coefficient in form.ordered:
            count = coefficient / self._units[monomial]
            assert count.denominator == 1
            base = self._base(monomial, self._units[monomial])
            result = result * self._whole_power(base, count.numerator)
        return result

    def _base(self, monomial: Monomial, unit: Fraction) -> Any:
        """exp(unit * monomial): a positive number, and where the monomial is log(x), x to the power of the unit."""
        atom = next(iter(monomial.powers))[0] if len(monomial.powers) == 1 else None
        logarithm = isinstance(atom, Apply) and atom.function == "log" and monomial.powers == {(atom, Fraction(1))}
        if logarithm and not monomial.exponent.terms and unit in (1, -1, Fraction(1, 2), Fraction(-1, 2)):
            assert isinstance(atom, Apply)
            return self._fraction_power(self._sum(atom.args[0]), unit, atom.args[0])
        name = f"exp({unit} * {_text(monomial)})"
        base = self._number(name)
        self.facts.append(base > 0)
        return base

    def _whole_power(self, base: Any, count: int) -> Any:
        if abs(count) > 16:
            raise NoForm("exponents without a common measure")
        result = z3.RealVal(1, self.context)
        for _ in range(abs(count)):
            result = result * base
        return 1 / result if count < 0 else result

    def _fraction_power(self, base: Any, power: Fraction, form: RealSum) -> Any:
        if power.denominator == 2:
            base = self._root(base, form)
        else:
            self.facts.append(base != 0)
        return self._whole_power(base, power.numerator)

    def _root(self, base: Any, form: RealSum) -> Any:
        name = f"sqrt({_sum_text(form)})"
        root = self._roots.setdefault(name, z3.Real(name, self.context))
        self.facts += [root > 0, root * root == base]
        return root

    def _log(self, value: Value, argument: Value) -> Any:
        form, inner = normal(value, self.real), normal(argument, self.real)
        self.premises.append((self.term(argument) == self._sum(inner), len(self.facts)))
        return self._sum(form)

    def _sum(self, total: RealSum) -> Any:
        result = z3.RealVal(0, self.context)
        for monomial, coefficient in total.ordered:
            term = z3.Q(*coefficient.as_integer_ratio(), ctx=self.context)
            for atom, power in sorted(monomial.powers, key=lambda p: atom_key(p[0])):
                inner = atom.args[0] if isinstance(atom, Apply) and atom.function == "" else RealSum(
                    frozenset([(Monomial(frozenset([(atom, Fraction(1))]), RealSum(frozenset())), Fraction(1))])
                )
                term = term * self._fraction_power(self._atom(atom), power, inner)
            if monomial.exponent.terms:
                term = term * self._power_of_e(monomial.exponent)
            result = result + term
        return result

    def _atom(self, atom: Atom) -> Any:
        if not isinstance(atom, Apply):
            return self.term(atom.value)
        if atom.function == "":
            return self._sum(atom.args[0])
        if atom.function == "log":
            return self._number(f"log({_sum_text(atom.args[0])})")
        parts = [self._sum(a) for a in atom.args]
        if atom.function in ("min", "max"):
            return self._arith(atom.function, parts[0], parts[1])
        return self._function(atom.function, parts)


def _units(values: Iterable[Value], real: bool) -> dict[Monomial, Fraction]:
    """For each monomial that exponentials have in their arguments, the greatest number whose multiples all its
    coefficients are."""
    found: dict[Monomial, Fraction] = {}

    def take(total: RealSum) -> None:
        for monomial, coefficient in total.terms:
            known = found.get(monomial)
            found[monomial] = abs(coefficient) if known is None else _common(known, abs(coefficient))
            inside(monomial)

    def inside(monomial: Monomial) -> None:
        if monomial.exponent.terms:
            take(monomial.exponent)
        for atom, _ in monomial.powers:
            if isinstance(atom, Apply):
                for part in atom.args:
                    for inner, _ in part.terms:
                        inside(inner)

    def visit(node: Value) -> None:
        match node:
            case Call("exp" | "log", (argument,), _):
                form = normal(argument, real)
                for monomial, _ in form.terms:
                    inside(monomial)
                if node.function == "exp":
                    take(form)

    for value in values:
        for node in walk(value):
            visit(node)
    return found


def _common(a: Fraction, b: Fraction) -> Fraction:
    return Fraction(gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)


def _text(monomial: Monomial) -> str:
    powers = sorted(f"{atom_key(a)}" + (f"^{p}" if p != 1 else "") for a, p in monomial.powers)
    if monomial.exponent.terms:
        powers.append(f"exp({_sum_text(monomial.exponent)})")
    return " * ".join(powers) or "1"


def _sum_text(total: RealSum) -> str:
    return " + ".join(f"{c} * {_text(m)}" if c != 1 else _text(m) for m, c in total.ordered) or "0"
