"""Panels of one cache block as machine code and as exported C, each thread with its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.compiled.c_build import missing_features, needs_compiler
from support.compiled.native import check_exported_c, check_machine_code
from support.match.agreement import Expected, expect
from support.plans import plans_of, this_machine
from support.programs.block_panels import PROGRAMS, blocked, small

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.machine.host import host_features

HERE = this_machine()


def kernels(name: str, count: int) -> tuple[list[Kernel], Expected]:
    """Kernels of random rows that pack blocks on two threads."""
    if "avx2" not in host_features():
        pytest.skip("needs AVX2")
    program = PROGRAMS[name]
    plan = next(p for p in plans_of(program, small(HERE), threads=2) if p.tensor_parts)
    ids = blocked(plan)
    ids = ids[plan.space.values(ids)["threads"] == 2]
    rows = np.random.default_rng(5).choice(ids, size=count, replace=False).tolist()
    return [lower(plan, plan.space.schedule(row)) for row in rows], expect(program)


@pytest.mark.sampled(1)
@pytest.mark.x86
@pytest.mark.parametrize("name", ["f32", "u8s8", "batch"])
def test_machine_code(name: str) -> None:
    check_machine_code(*kernels(name, 3))


@pytest.mark.slow
@needs_compiler
@pytest.mark.compiler
def test_exported_c(tmp_path: Path) -> None:
    made: list[tuple[Kernel, Expected]] = []
    for name in ("f32", "u8s8"):
        found, expected = kernels(name, 2)
        made += [(kernel, expected) for kernel in found if not missing_features(kernel)]
    check_exported_c(made, tmp_path, "-fopenmp")
