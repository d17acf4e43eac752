"""Which blocks of an axis the rows of a tile have, and which of them all rows have whole.

    rows       |     xxxxxxxxxxxxxxxxx        |        a window that moves by one from row to row
               |      xxxxxxxxxxxxxxxxx       |
               |       xxxxxxxxxxxxxxxxx      |
    blocks     |    ss BBBBBBB BBBBBBB ss     |        whole ones between smaller ones, which masks cut
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from autosched.logic import Binary, Const, Int, affine, ceil_div, free_vars, interval, maximum, minimum


@dataclass(frozen=True)
class BlockRun:
    """Blocks number `first` up to `end` of `size` elements each, counted from where blocks begin. `whole`: all rows
    have all of each."""

    first: Int
    end: Int
    size: int
    whole: bool = False


@dataclass(frozen=True)
class Reach:
    """From which element on, and up to which, rows have some element, counted from where blocks begin; None where that
    is the first, or the one behind the last."""

    lower: Int | None
    upper: Int | None


def block_runs(reach: Reach, length: int, size: int) -> tuple[BlockRun, ...]:
    """Blocks of `size` elements between which rows have some, of `length` elements."""
    full = length // size
    first = Const(0) if reach.lower is None else reach.lower // size
    end = Const(full) if reach.upper is None else minimum(ceil_div(reach.upper, size), full)
    return (BlockRun(first, end, size),)


def runs_by_whole_blocks(reach: Reach, inner: Reach, length: int, size: int, smaller: int) -> tuple[BlockRun, ...]:
    """The same, with blocks of `size` where all rows have all elements, those of `inner`, and `smaller` ones before and
    behind these. A bound that is None in one is None in the other."""
    full, times = length // size, size // smaller
    begin = Const(0) if inner.lower is None else minimum(ceil_div(inner.lower, size), full)
    stop = Const(full) if inner.upper is None else minimum(inner.upper // size, full)
    end = Const(full * times) if reach.upper is None else minimum(ceil_div(reach.upper, smaller), length // smaller)
    runs = [BlockRun(begin, stop, size, whole=True)]
    if reach.lower is not None:
        runs.insert(0, BlockRun(reach.lower // smaller, minimum(begin * times, end), smaller))
    if reach.upper is not None:
        behind = stop if reach.lower is None else maximum(begin, stop)
        runs.append(BlockRun(behind * times, end, smaller))
    return tuple(runs)


def has_room(inner: Reach, size: int, ranges: Mapping[str, tuple[int, int]]) -> bool:
    """Whether all rows may have a whole block of `size` somewhere, with variables in `ranges`."""
    if inner.lower is None or inner.upper is None:
        return True
    lengths = (affine(end - begin) for end in _each(inner.upper, "min") for begin in _each(inner.lower, "max"))
    known = (length.expression for length in lengths if length is not None)
    return all(interval(length, ranges)[1] >= size for length in known if free_vars(length) <= ranges.keys())


def _each(node: Int, op: str) -> Iterator[Int]:
    """The expressions of which one is the least or the greatest."""
    if isinstance(node, Binary) and node.op == op:
        yield from _each(node.left, op)
        yield from _each(node.right, op)
    else:
        yield node
