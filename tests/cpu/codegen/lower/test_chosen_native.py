"""Slices that data choose as machine code and as exported C: both agree with the oracle, and no data make them read
outside of a tensor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.compiled.c_build import missing_features, needs_compiler
from support.compiled.native import check_exported_c, check_machine_code, compiled
from support.match.agreement import expect
from support.plans import this_machine
from support.programs.chosen import CHOSEN, chosen_plans

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Chosen, Kernel
from autosched.errors import UsageError
from autosched.machine.host import host_features

pytestmark = [pytest.mark.x86]


def kernels(name: str, count: int, threads: int = 1) -> list[Kernel]:
    if "avx2" not in host_features():
        pytest.skip("needs AVX2")
    made = []
    for plan in chosen_plans(CHOSEN[name], this_machine(), threads):
        ids = plan.space.sample(count, np.random.default_rng(len(name)))
        made += [lower(plan, plan.space.schedule(int(row))) for row in ids]
    assert any(isinstance(s, Chosen) for k in made for s in k.statements)
    return made


@pytest.mark.parametrize("name", ["experts", "twice"])
def test_machine_code(name: str) -> None:
    check_machine_code(kernels(name, 2, threads=2), expect(CHOSEN[name]))


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOSEN)
def test_machine_code_of_every_kind(name: str) -> None:
    check_machine_code(kernels(name, 6, threads=2), expect(CHOSEN[name]))


@needs_compiler
@pytest.mark.compiler
@pytest.mark.slow
def test_exported_c(tmp_path: Path) -> None:
    made = [(k, expect(program)) for name, program in CHOSEN.items() for k in kernels(name, 2)]
    check_exported_c([m for m in made if not missing_features(m[0])], tmp_path, "-fopenmp")


@pytest.mark.parametrize("wrong", [-1, 3, 2**31 - 1, -(2**31)])
def test_a_choice_outside_is_refused_by_name(wrong: int) -> None:
    expected = expect(CHOSEN["experts"])
    chosen = np.array([0, wrong, 2], np.int32)
    for kernel in kernels("experts", 1):
        with pytest.raises(UsageError, match=rf"E\[1\] is {wrong}"):
            compiled(kernel)(**{**expected.arrays, "E": chosen})


def test_what_nobody_refuses_reads_the_nearest_slice() -> None:
    """Exported C trusts its callers: with data that they should not have given it still reads the tensor alone."""
    expected = expect(CHOSEN["experts"])
    for made in kernels("experts", 2):
        kernel = compiled(made)
        kernel.__dict__["indices"] = ()
        outside, nearest = (np.array(e, np.int32) for e in ((-7, 3, 2**31 - 1), (0, 2, 2)))
        found = [kernel(**{**expected.arrays, "E": e}).copy() for e in (outside, nearest)]
        assert np.array_equal(*found)
