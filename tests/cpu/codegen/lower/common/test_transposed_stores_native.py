"""Turned stores as machine code and as exported C (tests/pure/codegen/lower/test_transposed_stores.py has them
interpreted)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pure.codegen.lower.test_transposed_stores import turned
from support.compiled.c_build import missing_features, needs_compiler
from support.compiled.native import check_exported_c, check_machine_code
from support.match.agreement import expect
from support.programs.transposed_stores import PROGRAMS, rows_of_all_sizes

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel


def kernels(name: str) -> list[Kernel]:
    plan, row = turned(name)
    found = [lower(plan, plan.space.schedule(r)) for r in rows_of_all_sizes(plan, row)]
    return [k for k in found if not missing_features(k)]


@pytest.mark.sampled(1)
@pytest.mark.x86
@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_code(name: str) -> None:
    check_machine_code(kernels(name), expect(PROGRAMS[name]))


@pytest.mark.slow
@needs_compiler
@pytest.mark.compiler
def test_exported_c(tmp_path: Path) -> None:
    names = ("swapped", "nchw_bytes", "nchw_fused", "mixed")
    check_exported_c([(k, expect(PROGRAMS[n])) for n in names for k in kernels(n)[3:4]], tmp_path)
