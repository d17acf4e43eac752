"""Blocks of a window that moves with the row: each element once, and whole blocks where all rows have all of them."""

from __future__ import annotations

from random import Random

import pytest

from autosched.ir.rewrites.online.block_runs import BlockRun, Reach, block_runs, has_room, runs_by_whole_blocks
from autosched.logic import Const, Int, Var, evaluate, maximum


def elements(runs: tuple[BlockRun, ...], at: dict[str, int]) -> list[tuple[int, bool]]:
    """The elements of all blocks, in order, each with whether its block is one that all rows have whole."""
    found = []
    for run in runs:
        for block in range(int(evaluate(run.first, at)), int(evaluate(run.end, at))):
            found += [(block * run.size + k, run.whole) for k in range(run.size)]
    return found


@pytest.mark.parametrize("seed", range(60))
def test_blocks_cover_what_rows_have(seed: int) -> None:
    r = Random(seed)
    smaller = r.choice([2, 4])
    size, length = smaller * r.choice([1, 2, 4]), r.randint(16, 70)
    lower = Const(r.randint(0, length)) if r.random() < 0.8 else None
    upper = Const(r.randint(0, length)) if r.random() < 0.8 else None
    begin, end = 0 if lower is None else lower.value, length if upper is None else upper.value
    behind = 0 if lower is None else min(length, begin + r.randint(0, 12))
    before = length if upper is None else max(0, end - r.randint(0, 12))
    inner = Reach(None if lower is None else Const(behind), None if upper is None else Const(before))
    found = elements(runs_by_whole_blocks(Reach(lower, upper), inner, length, size, smaller), {})
    numbers = [n for n, _ in found]
    assert numbers == sorted(set(numbers))
    last = length // size * size if upper is None else length // smaller * smaller  # what is left is a block of its own
    assert set(range(begin, min(end, last))) <= set(numbers)
    assert all(behind <= n < before for n, whole in found if whole)
    assert all(n < length for n in numbers)
    plain = elements(block_runs(Reach(lower, upper), length, size), {})
    assert set(range(begin, min(end, length // size * size))) <= {n for n, _ in plain}


@pytest.mark.parametrize(("width", "room"), [(63, False), (64, True), (500, True)])
def test_whole_blocks_need_room(width: int, room: bool) -> None:
    """Between the last row's first element and the first row's last, wherever the tile stands."""
    tile: Int = Var("tile") * 16
    inner = Reach(maximum(tile - width, 0), tile)
    assert has_room(inner, 64, {"tile": (0, 40)}) == room
    assert has_room(Reach(None, tile), 64, {"tile": (0, 40)})
