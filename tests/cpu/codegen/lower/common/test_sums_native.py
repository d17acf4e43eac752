"""Sums between blocks of channels as machine code and as exported C (tests/pure/codegen/lower/test_sums.py has them
interpreted)."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compiled.c_build import missing_features, needs_compiler
from support.compiled.native import check_exported_c, check_machine_code
from support.match.agreement import expect
from support.programs.cut import PROGRAMS, cut_plan, cut_rows

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel


def kernels(name: str, count: int) -> list[Kernel]:
    plan = cut_plan(name)
    found = [lower(plan, plan.space.schedule(r)) for r in cut_rows(plan, count, seed=1)]
    return [k for k in found if not missing_features(k)]


@pytest.mark.sampled(1)
@pytest.mark.x86
@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_code(name: str) -> None:
    check_machine_code(kernels(name, 6), expect(PROGRAMS[name]))


@pytest.mark.slow
@needs_compiler
@pytest.mark.compiler
def test_exported_c(tmp_path: Path) -> None:
    names = ("nchw_strided", "nchw_fused", "lower")
    check_exported_c([(k, expect(PROGRAMS[n])) for n in names for k in kernels(n, 1)], tmp_path)
