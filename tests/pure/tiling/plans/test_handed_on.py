"""Fragments that one product hands on to another: what is offered, held against the instructions' maps lane by lane."""

from __future__ import annotations

from itertools import product

import pytest
from support.cards.gpu_plans import CATALOGUE
from support.programs.block_chains import MLP

from autosched import ir
from autosched.logic import evaluate
from autosched.machine.catalogue import load_target
from autosched.search.tuning.tune import usable
from autosched.tensorize.intrinsic import Operand
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.handed_on import HandedOn, owners
from autosched.tiling.steps.gpu.tile_loops import handed_inside

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


def found(text: str, **sizes: object) -> list[HandedOn]:
    target = load_target("nvidia-a100")
    program = ir.parse(text, sizes={"m": 64, "tile": 32, "f": 128, "block": 64} | sizes)
    plan = plan_program(program, target, CATALOGUE, usable(CATALOGUE, target, "simulator", None)).plans[0]
    return list(handed_inside(plan))


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
    (handed,) = found(MLP, t=t)
    assert handed.tensor == "P"
    assert [s.warps for s in handed.splits] == [1, 2]
    maker, taker = handed.maker.nest, handed.taker.nest
    out, wanted = maker.intrinsic.accumulator, taker.intrinsic.operands[handed.operand]
    has, wants = where(out), where(wanted)
    taken = taker.intrinsic.operand_axes[handed.operand]
    for split in handed.splits:
        for i, j in product(range(32), range(64)):
            at = {a.intrinsic_axis: (i if a is handed.dims[0] else j) for a in maker.lanes}
            units = {a.intrinsic_axis: a.unit for a in maker.lanes}
            names = [n for n in maker.intrinsic.operand_axes[out.name] if n]
            mine = has[tuple(at[n] % units[n] for n in names)]
            row = at[split.along.intrinsic_axis] // split.along.unit // split.made
            inside = {split.rows.intrinsic_axis: i % split.rows.unit, "k": j % wanted.shape[taken.index("k")]}
            assert wants[tuple(inside[n] for n in taken)] == mine
            assert i // split.rows.unit // split.taken == row


def test_owners_say_what_the_map_says() -> None:
    for intrinsic in CATALOGUE.of_isa("cuda"):
        for operand in intrinsic.operands.values():
            if intrinsic.scope == "warp" and operand.fragment is not None:
                lanes, own = owners(operand)
                assert (lanes >= 0).all()
                assert (own >= 0).all()
                for place, lane in where(operand).items():
                    number = 0
                    for at, extent in zip(place, operand.shape, strict=True):
                        number = number * extent + at
                    assert lanes[number] == lane


@pytest.mark.parametrize(
    "text", [AGAIN, UPDATED, OUTSIDE, BEGINS], ids=["read again", "written again", "read outside", "begins"]
)
def test_nothing_that_others_touch(text: str) -> None:
    assert text != MLP
    assert found(text) == []


def test_nothing_whose_lanes_lie_otherwise() -> None:
    assert found(MLP, t="tf32") == []
