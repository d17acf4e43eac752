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
from autosched.ir import parse, run
from autosched.ir.program import Program
from autosched.machine.host import host_features

pytestmark = [pytest.mark.x86]
MASKED = """
def masked(X: a[x, m, k], W: b[x, k, n], R: t[x], Y: c[x, m, n],
           *, x=2, m=32, k=8, n=16, a="f32", b="f32", c="f32", t="s32"):
    for x_, i, j in grid(x, m, n):
        Y[x_, i, j] = 0
        for p in range(k):
            if t(i) < R[x_]:
                Y[x_, i, j] += c(X[x_, i, p]) * c(W[x_, p, j])
"""
"""Products of the first rows, of which data say how many there are."""


def masked_kernels(program: Program) -> list[Kernel]:
    """One of each plan in which data bound the rows."""
    plans = list(chosen_plans(program, this_machine()))
    assert plans
    return [lower(p, p.space.schedule(int(p.space.sample(1, np.random.default_rng(0))[0]))) for p in plans]


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


@pytest.mark.parametrize("rows", ["u64", "s64", "u8"])
def test_counts_of_rows_of_every_type(rows: str) -> None:
    """The greatest counts of 64 bits have no sign: all rows are there."""
    program = parse(MASKED, sizes={"t": rows})
    expected = expect(program)
    counts = np.array([program.tensors["R"].dtype.limits[1], 3], program.tensors["R"].dtype.numpy)
    wanted = run(program, {**expected.arrays, "R": counts})["Y"]
    for kernel in masked_kernels(program):
        found = compiled(kernel)(**{**expected.arrays, "R": counts})
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("k", [3, 8])
def test_counts_of_rows_of_bytes(k: int) -> None:
    """A depth that instructions pad, in rows that data choose."""
    program = parse(MASKED, sizes={"a": "u8", "b": "s8", "c": "s32", "k": k})
    check_machine_code(masked_kernels(program), expect(program))


ALTERNATE = """
def alternate(E: s64[4], A: s8[16, 16], B: const[s8[2, 16, 64]], T: s32[16, 64]):
    for i, j in grid(16, 64):
        T[i, j] = 0
        for p in range(16):
            T[i, j] += (s32(A[p, i]) if (i + p) % 2 == 0 else 0) * s32(B[E[i // 4], p, j])
"""


def test_a_condition_on_a_row_of_a_chosen_slice() -> None:
    """What an adapter prepares outside of the loops that choose may ask which block it is for."""
    check_machine_code(masked_kernels(parse(ALTERNATE)), expect(parse(ALTERNATE)))
