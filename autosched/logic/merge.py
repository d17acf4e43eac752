"""Dimensions walked as one: `T[x + p // 3, p % 3]`, where the last has extent 3, is `T'[3 x + p]` of a flatter T'.

A position along fused axes is taken apart by division and remainder for its subscripts. Where the row-major address
puts it together again, that is said here, so that everyone who asks for addresses sees plain sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from autosched.logic.expr import Binary, Const, Int

Part = TypeVar("Part")


def merge_dimensions(index: Sequence[Part], extents: Sequence[int]) -> tuple[tuple[Part | Int, ...], tuple[int, ...]]:
    """Subscripts and extents with the same row-major offset, neighbouring dimensions merged where they can be.

    >>> from autosched.logic import Var
    >>> p = Var("p")
    >>> index, extents = merge_dimensions((Var("x") * 2 + p // 3, p % 3), (8, 3))
    >>> str(index[0]), extents
    ('x * 6 + p', (24,))
    """
    parts: list[Part | Int] = list(index)
    sizes = list(extents)
    for d in reversed(range(len(parts) - 1)):
        outer, inner, n = parts[d], parts[d + 1], sizes[d + 1]
        if not isinstance(outer, Int):
            continue
        match inner:
            case Binary("%", position, Const(value)) if value == n:
                if outer == position // n % sizes[d]:  # the middle one of three fused axes
                    parts[d : d + 2] = [position % (n * sizes[d])]
                    sizes[d : d + 2] = [sizes[d] * n]
                    continue
                rest = _without(outer, position // n)
                if rest is not None:
                    parts[d : d + 2] = [rest * n + position]
                    sizes[d : d + 2] = [sizes[d] * n]
    return tuple(parts), tuple(sizes)


def row_major(index: Sequence[Int], extents: Sequence[int]) -> Int:
    """The number of an element, the last dimension running fastest."""
    offset: Int = Const(0)
    for part, extent in zip(index, extents, strict=True):
        offset = offset * extent + part
    return offset


def _without(node: Int, term: Int) -> Int | None:
    """`node - term` where `term` is one of the terms that `node` adds up."""
    if node == term:
        return Const(0)
    match node:
        case Binary("+", left, right):
            rest = _without(left, term)
            if rest is not None:
                return rest + right
            rest = _without(right, term)
            return None if rest is None else left + rest
        case Binary("-", left, right):
            rest = _without(left, term)
            return None if rest is None else rest - right
    return None
