"""What warps that share rows hold in registers, held against the instructions' maps lane by lane."""

from __future__ import annotations

from itertools import product

import pytest
from support.cards.gpu_plans import CATALOGUE
from support.programs.block_chains import FLASH, MLP

from autosched import ir
from autosched.logic import evaluate
from autosched.machine.catalogue import load_target
from autosched.search.tuning.tune import usable
from autosched.tensorize.fragment import Fragment
from autosched.tensorize.intrinsic import Operand
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.find_warp_rows import rows_inside
from autosched.tiling.plans.plan import TileLoopsPart
from autosched.tiling.plans.warp_rows import WarpRows

LAST = "            for i, c in grid(tile, n):\n                for j in range(block):"
AGAIN = MLP.replace(LAST, """            for i in range(tile):
                Y[i_tile * tile + i, 0] += acc(P[i_tile * tile + i, 3])
""" + LAST)
"""A third stage reads what the first product leaves."""
UPDATED = MLP.replace(LAST, """            for i, j in grid(tile, block):
                P[i_tile * tile + i, j] *= t(0.5)
""" + LAST)
"""A third stage writes it, too."""
OUTSIDE = MLP + """        for i in range(tile):
            Y[i_tile * tile + i, 0] += acc(P[i_tile * tile + i, 3])
"""
"""It is read behind the loop, once more."""
OTHER = """            for i, c in grid(tile, n):
                A[i_tile * tile + i, c] = acc(P[i_tile * tile + i, c])
                for j in range(block):
                    A[i_tile * tile + i, c] += acc(P"""
BEGINS = MLP.replace("    P: t[m, block]\n", "    P: t[m, block]\n    A: acc[m, n]\n")
BEGINS = BEGINS.replace(LAST + "\n                    Y[i_tile * tile + i, c] += acc(P", OTHER)
BEGINS += """            for i, c in grid(tile, n):
                Y[i_tile * tile + i, c] += A[i_tile * tile + i, c]
"""
"""The second product's sums begin with elements of it."""


def found(text: str, **sizes: object) -> list[WarpRows]:
    target = load_target("nvidia-a100")
    program = ir.parse(text, sizes={"m": 64, "tile": 32, "f": 128, "block": 64} | sizes)
    plan = plan_program(program, target, CATALOGUE, usable(CATALOGUE, target, "simulator", None)).plans[0]
    return [rows for part in plan.parts if isinstance(part, TileLoopsPart) for rows in rows_inside(part)]


def where(operand: Operand) -> dict[tuple[int, ...], int]:
    """The lane that holds each element, by the fragment map."""
    assert operand.fragment is not None
    return {
        tuple(int(evaluate(c, {"t": t, "v": v})) for c in operand.fragment.coordinates): t
        for t, v in product(range(32), range(operand.elements // 32))
    }


@pytest.mark.parametrize("t", ["f16", "bf16"])
def test_each_lane_has_what_it_takes(t: str) -> None:
    """By the maps alone: rows and columns of the tensor, warp and lane, on both sides."""
    (rows,) = found(MLP, t=t)
    assert rows.splits == (1, 2)
    assert set(rows.held) == {"H", "P", "Y"}
    assert rows.carried == {"Y"}
    maker, taker = rows.products
    assert (dict(maker.taken), [*taker.taken.values()]) == ({}, ["P"])
    (operand,) = taker.taken
    nest = taker.part.nest
    has, wants = where(rows.fragment.operand), where(nest.intrinsic.operands[operand])
    taken = nest.intrinsic.operand_axes[operand]
    tall, wide = rows.row_unit, rows.column_unit
    for warps in rows.splits:
        for i, j in product(range(32), range(64)):
            at = (i % tall, j % wide)
            mine = has[at if rows.along == 0 else at[::-1]]
            depth = nest.intrinsic.operands[operand].shape[taken.index("k")]
            inside = {taker.rows.intrinsic_axis: i % taker.rows.unit, "k": j % depth}
            assert wants[tuple(inside[n] for n in taken)] == mine
            assert i // taker.rows.unit // (taker.rows.units // warps) == i // tall // rows.tiles(warps)


def test_all_of_attention_stays_in_registers() -> None:
    """Scores, probabilities, each row's numbers and sums, and the second product's sums: over all blocks of keys."""
    sizes = {"n": 64, "l": 128, "d": 32, "tile": 32, "block": 32}
    target = load_target("nvidia-a100")
    plan = plan_program(
        ir.parse(FLASH, sizes=sizes), target, CATALOGUE, usable(CATALOGUE, target, "simulator", None)
    ).plans[0]
    (rows,) = (r for part in plan.parts if isinstance(part, TileLoopsPart) for r in rows_inside(part))
    assert set(rows.held) == {"S", "M", "N", "P", "Z", "A"}
    assert rows.carried == {"M", "Z", "A"}
    assert [[*p.taken.values()] for p in rows.products] == [[], ["P"]]
    assert {n: rows.held[n].columns for n in ("M", "N", "Z")} == dict.fromkeys(("M", "N", "Z"))


def test_owners_say_what_the_map_says() -> None:
    for intrinsic in CATALOGUE.of_isa("cuda"):
        for operand in intrinsic.operands.values():
            if intrinsic.scope == "warp" and operand.fragment is not None:
                lanes, own = Fragment(operand, 32).owners
                assert (lanes >= 0).all()
                assert (own >= 0).all()
                for place, lane in where(operand).items():
                    number = 0
                    for at, extent in zip(place, operand.shape, strict=True):
                        number = number * extent + at
                    assert lanes[number] == lane


@pytest.mark.parametrize("text", [AGAIN, BEGINS], ids=["read again", "begins"])
def test_nothing_that_others_read_elsewhere(text: str) -> None:
    """One column of it is read, or a product's sums begin with other elements of it."""
    assert text != MLP
    assert all("P" not in rows.held for rows in found(text))


def test_what_is_read_behind_the_loop_outlives_it() -> None:
    assert OUTSIDE != MLP
    (rows,) = found(OUTSIDE)
    assert "P" in rows.carried


def test_what_a_row_stage_changes_on_the_way_is_held() -> None:
    assert UPDATED != MLP
    (rows,) = found(UPDATED)
    assert "P" in rows.held
    assert "P" in {s.stage.assign.tensor for s in rows.stages.values()}


def test_nothing_is_taken_whose_lanes_lie_otherwise() -> None:
    assert not any(p.taken for rows in found(MLP, t="tf32") for p in rows.products)
