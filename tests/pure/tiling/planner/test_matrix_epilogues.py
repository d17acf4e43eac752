"""Stages behind a tile of matrix registers take the sums from there, so none of them may change the sums."""

from __future__ import annotations

from support.plans import plans_of

from autosched.ir import parse
from autosched.machine.catalogue import load_target

IN_PLACE = """
def f(A: s8[48, 64], B: s8[64, 32], C: s32[48, 32], D: s32[48, 32]):
    for i, j in grid(48, 32):
        C[i, j] = 0
        for p in range(64):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
    for i, j in grid(48, 32):
        C[i, j] += 3
    for i, j in grid(48, 32):
        D[i, j] = C[i, j] * 2
"""


def test_a_stage_that_changes_the_sums_is_not_behind_matrix_registers() -> None:
    plans = plans_of(parse(IN_PLACE), load_target("intel-sapphire-rapids"))
    parts = [p for plan in plans for p in plan.tensor_parts if p.nest.intrinsic.matrices is not None]
    assert parts
    for part in parts:
        assert all(f.stage.assign.tensor != part.nest.stage.assign.tensor for f in part.epilogue)
