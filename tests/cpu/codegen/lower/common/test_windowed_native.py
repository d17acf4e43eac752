"""Kernels of windowed instructions as machine code and as exported C: both agree with the oracle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.compiled.c_build import needs_compiler
from support.compiled.native import check_exported_c, check_machine_code
from support.match.agreement import Expected, expect
from support.plans import this_machine
from support.programs.windowed import group_text, in_vectors, line_text, windowed_plans

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel

LINES = [
    ("fir", line_text(10, 4, pad=1, channels=3)),
    ("unread", line_text(11, 3)),
    ("unread", line_text(10, 3, pad=1, channels=2)),
    ("strided", line_text(7, 4, stride=2, pad=1)),
    ("holes", line_text(7, 2, stride=3)),
    ("dilated", line_text(9, 3, dilation=2, pad=2)),
    ("flipped", line_text(9, 3, reverse=True, guard="x < 8")),
    ("floats", line_text(10, 3, pad=1, dtypes=("f32", "f32"))),
    ("groups", group_text(6, 6)),
    ("groups_of_rows", group_text(6, 10, rows=True)),
]


def kernels(name: str, text: str) -> list[tuple[Kernel, Expected]]:
    program, plans, _ = windowed_plans(text, in_vectors(name), this_machine())
    expected = expect(program)
    plan = plans[0]
    rows = plan.space.sample(2, np.random.default_rng(len(text)))
    return [(lower(plan, plan.space.schedule(int(row))), expected) for row in rows]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", range(len(LINES)))
def test_machine_code(case: int) -> None:
    for kernel, expected in kernels(*LINES[case]):
        check_machine_code([kernel], expected)


@needs_compiler
@pytest.mark.compiler
def test_exported_c(tmp_path: Path) -> None:
    made = [k for name, text in LINES if "c" in in_vectors(name).emit for k in kernels(name, text)]
    assert made
    check_exported_c(made, tmp_path, "-fopenmp")
