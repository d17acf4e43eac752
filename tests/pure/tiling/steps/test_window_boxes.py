"""Windows of tensors as TMA sees them: every element of a map is the one that the window's subscripts name."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from autosched.logic import Const, Var, evaluate
from autosched.tiling.analysis.windows import TensorWindow
from autosched.tiling.steps.gpu.operands.operand_paths import steps_of
from autosched.tiling.steps.gpu.operands.window_boxes import WindowStart, steps_in_tensor

TILE, CHOICE = Var("i"), Var("e")
CASES = {
    "rows": ((512, 64), TensorWindow("X", (TILE * 128, Const(0)), (0, 1)), (128, 64), [(64, 1), (128, 64)]),
    "columns": ((64, 512), TensorWindow("X", (Const(0), TILE * 128), (0, 1)), (64, 128), [(128, 1), (64, 128)]),
    "an expert": ((5, 48, 32), TensorWindow("W", (CHOICE, Const(0), TILE * 8), (1, 2)), (48, 8), [(8, 1), (48, 8)]),
    "in the middle": (
        (72, 4, 72), TensorWindow("W", (Const(0), CHOICE, Const(0)), (0, 2)), (72, 72), [(72, 1), (72, 72)]
    ),
    "every other row": ((64, 32), TensorWindow("X", (TILE * 16, Const(0)), (0, 1)), (16, 32), [(32, 1), (8, 64)]),
    "fused and whole": ((4, 8, 16), TensorWindow("X", (TILE, Const(0), Const(0)), (1, 2)), (8, 16), [(128, 1)]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_map_reads_what_the_window_names(case: str) -> None:
    extents, window, inside, sides = CASES[case]
    steps = steps_in_tensor(sides, window, inside, extents)
    assert steps is not None
    start = WindowStart.of(window, inside, extents)
    assert start is not None
    own, tensor = steps_of(inside), steps_of(extents)
    reached = (start.count - 1) * start.every + sum((n - 1) * step for (n, _), step in zip(sides, steps, strict=True))
    assert reached < np.prod(extents)
    for at in ({"i": 0, "e": 0}, {"i": 2, "e": 3}):
        number = int(evaluate(start.number, at))
        assert 0 <= number < start.count
        for place in itertools.product(*(range(0, n, max(1, n // 3)) for n, _ in sides)):
            flat = sum(p * step for p, (_, step) in zip(place, sides, strict=True))
            index = [flat // step % n for step, n in zip(own, inside, strict=True)]
            named = window.place([Const(int(i)) for i in index])
            wanted = sum(int(evaluate(i, at)) * step for i, step in zip(named, tensor, strict=True))
            assert number * start.every + np.dot(place, steps) == wanted


def test_rows_that_end_within_a_side_are_no_dimension() -> None:
    window = TensorWindow("X", (TILE * 16, Const(0)), (0, 1))
    assert steps_in_tensor([(8 * 16, 1)], window, (16, 8), (64, 32)) is None
    assert steps_in_tensor([(8, 1), (16, 9)], window, (16, 8), (64, 32)) is None


def test_a_window_that_begins_with_its_tensor_has_no_start() -> None:
    assert WindowStart.of(TensorWindow("X", (Const(0), Const(0)), (0, 1)), (8, 8), (8, 8)) is None
