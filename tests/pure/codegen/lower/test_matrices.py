"""Registers that hold matrices: descriptions, spaces, loop trees in the interpreter, and the code that LLVM makes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.compiled.kernel_check import check_kernel
from support.match.agreement import disagreement, expect
from support.plans import covering_rows, plans_of
from support.programs.matrices import matrix_plans, programs, target

from autosched import permission
from autosched.codegen.analysis.matrix_moves import touches
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.llvm.machine.compile import assembly
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Configure, For, Kernel, KernelError, statements
from autosched.codegen.tree.text import print_kernel
from autosched.costmodel.analytic.clock import clock
from autosched.errors import SpecError
from autosched.ir import workload
from autosched.machine.host import host_features
from autosched.machine.probes import issue_loop
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text
from autosched.tiling.planner.nests import nest_or_reason

PROGRAMS = programs()
CORE = "sapphirerapids"


def a_kernel(name: str, threads: int = 1, seed: int = 3) -> Kernel:
    plan = matrix_plans(PROGRAMS[name], threads)[0]
    return lower(plan, plan.space.schedule(next(covering_rows(plan, seed))))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_compute_the_program(name: str) -> None:
    expected = expect(PROGRAMS[name])
    for plan in matrix_plans(PROGRAMS[name], threads=2)[:2]:
        assert disagreement(plan, list(covering_rows(plan, seed=11))[:3], expected) is None


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "matmul_small"])
def test_llvm_makes_its_instructions(name: str) -> None:
    kernel = a_kernel(name, threads=2)
    code = assembly(print_llvm(kernel), CORE)
    (intrinsic,) = kernel.intrinsics
    assert intrinsic.name.split("/")[1] in code
    for text in ("ldtilecfg", "tilezero", "tileloadd", "tilestored", "tilerelease"):
        assert text in code or (text == "tilezero" and name in ("accumulated", "bias_start"))


def test_a_tile_takes_no_more_than_the_registers() -> None:
    plan = matrix_plans(workload("matmul", m=512, n=512, k=512, a="u8", b="s8"))[0]
    legal = plan.space.enumerate().ids
    values = plan.space.values(legal)
    assert values["registers"].max() <= 8
    sums = {tuple(t) for t in zip(values["reg_i"].tolist(), values["reg_j"].tolist(), strict=True)}
    assert {(2, 2), (1, 3), (6, 1)} <= sums
    assert not {(3, 2), (1, 4), (2, 3)} & sums
    row = plan.space.row_of({**plan.space.schedule(int(legal[0])).values, "reg_i": 2, "reg_j": 3})
    assert any("matrix registers > 8" in why for why in plan.space.why_not(row))


def test_registers_are_configured_where_they_are_used() -> None:
    kernel = a_kernel("matmul_whole")
    first, *_, last = [s for s in kernel.main.body if isinstance(s, Configure) or touches((s,), kernel.buffers)]
    assert isinstance(first, Configure)
    assert first.on
    assert isinstance(last, Configure)
    assert not last.on
    assert "configure 8 registers of 16 x 64 bytes" in print_kernel(kernel)
    bare = tuple(s for s in kernel.main.body if not isinstance(s, Configure))
    expected = expect(PROGRAMS["matmul_whole"])
    with pytest.raises(KernelError, match="not configured"):
        run_kernel(replace(kernel, main=replace(kernel.main, body=bare)), expected.arrays)


def test_each_thread_configures_its_own() -> None:
    plan = matrix_plans(PROGRAMS["matmul_whole"], threads=2)[0]
    legal = plan.space.enumerate().ids
    row = int(legal[np.flatnonzero(plan.space.values(legal)["threads"] == 2)[0]])
    kernel = lower(plan, plan.space.schedule(row))
    loop = next(s for s in kernel.main.body if touches((s,), kernel.buffers))
    assert isinstance(loop, For)
    assert [isinstance(s, Configure) for s in (loop.body[0], loop.body[-1])] == [True, True]


def test_a_register_beyond_the_last_is_refused() -> None:
    kernel = a_kernel("matmul_whole")
    acc = kernel.buffers["acc"]
    with pytest.raises(KernelError, match="takes register"):
        check_kernel(replace(kernel, buffers=kernel.buffers | {"acc": replace(acc, first=8)}))


def test_whole_tiles_go_straight_to_memory_and_fused_ones_through_a_few_rows() -> None:
    assert "sums" not in a_kernel("matmul_whole").buffers or "sums" not in a_kernel("matmul_whole").main.buffers
    assert "sums" in a_kernel("requant").main.buffers
    assert not any(isinstance(s, Configure) for f in a_kernel("requant").prepare for s in statements(f.body))


def test_small_products_stay_on_vector_registers() -> None:
    plans = plans_of(PROGRAMS["matmul_small"], target())
    assert plans
    assert not matrix_plans(PROGRAMS["matmul_small"])


def test_sums_that_a_guard_drops_are_left_to_others() -> None:
    text = """
def f(A: u8[m, k], B: s8[k, n], C: s32[m, n], *, m=40, n=40, k=100):
    for i, j in grid(m, n):
        C[i, j] = 7
        for p in range(k):
            if i + j < 60:
                C[i, j] += s32(A[i, p]) * s32(B[p, j])
"""
    from autosched.ir import parse
    from autosched.search.tuning.tune import usable
    from autosched.tensorize.matcher.match import match
    from autosched.tiling.variants.conditional import candidates_of

    program = parse(text)
    matches = match(program, usable(Catalogue.builtin(), target(), "cpu", ("x86/tdpbusd",)))
    reasons = [nest_or_reason(m, target()) for found in candidates_of(matches).values() for m in found]
    assert all(isinstance(r, str) for r in reasons)


def test_the_clock_counts_every_row_of_a_load() -> None:
    plan = matrix_plans(workload("matmul", m=512, n=512, k=512, a="u8", b="s8"))[0]
    ids = plan.space.enumerate().ids
    v = plan.space.values(ids)
    pick = (v["reg_j"] == 1) & (v["pack_a"] == 0) & (v["block_i"] == 0) & (v["block_j"] == 0) & (v["block_p"] == 0)
    terms = clock(plan, v)
    one, four = (int(np.flatnonzero(pick & (v["reg_i"] == r))[0]) for r in (1, 4))
    assert terms["load"][one] > 1.5 * terms["load"][four]  # two loads a product, or five for four
    products = 32 * 32 * 8
    assert terms["load"][one] >= products * 2 * 16 / 2 / plan.target.clock_hz


def test_its_peak_can_be_measured() -> None:
    text, issues = issue_loop(Catalogue.builtin()["x86/tdpbusd"], 32, frozenset())
    assert issues == 24
    assert assembly(text, CORE).count("tdpbusd") == 24


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("rows: 16", "rows: 8", "fills no register"),
        ("llvm.x86.tilezero(i8 {register})", "llvm.x86.tilezero(i8 {number})", "{number} is no field"),
        ("call void @llvm.x86.tilerelease()", "ret void", "is not accepted"),
        ("at: 48", "at: 63", "is outside"),
        ("bytes_a_row", "bytes_of_row", "did you mean"),
    ],
)
def test_a_wrong_description_is_refused(old: str, new: str, wanted: str) -> None:
    path = Catalogue.builtin()["x86/tdpbusd"].path
    text = Path(path).read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(SpecError) as error:
        load_text(text.replace(old, new))
    assert wanted in f"{error.value.message} {error.value.hint}"


def test_a_refused_permission_takes_the_feature_away() -> None:
    found = frozenset({"amx_tile", "amx_int8", "avx2"})
    assert permission.refused(found, lambda asked: False) == {"amx_tile", "amx_int8"}
    assert not permission.refused(found, lambda asked: True)
    assert not host_features() & permission.refused(host_features())
