"""Checks and fallbacks as machine code and as exported C; what the device verifies; tuning on AVX2."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.compiled.c_build import build, call, needs_compiler
from support.compiled.native import compiled
from support.plans import covering_rows
from support.programs.guarded import CLAMPING, data_sets, guarded, programs

import autosched
from autosched.codegen import lower as lowering
from autosched.codegen.c import print_c
from autosched.codegen.call.callable import CompiledKernel
from autosched.codegen.llvm.machine.compile import compile_object
from autosched.codegen.llvm.machine.jit import load
from autosched.codegen.llvm.module import print_parts
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import GuardedDispatch
from autosched.codegen.tree.text import print_kernel
from autosched.device.correctness.violations import measured_on
from autosched.device.cpu.device import CpuDevice
from autosched.errors import UsageError
from autosched.ir.oracle.interpreter import run
from autosched.ir.program import Program
from autosched.machine.host import host_features
from autosched.store.sqlite import SqliteStore
from autosched.tiling.candidate import Candidate

pytestmark = [
    pytest.mark.x86,
    pytest.mark.skipif("avx2" not in host_features(), reason="needs AVX2"),
]
PROGRAMS = programs()
GEMM = """
def gemm(A: u8[32, k], B: const[s8[k, 32]], C: s32[32, 32], *, k=64):
    {assume}
    for i, j in grid(32, 32):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
"""


def gemm(assume: str = "") -> Program:
    return autosched.parse(GEMM.format(assume=assume))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("threads", [1, 2])
def test_machine_code_takes_the_right_way(name: str, threads: int) -> None:
    if threads == 2 and name not in ("data", "requant"):
        pytest.skip("threads are tried where data are checked in every call, and with a fused tail")
    program = PROGRAMS[name]
    plan = guarded(program, threads=threads)[0]
    for row in list(covering_rows(plan, seed=6))[-2:]:
        kernel = lower(plan, plan.space.schedule(row))
        whole = compiled(kernel)
        parts = CompiledKernel(kernel, load(tuple(map(compile_object, print_parts(kernel)))))
        for data, arrays, scalars in data_sets(program, plan):
            want = run(program, arrays, scalars)
            for call_it in (whole, parts):
                got = call_it(**arrays, **scalars)
                np.testing.assert_array_equal(got, *want.values(), err_msg=f"{plan.name} {data}")


def test_what_stands_by_is_lowered_and_compiled_once() -> None:
    """Kernels that differ in their loops only have its module in common, letter by letter."""
    plan = guarded(PROGRAMS["data"])[0]
    rows = plan.space.enumerate(limit=100_000).ids
    kernels = [lower(plan, plan.space.schedule(int(row))) for row in rows[:: len(rows) // 20]]
    bodies = [next(s for s in k.main.body if isinstance(s, GuardedDispatch)).fallback for k in kernels]
    mains, others = zip(*((texts[0], texts[-1]) for texts in map(print_parts, kernels)), strict=True)
    assert len(set(mains)) > 10 > 2 * len({id(body) for body in bodies}) >= len(set(others))
    assert all("call void @main.fallback(" in main and "define void @main.fallback(" not in main for main in mains)
    assert all("define void @main.fallback(" in other for other in others)
    fresh = replace(plan, otherwise=replace(plan.otherwise) if plan.otherwise else None)
    assert [print_kernel(lower(fresh, fresh.space.schedule(int(rows[0]))))] == [print_kernel(kernels[0])]


@pytest.mark.slow
@needs_compiler
@pytest.mark.compiler
def test_exported_c_takes_the_right_way(tmp_path: Path) -> None:
    kernels = {}
    for name, program in PROGRAMS.items():
        plan = guarded(program)[0]
        kernels[name] = plan, lower(plan, plan.space.schedule(next(covering_rows(plan, seed=7))))
    library = build([print_c(kernel) for _, kernel in kernels.values()], tmp_path)
    for name, (plan, kernel) in kernels.items():
        for data, arrays, scalars in data_sets(PROGRAMS[name], plan):
            found = call(library, kernel, arrays, scalars)
            for output, want in run(PROGRAMS[name], arrays, scalars).items():
                np.testing.assert_array_equal(found[output], want, err_msg=f"{name} {data}")
    header = print_c(kernels["weights"][1]).header
    assert "Check B: B_check is 0 where weights may take the fast way, once" in header


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["weights", "data"])
def test_the_device_verifies_both_branches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel without its fallback is right on the data that are timed, and is caught all the same."""
    program = PROGRAMS[name]
    plan = guarded(program)[0]
    candidate = Candidate(plan, next(covering_rows(plan, seed=8)))
    with CpuDevice(measured_on(program, [plan]) if name == "data" else None, threads=1) as device:
        fine = device.measure(device.build(candidate))
        assert fine.status == "ok", fine.message
        assert fine.extra["violations"] == [v for v, *_ in data_sets(program, plan)][1:]

        def careless(*arguments: Any) -> tuple[object, ...]:
            return tuple(
                s
                for stmt in choose(*arguments)
                for s in ((replace(stmt, fallback=stmt.body),) if isinstance(stmt, GuardedDispatch) else (stmt,))
            )

        choose = lowering.choose
        monkeypatch.setattr(lowering, "choose", careless)
        wrong = device.measure(device.build(candidate))
    assert wrong.status == "wrong"
    assert wrong.message.startswith(f"where {fine.extra['violations'][0][0]} = ")


@pytest.mark.slow
def test_tuning_on_avx2() -> None:
    """The saturating sequence is used with an assumption of the program, or with a check, and not without either."""
    target = autosched.target("x86-avx2")

    def used(program: Program, **how: Any) -> dict[str, bool]:
        study = autosched.tune(program, target, trials=3, **how)
        assert study.best.trial.measurement.ok
        return {e.plan.name: bool(e.plan.guards) for e in study.space.plans if CLAMPING in e.plan.intrinsics}

    assumed = used(gemm("assume(-64 <= B <= 64)"))
    assert assumed
    assert not any(assumed.values())
    assert not used(gemm(), conditions="refuse")
    checked = used(gemm())
    assert checked
    assert all(checked.values())


@pytest.mark.slow
def test_tuning_with_data() -> None:
    """One study for one tensor of weights; its kernel says that it is for these, and refuses others."""
    target, store = autosched.target("x86-avx2"), SqliteStore(":memory:")
    rng = np.random.default_rng(0)
    small, large = (rng.integers(-n, n, (64, 32), endpoint=True).astype(np.int8) for n in (60, 127))
    studies = {}
    for name, data in (("small", {"B": small}), ("large", {"B": large}), ("none", {})):
        studies[name] = autosched.tune(gemm(), target, trials=2, store=store, data=data, intrinsics=(CLAMPING,))
    assert len({s.name for s in studies.values()}) == 3
    assert studies["small"].record.key["data"].startswith("B=")
    (plan,) = {studies["small"].candidate(t).plan.name for t in studies["small"].trials if CLAMPING in t.plan}
    assert " if " not in plan
    best = studies["small"].best
    kernel = best.build()
    a = rng.integers(0, 255, (32, 64), endpoint=True).astype(np.uint8)
    np.testing.assert_array_equal(kernel(a, small), a.astype(np.int32) @ small.astype(np.int32))
    np.testing.assert_array_equal(kernel.prepack(B=small)(a), a.astype(np.int32) @ small.astype(np.int32))
    for refused in (lambda: kernel(a, large), lambda: kernel.prepack(B=large)):
        with pytest.raises(UsageError, match="B does not hold the values"):
            refused()
    assert "Right only where: B holds the data of SHA-256" in kernel.header
