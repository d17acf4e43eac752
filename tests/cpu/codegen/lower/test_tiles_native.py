"""Products in tiles of rows as machine code and as exported C: whatever the decisions and threads, both agree with the
oracle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.compiled.c_build import missing_features, needs_compiler
from support.compiled.native import check_exported_c, check_machine_code
from support.match.agreement import expect
from support.plans import this_machine
from support.programs.products_in_tiles import PRODUCTS_IN_TILES
from support.tiles import plans_in_tiles

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.machine.host import host_features


def kernels(name: str, count: int) -> list[Kernel]:
    """Kernels of rows at random of a plan of each run of the program."""
    made = []
    for plan in plans_in_tiles(PRODUCTS_IN_TILES[name], target=this_machine()):
        ids = plan.space.sample(count, np.random.default_rng(len(name)))
        made += [lower(plan, plan.space.schedule(int(row))) for row in ids]
    assert made
    return made


@pytest.mark.sampled("mlp", "kept", "turned")
@pytest.mark.x86
@pytest.mark.parametrize("name", PRODUCTS_IN_TILES)
def test_machine_code(name: str) -> None:
    if "avx2" not in host_features():
        pytest.skip("needs AVX2")
    check_machine_code(kernels(name, 8), expect(PRODUCTS_IN_TILES[name]))


@needs_compiler
@pytest.mark.compiler
@pytest.mark.parametrize(
    "names",
    [("kept",), pytest.param(tuple(PRODUCTS_IN_TILES), marks=pytest.mark.slow)],
    ids=["one program", "all programs"],
)
def test_exported_c(names: tuple[str, ...], tmp_path: Path) -> None:
    made = [(k, expect(PRODUCTS_IN_TILES[name])) for name in names for k in kernels(name, 2)]
    check_exported_c([m for m in made if not missing_features(m[0])], tmp_path, "-fopenmp")
