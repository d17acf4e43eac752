"""`fold_quotients`: quotients and remainders of subscripts that the bounds of the loops decide.

    for i in range(4): K[i // 4, j]        K[0, j]
    for i in range(4): K[i % 8, j]         K[i, j]
    for i in range(4): K[(4 * b + i) // 4, j]         K[b, j]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from autosched.ir.nodes import Assign, Guard, Loop, Statement
from autosched.ir.program import Program
from autosched.ir.value import Index, Read, Value, is_value, map_value
from autosched.logic import Affine, Binary, Const, Int, affine, interval
from autosched.logic.expr import binary

Ranges = Mapping[str, tuple[int, int]]


def fold_quotients(program: Program) -> tuple[Program, tuple[str, ...]] | None:
    """The program without them, and why each is decided; None where none is."""
    folding = _Quotients({})
    ranges = {name: (low, high) for name, (low, high) in program.symbolic.items()}
    body = tuple(folding.statement(stmt, ranges) for stmt in program.body)
    return (replace(program, body=body), tuple(folding.proof)) if folding.proof else None


class _Quotients:
    """Rebuilds statements; `proof` says what was decided."""

    def __init__(self, proof: dict[str, None]) -> None:
        self.proof = proof

    def statement(self, stmt: Statement, ranges: Ranges) -> Statement:
        match stmt:
            case Loop(axis, body):
                first, last = interval(axis.lower, ranges)[0], interval(axis.upper, ranges)[1] - 1
                inner = {**ranges, axis.name: (first, max(first, last))}
                return replace(stmt, body=tuple(self.statement(s, inner) for s in body))
            case Guard(condition, body):
                held = self.value(condition, ranges) if is_value(condition) else condition
                return Guard(held, tuple(self.statement(s, ranges) for s in body))
            case Assign():
                index = tuple(self.index(i, ranges) for i in stmt.index)
                return replace(stmt, index=index, value=self.value(stmt.value, ranges))

    def index(self, index: Index, ranges: Ranges) -> Index:
        return self.integer(index, ranges) if isinstance(index, Int) else self.value(index, ranges)

    def value(self, value: Value, ranges: Ranges) -> Value:
        def read(node: Value) -> Value:
            if not isinstance(node, Read):
                return node
            plain = tuple(self.integer(i, ranges) if isinstance(i, Int) else i for i in node.index)
            return node if plain == node.index else replace(node, index=plain)

        return map_value(value, on_value=read)

    def integer(self, node: Int, ranges: Ranges) -> Int:
        if not isinstance(node, Binary):
            return node
        node = binary(node.op, self.integer(node.left, ranges), self.integer(node.right, ranges))
        match node:
            case Binary("//" | "%" as op, inner, Const(by)) if by > 0:
                low, high = interval(inner, ranges)
                quotient = low // by
                if quotient == high // by:
                    divided = Binary("//", inner, Const(by))
                    self.proof[f"{divided} is {quotient}, as {inner} is {low} to {high}"] = None
                    return Const(quotient) if op == "//" else inner - quotient * by
                if (apart := _multiples(inner, by)) is None:
                    return node
                multiples, rest = apart
                least, most = interval(rest, ranges)
                if least // by == most // by:
                    divided, more = Binary("//", rest, Const(by)), least // by
                    self.proof[f"{divided} is {more}, as {rest} is {least} to {most}"] = None
                    return multiples + more if op == "//" else rest - more * by
        return node


def _multiples(sum_: Int, by: int) -> tuple[Int, Int] | None:
    """A sum's terms that are multiples of a number, divided by it, and the others; None where there are none of the
    first, or it is no sum."""
    form = affine(sum_)
    if form is None:
        return None
    whole = {n: c // by for n, c in form.coefficients.items() if c % by == 0}
    left = {n: c for n, c in form.coefficients.items() if n not in whole}
    return (Affine(whole).expression, Affine(left, form.constant).expression) if whole else None
