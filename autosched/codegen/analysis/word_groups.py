"""Loads by words: neighbouring lanes that are neighbours in memory, four bytes or eight, are loaded as one word.

A register of 64 bytes that holds four channels of each of sixteen pixels is sixteen words: a quarter of the address
arithmetic, and one instruction where the machine can gather words.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from autosched.codegen.analysis.access import split_divisible
from autosched.codegen.tree.kernel import Lane
from autosched.ir.value import Index, is_plain
from autosched.logic import Binary, Bool, Compare, Const, Int, Var, affine, free_vars
from autosched.logic.expr import compare
from autosched.logic.walk import map_compared, substitute_bool, substitute_int

WORD_BYTES = (8, 4)


@dataclass(frozen=True)
class WordGroups:
    """Words of `size` lanes. With the lane variable numbering words: the subscripts of a word's first element, and the
    formula under which it is loaded (None: always)."""

    size: int
    index: tuple[Int, ...]
    formula: Bool | None

    def only(self, lane: Lane) -> WordGroups:
        """The first word alone."""
        at = {lane.var: Const(0)}
        index = tuple(substitute_int(part, at) for part in self.index)
        return WordGroups(self.size, index, None if self.formula is None else substitute_bool(self.formula, at))


class _ApartError(Exception):
    """Lanes of a word are not shown to be neighbours."""


def groups_of(index: tuple[Index, ...], element_bytes: int, lane: Lane, formula: Bool | None) -> WordGroups | None:
    """The longest words into which all lanes fall, for all values of outer variables; None where there are none.

    >>> l, x = Var("l"), Var("x")
    >>> found = groups_of(((x * 2 + l // 4) // 28, l % 4), 1, Lane("l", 64), None)
    >>> found.size, [str(part) for part in found.index]
    (4, ['(l + x * 2) // 28', '0'])
    """
    if not index or not is_plain(index):
        return None
    for word in WORD_BYTES:
        size = word // element_bytes
        if size > 1 and lane.width % size == 0:
            try:
                return _groups(index, lane, size, formula)
            except _ApartError:
                continue
    return None


def _groups(index: tuple[Int, ...], lane: Lane, size: int, formula: Bool | None) -> WordGroups:
    for e in range(size - 1, -1, -1):
        moved = [_at(part, lane, size, e) for part in index]
        if any(step for _, step in moved[:-1]) or moved[-1][1] != e:
            raise _ApartError
    wanted = None if formula is None else _asked(formula, lane, size)
    return WordGroups(size, tuple(base for base, _ in moved), wanted)


def _at(node: Int, lane: Lane, size: int, e: int) -> tuple[Int, int]:
    """The expression in lane `size * word + e`, with the lane's variable as the word's number: a part that is the same
    for all `e`, and a constant."""
    if lane.var not in free_vars(node):
        return node, 0
    match node:
        case Var(_):
            return node * size, e
        case Binary("+" | "-" as op, a, b):
            (x, i), (y, j) = _at(a, lane, size, e), _at(b, lane, size, e)
            return (x + y, i + j) if op == "+" else (x - y, i - j)
        case Binary("*", a, Const(factor)):
            base, step = _at(a, lane, size, e)
            return base * factor, step * factor
        case Binary("//" | "%" as op, a, Const(divisor)):
            base, step = _at(a, lane, size, e)
            if not 0 <= step < gcd(divisor, _unit(base)):
                raise _ApartError
            quotient, rest = split_divisible(base, divisor) or (Const(0), base)
            return (quotient + rest // divisor, 0) if op == "//" else (rest % divisor, step)
        case _:
            raise _ApartError


def _unit(node: Int) -> int:
    """A number that divides all values of a sum."""
    form = affine(node)
    return 1 if form is None else gcd(form.constant, *(form.coefficient(name) for name in free_vars(node)))


def _asked(formula: Bool, lane: Lane, size: int) -> Bool:
    """The formula over words, the same in all lanes of each."""

    def compared(c: Compare) -> Bool:
        for e in range(size - 1, -1, -1):
            (x, i), (y, j) = _at(c.left, lane, size, e), _at(c.right, lane, size, e)
            if i != j:
                raise _ApartError
        return compare(c.op, x, y)

    return map_compared(formula, compared)
