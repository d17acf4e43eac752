"""Printed teams: the golden softmax, vector accesses and shuffles, every architecture's compiler, what is refused."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import pytest
from support.cards.gpu_plans import CATALOGUE, H200
from support.cards.nvrtc import needs_nvrtc
from support.paths import TESTS

from autosched.codegen.cuda import CudaSource, print_cuda
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Assign, For, statements
from autosched.codegen.tree.text import print_kernel
from autosched.device.cuda.compile.nvrtc import compile_cuda
from autosched.errors import UsageError
from autosched.ir import parse, resolve
from autosched.ir.value import Read, map_value
from autosched.logic import Var
from autosched.machine.target import Target
from autosched.tensorize.spec.programs.function import formulas_of
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.plans.float_policy import FloatPolicy
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.request import request

GOLDEN = TESTS / "golden"
ARCHITECTURES = {
    "sm_61": ["sm_61"],
    "sm_70": ["sm_61", "sm_70"],
    "sm_75": ["sm_61", "sm_70", "sm_75"],
    "sm_80": ["sm_61", "sm_70", "sm_75", "sm_80"],
    "sm_89": ["sm_61", "sm_70", "sm_75", "sm_80", "sm_89"],
    "sm_90a": sorted(H200.features),
}


def plan_of(name: str, target: Target = H200, **sizes: Any) -> Plan:
    return make_plans(resolve(name, sizes), target, {}, 1)[0]


def printed(plan: Plan, wanted: dict[str, Any]) -> CudaSource:
    row = request(plan.space, wanted).row
    assert row is not None
    return print_cuda(lower(plan, plan.space.schedule(row)), plan.target)


SOFTMAX = {"M.vector": 4, "M.warps": 4, "M.rows": 1, "M.hold": "registers"}


@pytest.mark.parametrize("kind", ["txt", "cu"])
def test_golden_softmax(kind: str) -> None:
    """The golden files change with `AUTOSCHED_GOLDEN=update pytest`; look at the difference before committing it."""
    plan = plan_of("softmax", m=512, n=1500)
    row = request(plan.space, SOFTMAX).row
    assert row is not None
    kernel = lower(plan, plan.space.schedule(row))
    text = print_kernel(kernel) if kind == "txt" else print_cuda(kernel, H200).text
    file = GOLDEN / f"cuda_softmax.{kind}"
    if os.environ.get("AUTOSCHED_GOLDEN") == "update":
        file.write_text(text)
    assert text == file.read_text()


def test_reads_and_writes_are_of_16_bytes() -> None:
    text = printed(plan_of("softmax", m=64, n=1024, t="f16"), {"M.vector": 8, "M.hold": "registers"}).text
    assert text.count("copy<16>(") == 2
    assert "copy<8>" not in text
    text = printed(plan_of("elementwise", op="add", m=64, n=64), {"vector": 4, "unroll": 2}).text
    assert text.count("copy<16>(") == 6


def test_a_sum_of_several_warps_meets_once() -> None:
    one = printed(plan_of("reduce", op="sum", over="rows", m=64, n=4096), {"warps": 8, "rows": 2, "vector": 4})
    assert one.text.count("__syncthreads();") == 1
    assert one.plan.launches[0].block == (512, 1, 1)
    assert printed(plan_of("softmax", m=64, n=512), {"M.warps": 1}).text.count("__syncthreads();") == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_architecture_compiles_teams(arch: str) -> None:
    needs_nvrtc(arch)
    compiler = {"kind": "nvrtc", "arch": arch}
    target = dataclasses.replace(H200, features=frozenset(ARCHITECTURES[arch]), compiler=compiler)
    cases = [
        (plan_of("softmax", target, m=64, n=500, t="f16"), {"M.vector": 4, "M.warps": 2, "M.hold": "registers"}),
        (plan_of("reduce", target, op="sum", over="columns", m=999, n=72, t="s8", acc="s32"), {"warps": 4, "split": 2}),
    ]
    for plan, wanted in cases:
        source = printed(plan, wanted)
        assert source.arch == arch
        compile_cuda(source.text, arch, source.headers)


@pytest.mark.parametrize(("made", "taken"), [("Y_acc", "Y_acc"), ("Y_other", "Y_sum")], ids=["computed", "passed on"])
def test_an_element_of_another_lane_is_refused(made: str, taken: str) -> None:
    """What computes reads its own lane's registers, and lanes pass on to partners in pairs; the printer says so where a
    tree does not."""
    plan = plan_of("reduce", op="sum", over="rows", m=4, n=64)
    row = request(plan.space, {"vector": 1, "warps": 1}).row
    assert row is not None
    kernel = lower(plan, plan.space.schedule(row))
    (block,) = (s for s in kernel.main.body if isinstance(s, For))

    def shifted(stmt: Any) -> Any:
        if isinstance(stmt, For):
            return dataclasses.replace(stmt, body=tuple(map(shifted, stmt.body)))
        if isinstance(stmt, Assign) and stmt.buffer == made and stmt.lane is not None:
            value = map_value(
                stmt.value,
                lambda v: dataclasses.replace(v, index=(Var("warp"), (Var("e") + 1) % 32))
                if isinstance(v, Read) and v.tensor == taken
                else v,
            )
            return dataclasses.replace(stmt, value=value)
        return stmt

    body = (shifted(block),)
    assert list(statements(body)) != list(statements((block,)))
    broken = dataclasses.replace(kernel, main=dataclasses.replace(kernel.main, body=body))
    with pytest.raises(UsageError, match="another lane"):
        print_cuda(broken, H200)


@pytest.mark.parametrize("function", ["exp", "sigmoid"])
def test_functions_compile_in_single_precision(function: str) -> None:
    """By a text of their own with the header that it names, or in steps; for the oldest card too."""
    known = (i for isa in ("cuda", "portable") for i in CATALOGUE.of_isa(isa, kind="function"))
    target = dataclasses.replace(H200, features=frozenset(["sm_61"]), compiler={"kind": "nvrtc", "arch": "sm_61"})
    program = parse(f"""
def f(X: f32[n], Y: f32[n], *, n=256):
    for i in range(n):
        Y[i] = {function}(X[i])
""")
    source = printed(make_plans(program, target, {}, 1, FloatPolicy(formulas=formulas_of(known)))[0], {"vector": 4})
    assert f"approximate_{function}_f32" in source.text
    assert ("autosched/math.cuh" in source.headers, "power_of_two(t)" in source.text) == (function == "exp",) * 2
    assert "double" not in source.text
    needs_nvrtc("sm_61")
    compile_cuda(source.text, "sm_61", source.headers)
