"""Copies of parts as machine code and as exported C, each thread with its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compiled.c_build import missing_features, needs_compiler
from support.compiled.native import check_exported_c, check_machine_code
from support.match.agreement import expect
from support.programs.copied_parts import PROGRAMS, parted

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel


def kernels(name: str) -> list[Kernel]:
    plan, rows = parted(name)
    return [k for k in (lower(plan, plan.space.schedule(r)) for r in rows) if not missing_features(k)]


@pytest.mark.sampled(1)
@pytest.mark.x86
@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_code(name: str) -> None:
    check_machine_code(kernels(name), expect(PROGRAMS[name]))


@pytest.mark.slow
@needs_compiler
@pytest.mark.compiler
def test_exported_c(tmp_path: Path) -> None:
    expected = expect(PROGRAMS["channels_of_bytes"])
    check_exported_c([(k, expected) for k in kernels("channels_of_bytes")[1:3]], tmp_path, "-fopenmp")
