"""Sizes of which a range is known alone, as bodies of tile loops have them: they reach its greatest value, too."""

from __future__ import annotations

from support.plans import machine

from autosched.ir import parse
from autosched.ir.program import Program
from autosched.tiling.analysis.dependence import analyse
from autosched.tiling.analysis.windows import nested, windowed
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.plans.scalar_parts import scalar_part
from autosched.tiling.steps import StepNames

SUMS = """
def sums(A: f32[6, 4], Y: f32[6], *, t="1..4"):
    for u in range(2):
        for i in range(3):
            Y[u * 3 + i] = 0
        for i2 in range(3):
            for j in range(t):
                Y[u * 3 + i2] += A[u * 3 + i2, j]
"""
ADDED = """
def added(A: f32[6, 4], Y: f32[6], *, t="1..4"):
    for i in range(6):
        for j in range(t):
            Y[i] += A[i, j]
"""


def program(text: str) -> Program:
    return parse(text, filename="sizes.py")


def test_a_window_holds_what_the_greatest_size_reaches() -> None:
    whole = program(SUMS)
    loops, body = nested(whole.body)
    found = windowed(whole, loops, body)
    assert found is not None
    assert found.program.tensors["A"].extents == (3, 4)


def test_a_sum_that_goes_on_from_what_is_there_has_a_plan() -> None:
    added = program(ADDED)
    part = scalar_part(added, added.stages[0], StepNames(""), analyse(added))
    assert part.stage.name == "Y"
    assert make_plans(added, machine(), {})
