"""Instructions on registers of fewer rows than these could have: what they compute, which mappings take them, how their
registers are configured, and what they cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.compiled.kernel_check import check_kernel
from support.match.agreement import disagreement, expect
from support.plans import covering_rows
from support.programs.matrices import matrix_plans, target

from autosched.codegen.c import print_c
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.llvm.machine.compile import assembly
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Configure, KernelError
from autosched.codegen.tree.text import print_kernel
from autosched.errors import SpecError
from autosched.ir import parse, workload
from autosched.ir.oracle.interpreter import run
from autosched.logic import Const
from autosched.machine.catalogue import load_target
from autosched.tensorize.fewer_rows import axis_of_rows, with_rows
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text
from autosched.tiling.plans.plan import Plan

PRODUCT = Catalogue.builtin()["x86/tdpbusd"]
TWO = """
def two(A: u8[m, k], B: const[s8[k, n]], X: u8[l, k], C: s32[m, n], Z: s32[l, n], *, m=14, l=20, n=16, k=64):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
    for i, j in grid(l, n):
        Z[i, j] = 0
        for p in range(k):
            Z[i, j] += s32(X[i, p]) * s32(B[p, j])
"""


def a_plan(rows: int, columns: int = 32) -> Plan:
    program = workload("matmul", m=rows, n=columns, k=128, a="u8", b="s8")
    return next(p for p in matrix_plans(program) if "i←i, j←j" in p.name)


def test_the_rows_of_sums_and_of_one_factor_are_an_axis() -> None:
    axis = axis_of_rows(PRODUCT)
    assert axis is not None
    assert axis.name == "i"
    assert axis_of_rows(Catalogue.builtin()["x86/vpdpbusd.zmm"]) is None


def test_fewer_rows_are_the_first_of_all() -> None:
    axis = axis_of_rows(PRODUCT)
    assert axis is not None
    short = with_rows(PRODUCT, axis, 5)
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 255, (16, 64)).astype(np.uint8), rng.integers(-128, 127, (64, 16)).astype(np.int8)
    c = rng.integers(-99, 99, (16, 16)).astype(np.int32)
    whole = run(PRODUCT.program, {"a": a, "b": b, "c": c})["c"]
    assert np.array_equal(run(short.program, {"a": a[:5], "b": b, "c": c[:5]})["c"], whole[:5])
    assert [short.operands[n].shape for n in "abc"] == [(5, 64), (64, 16), (5, 16)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("extent", "rows"), [(56, 14), (14, 14), (28, 14), (7, 7), (18, 9), (196, 16), (64, 16)])
def test_tiles_are_cut_evenly(extent: int, rows: int) -> None:
    nest = a_plan(extent).tensor_parts[0].nest
    unit = next(a.unit for a in nest.axes if a.intrinsic_axis == "i")
    assert unit == rows
    assert sum(a.units for a in nest.axes if a.intrinsic_axis == "i") == -(-extent // 16)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("extent", [14, 21, 33])
def test_rows_compute_the_program(extent: int) -> None:
    plan = a_plan(extent, 20)
    ids = np.random.default_rng(3).permutation(plan.space.enumerate().ids)[:4].tolist()
    assert disagreement(plan, ids, expect(plan.program)) is None


def both_products() -> Plan:
    return next(p for p in matrix_plans(parse(TWO, filename="two.py")) if len(p.tensor_parts) == 2)


def test_products_of_one_program_have_rows_of_their_own() -> None:
    plan = both_products()
    units = [a.unit for part in plan.tensor_parts for a in part.nest.axes if a.intrinsic_axis == "i"]
    assert units == [14, 10]
    assert disagreement(plan, list(covering_rows(plan))[:2], expect(plan.program)) is None


def test_a_kernel_tells_products_of_one_name_apart() -> None:
    plan = both_products()
    kernel = lower(plan, plan.space.schedule(next(covering_rows(plan))))
    assert [(i.name, i.accumulator.shape) for i in kernel.intrinsics] == [
        (PRODUCT.name, (14, 16)),
        (PRODUCT.name, (10, 16)),
    ]
    assert print_c(kernel).header.count(PRODUCT.name) == 1


def test_registers_are_configured_with_their_rows() -> None:
    plan = a_plan(14)
    kernel = lower(plan, plan.space.schedule(int(plan.space.enumerate().ids[0])))
    (on, *_) = [s for s in kernel.main.body if isinstance(s, Configure)]
    rows = {b.name: b.shape[-1] * b.dtype.bytes // 64 for b in kernel.buffers.values() if b.scope == "matrix"}
    assert rows == {"acc": 14, "a_reg": 14, "b_reg": 16}
    for b in (b for b in kernel.buffers.values() if b.scope == "matrix"):
        assert on.matrices.rows_in(b.first) == rows[b.name]
    assert "rows" in next(line for line in print_kernel(kernel).splitlines() if "configure 8 registers" in line)
    code = assembly(print_llvm(kernel), "sapphirerapids")
    assert "ldtilecfg" in code
    full = tuple(replace(s, matrices=PRODUCT.matrices) if isinstance(s, Configure) else s for s in kernel.main.body)
    with pytest.raises(KernelError, match="not configured"):
        run_kernel(replace(kernel, main=replace(kernel.main, body=full)), expect(plan.program).arrays)


def test_whole_tiles_at_the_end_of_a_line_go_straight_to_memory() -> None:
    plan = a_plan(14)
    kernel = lower(plan, plan.space.schedule(int(plan.space.enumerate().ids[0])))
    assert "sums" not in kernel.main.buffers


def test_more_rows_than_there_are_is_refused() -> None:
    plan = a_plan(14)
    kernel = lower(plan, plan.space.schedule(int(plan.space.enumerate().ids[0])))
    acc = kernel.buffers["acc"]
    longer = replace(acc, shape=(*acc.shape[:-1], 17 * 16))
    with pytest.raises(KernelError, match="bits a register"):
        check_kernel(replace(kernel, buffers=kernel.buffers | {"acc": longer}))


def test_their_time_is_between_those_that_are_known() -> None:
    axis = axis_of_rows(PRODUCT)
    assert axis is not None
    cycles = {n: with_rows(PRODUCT, axis, n).timing["interval"] for n in range(2, 17)}
    assert [cycles[n] for n in (7, 8, 14, 16)] == [9.3, 9.9, 15, 16]
    assert cycles[2] == cycles[7]
    assert cycles[11] == pytest.approx((9.9 + 15) / 2)
    some = with_rows(PRODUCT, axis, 14)
    assert some.timing["latency"] == PRODUCT.timing["latency"] * 15 / 16
    fewer = with_rows(PRODUCT, axis, 11)
    assert with_rows(fewer, replace(axis, upper=Const(11)), 8).timing["interval"] == pytest.approx(cycles[8])
    here = target()
    measured = replace(here, rates={PRODUCT.name: 1 / 20})
    assert measured.issues(some) == pytest.approx(1 / 20 * 16 / 15)
    assert here.issues(some) == pytest.approx(1 / 15)


def test_their_time_is_in_proportion_where_nothing_is_known() -> None:
    axis = axis_of_rows(PRODUCT)
    assert axis is not None
    assert with_rows(replace(PRODUCT, interval_by_rows=()), axis, 12).timing["interval"] == 12


@pytest.mark.parametrize("rows", ["[[8, 9], [7, 10]]", "[[7, 10], [8, 9]]", "[[7, 17]]", "[[16, 15]]"])
def test_known_times_are_checked(rows: str) -> None:
    text = Path(PRODUCT.path).read_text(encoding="utf-8")
    with pytest.raises(SpecError, match="more rows take fewer cycles, or are no more"):
        load_text(text.replace("[[7, 9.3], [8, 9.9], [14, 15]]", rows))
    vectors = Path(Catalogue.builtin()["x86/vpdpbusd.zmm"].path).read_text(encoding="utf-8")
    with pytest.raises(SpecError, match="its registers hold no matrices"):
        load_text(vectors.replace("timing: {", "timing: {rows: [[7, 9.3]], ", 1))


def test_a_described_machine_knows_their_rate() -> None:
    """What is told of a peak is of the fastest instruction whose rate the target has."""
    here = load_target("intel-sapphire-rapids")
    held = [i for i in Catalogue.builtin().of_isa("x86", features=here.features) if i.matrices is not None]
    assert len(held) == 5
    assert all(here.rates[i.name] == 1 / i.timing["interval"] for i in held)


def test_the_place_of_rows_is_checked() -> None:
    text = Path(PRODUCT.path).read_text(encoding="utf-8")
    with pytest.raises(SpecError, match="are not the rows of 8 registers"):
        load_text(text.replace("rows: 48", "rows: 47"))
    fixed = load_text(text.replace("          rows: 48\n", ""))
    assert all(axis_of_rows(i) is None for i in fixed)
