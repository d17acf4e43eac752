"""Loops split where a mask holds for whole iterations, beside the loop as it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from autosched.codegen.lower.gpu.bodies.unmasked import unmasked_apart
from autosched.codegen.tree.kernel import Assign, For, Lane, Stmt
from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Literal, Select, Value
from autosched.logic import Bool, Const, Int, Var, all_of, evaluate

F32 = DTYPES["f32"]
BLOCK, TILE, WARP, E = map(Var, ("j", "i", "w", "e"))
COLUMN, ROW = BLOCK * 8 + E, TILE * 16 + WARP * 8 + E // 4


def loop_of(condition: Bool, lower: Int, upper: Int, inner: Int) -> For:
    """A loop over blocks of columns, whose workers choose by `condition` for each element."""
    value = Select(condition, Literal(1.0, F32), Literal(0.0, F32), F32)
    body: Stmt = Assign("O", (BLOCK, WARP, Var("f"), E), value, Lane("e", 8))
    return For("j", lower, upper, (For("w", Const(0), Const(2), (For("f", Const(0), inner, (body,)),), "warp"),))


def chosen(body: tuple[Stmt, ...], at: dict[str, int]) -> Iterator[tuple[int, ...]]:
    """What is stored, in order: the place and the number."""
    for stmt in body:
        if isinstance(stmt, For):
            for k in range(int(evaluate(stmt.lower, at)), int(evaluate(stmt.upper, at))):
                yield from chosen(stmt.body, at | {stmt.var: k})
        elif isinstance(stmt, Assign):
            for e in range(8):
                here = at | {"e": e}
                yield (*(int(evaluate(i, here)) for i in stmt.index), side(stmt.value, here))


def side(value: Value, at: dict[str, int]) -> int:
    match value:
        case Select(Bool() as condition, then, other, _):
            return side(then if evaluate(condition, at) else other, at)
        case Literal(number, _):
            return int(number)
    raise AssertionError(value)


MASKS: dict[str, tuple[Bool, int]] = {
    "causal": (COLUMN <= ROW, 2),
    "causal of more columns": (COLUMN < ROW + 13, 2),
    "behind": (COLUMN > ROW, 2),
    "window": (all_of(COLUMN <= ROW + 9, COLUMN > ROW - 12), 3),
    "a number of columns": (COLUMN < 21, 2),
    "another multiple": (BLOCK * 24 + E * 3 < ROW * 5 - 2, 2),
    "rows alone": (ROW < 7, 1),
    "a remainder": ((COLUMN % 7) < ROW, 1),
    "equal": (COLUMN.eq(ROW), 1),
}


@pytest.mark.parametrize("name", MASKS)
def test_the_loops_choose_what_the_loop_did(name: str) -> None:
    condition, most = MASKS[name]
    seen = set()
    for lower, upper in ((Const(0), Const(6)), (Const(2), Const(5)), (TILE, TILE + 4), (Const(3), TILE * 2)):
        loop = loop_of(condition, lower, upper, Const(2))
        loops = unmasked_apart(loop)
        seen.add(len(loops))
        for i in range(-2, 5):
            assert list(chosen(loops, {"i": i})) == list(chosen((loop,), {"i": i})), (lower, upper, i)
    assert max(seen) == most


def test_masks_of_many_kinds() -> None:
    r = Random(0)
    split = 0
    for _ in range(150):
        parts = []
        for _ in range(r.choice([1, 1, 2])):
            left = BLOCK * r.choice([-3, 1, 2, 8]) + E * r.choice([-1, 1, 2])
            right = WARP * r.choice([-4, 8]) + TILE * r.randint(-3, 5) + (E // 4) * r.choice([0, 3]) + r.randint(-9, 20)
            parts.append(r.choice([left < right, left <= right, left > right, left >= right]))
        loop = loop_of(all_of(*parts), Const(r.randint(0, 2)), r.choice([Const(6), TILE + 3]), Const(1))
        loops = unmasked_apart(loop)
        split += len(loops) > 1
        for i in range(-1, 4):
            assert list(chosen(loops, {"i": i})) == list(chosen((loop,), {"i": i})), parts
    assert split > 100


def test_a_loop_of_unknown_length_inside_splits_nothing() -> None:
    """Its variable has no greatest value."""
    loop = loop_of(COLUMN + Var("f") < ROW, Const(0), Const(4), TILE)
    assert unmasked_apart(loop) == (loop,)


def test_each_place_has_its_own_loops() -> None:
    """Loops of the same name around other statements, or around the same condition, may be longer."""
    loop = loop_of(COLUMN <= ROW, Const(0), Const(6), Const(2))
    other = loop_of(COLUMN <= ROW, Const(0), Const(6), Const(2))
    wide = For("w", Const(0), Const(5), (Assign("P", (BLOCK, WARP, Const(0), E), Literal(0.0, F32), Lane("e", 64)),))
    whole, masked = unmasked_apart(loop)
    beside = unmasked_apart(replace(loop, body=(*loop.body, wide)))
    assert [(s.lower, s.upper) for s in beside] == [(s.lower, s.upper) for s in (whole, masked)]
    both = replace(loop, body=(*loop.body, replace(other.body[0], upper=Const(3), lower=Const(-1))))
    assert unmasked_apart(both)[0].upper != whole.upper
    for i in range(-2, 5):
        assert list(chosen(unmasked_apart(both), {"i": i})) == list(chosen((both,), {"i": i}))


def test_whole_iterations_ask_nothing() -> None:
    before, whole = unmasked_apart(loop_of(COLUMN > ROW, Const(0), Const(6), Const(2)))
    assert "Select" in str(before)
    assert "Select" not in str(whole)
