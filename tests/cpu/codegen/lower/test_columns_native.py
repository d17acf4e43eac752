"""Panels whose registers lie in columns, as machine code and as exported C."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.compiled.c_build import missing_features, needs_compiler
from support.compiled.native import check_exported_c, check_machine_code
from support.match.agreement import Expected, expect
from support.plans import plans_of, this_machine

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import workload
from autosched.machine.host import host_features
from autosched.tiling.steps import COLUMNS

HERE = this_machine()


@pytest.fixture
def kernels(stream_all: Callable[[str], None]) -> list[tuple[Kernel, Expected]]:
    """Kernels of random rows that read columns, some of whole pages, on one thread and on two."""
    if "avx2" not in host_features():
        pytest.skip("needs AVX2")
    stream_all("columns")
    found: list[tuple[Kernel, Expected]] = []
    for m, n, k in ((1, 150, 128), (5, 75, 131)):
        program = workload("matmul", m=m, n=n, k=k)
        plan = next(p for p in plans_of(program, HERE, threads=2) if p.tensor_parts)
        ids = plan.space.enumerate(limit=1_000_000).ids
        values = plan.space.values(ids)
        expected = expect(program)
        for threads in (1, 2):
            some = ids[(values["pack_b"] == COLUMNS) & (values["threads"] == threads)]
            rows = np.random.default_rng(threads).choice(some, size=2, replace=False).tolist()
            found += [(lower(plan, plan.space.schedule(row)), expected) for row in rows]
    return found


@pytest.mark.x86
def test_machine_code(kernels: list[tuple[Kernel, Expected]]) -> None:
    for kernel, expected in kernels:
        check_machine_code([kernel], expected)


@pytest.mark.slow
@needs_compiler
@pytest.mark.compiler
def test_exported_c(kernels: list[tuple[Kernel, Expected]], tmp_path: Path) -> None:
    check_exported_c([(k, e) for k, e in kernels if not missing_features(k)], tmp_path, "-fopenmp")
