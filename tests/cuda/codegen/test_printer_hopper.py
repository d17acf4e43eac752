"""What only Hopper has, as printed: a golden file, all kinds of kernels through the compiler, all forms of wgmma."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest
from support.cards.gpu_plans import CATALOGUE, H200, covering
from support.cards.nvrtc import compiled, needs_nvrtc
from support.paths import TESTS

from autosched.codegen.cuda import CudaSource, print_cuda
from autosched.codegen.cuda.emission import device_function
from autosched.codegen.cuda.fragments.lane_registers import ACROSS, ALONG, HELD
from autosched.codegen.cuda.headers import device_headers
from autosched.codegen.lower import lower
from autosched.device.cuda.compile.nvrtc import compile_cuda
from autosched.device.cuda.compile.sass import instructions_of
from autosched.ir import resolve
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.matcher.match import match
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.request import request
from autosched.tiling.variants.conditional import candidates_of

GOLDEN = TESTS / "golden"
BF16 = {"a": "bf16", "b": "bf16", "acc": "f32", "out": "bf16"}
LADDER = {"copy": "TMA", "swizzle": "128 B", "block_p": 4, "stages": 3, "roles": "producer", "groups_i": 2, "reg_i": 1}
"""Rungs of the published ladder as decisions of one space: each adds to the one before."""
RUNGS: dict[str, dict[str, Any]] = {
    "wgmma and TMA": {"copy": "TMA", "swizzle": "128 B", "block_p": 4, "stages": 1, "groups_i": 1, "reg_i": 1},
    "larger tile": {"reg_i": 2},
    "a producer": {"roles": "producer", "stages": 4},
    "two consumers": {"groups_i": 2, "reg_i": 1},
    "persistent": {"persistent": "yes"},
    "grouped": {"group": 8},
    "TMA store": {"epilogue": "TMA", "stages": 3},
    "cluster": {"cluster": "2 along i"},
}
PLAIN = {"epilogue": "direct", "persistent": "no", "cluster": "none", "group": 1, "roles": "together", "split": 1}


def plan_of(workload: str, intrinsic: str, **sizes: Any) -> Plan:
    program = resolve(workload, sizes)
    level = "real" if sizes["a"] == "e4m3" else "reassociated"
    found = match(program, [CATALOGUE[intrinsic].on(H200.features)], level)
    return make_plans(program, H200, candidates_of(found))[0]


def printed(plan: Plan, row: int | None) -> CudaSource:
    assert row is not None
    return print_cuda(lower(plan, plan.space.schedule(row)), H200)


def test_golden() -> None:
    """Change it with `AUTOSCHED_GOLDEN=update pytest`, and look at the difference."""
    plan = plan_of("matmul", "cuda/wgmma.m64n64k16.bf16.f32", m=4096, n=4096, k=4096, **BF16)
    wish = PLAIN | LADDER | {"persistent": "yes", "group": 8, "epilogue": "TMA", "cluster": "2 along i"}
    source = printed(plan, request(plan.space, wish | {"reg_j": 2, "groups_j": 1}).row)
    path = GOLDEN / "cuda_wgmma.cu"
    if os.environ.get("AUTOSCHED_GOLDEN") == "update":
        path.write_text(source.text, encoding="utf-8")
    assert source.text == path.read_text(encoding="utf-8")
    assert {m.name: (m.box, m.swizzle) for m in source.plan.maps} == {
        "A_shared_map": ((64, 128), 128),
        "B_shared_map": ((64, 64), 128),  # a block of the cluster fetches one of two spans for both
        "C_tile_map": ((64, 64), 128),  # of one warpgroup
    }
    launch = source.plan.launches[0]
    assert (launch.cluster, launch.threads) == ((2, 1, 1), 384)


def test_roles_get_the_registers_that_they_take() -> None:
    """Without `, 1` in the launch bounds: 'setmaxnreg' ignored (C7508)."""
    plan = plan_of("matmul", "cuda/wgmma.m64n64k16.bf16.f32", m=4096, n=4096, k=4096, **BF16)
    source = printed(plan, request(plan.space, PLAIN | LADDER | {"reg_j": 2, "groups_j": 1}).row)
    assert "take_registers<" in source.text
    needs_nvrtc(source.arch)
    assert not compile_cuda(source.text, source.arch, source.headers).warnings


@pytest.mark.slow
def test_the_ladder_can_be_climbed_rung_by_rung() -> None:
    """Each step of the published ladder is a decision, and each rung compiles to wgmma without a spill or a warning."""
    plan = plan_of("matmul_nt", "cuda/wgmma.m64n128k16.bf16.f32", m=4096, n=4096, k=4096, **BF16)
    wish = dict(PLAIN, reg_j=1, groups_j=1)
    for name, step in RUNGS.items():
        wish |= step
        answer = request(plan.space, wish)
        assert answer.row is not None, (name, str(answer))
        source = printed(plan, answer.row)
        cubin = compiled(source)
        assert not cubin.warnings, name
        assert not any(k.spills for k in cubin.kernels.values()), name
        assert instructions_of(cubin.code, source.arch)["HGMMA"], name
        text = source.text
        assert ("fetch_box_for(" in text) == (name == "cluster")
        assert ("keep_registers<" in text) == (wish["groups_i"] == 2), "one consumer has all registers it may address"


KINDS = {
    "bf16 across": ("matmul", "cuda/wgmma.m64n128k16.bf16.f32", BF16, "HGMMA"),
    "f16 both across": ("matmul_tn", "cuda/wgmma.m64n64k16.f16.f32", {"a": "f16", "b": "f16", "acc": "f32"}, "HGMMA"),
    "f16 sums": ("matmul_tt", "cuda/wgmma.m64n24k16.f16.f16", {"a": "f16", "b": "f16", "acc": "f16"}, "HGMMA"),
    "tf32": ("matmul_nt", "cuda/wgmma.m64n64k8.tf32.f32", {"a": "tf32", "b": "tf32", "acc": "f32"}, "HGMMA"),
    "fp8": ("matmul_nt", "cuda/wgmma.m64n128k32.e4m3.e4m3.f32", {**BF16, "a": "e4m3", "b": "e4m3"}, "QGMMA"),
    "bytes": ("matmul_nt", "cuda/wgmma.m64n128k32.s8.s8.s32", {"a": "s8", "b": "s8", "acc": "s32"}, "IGMMA"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_compiles_to_its_instruction(kind: str) -> None:
    workload, intrinsic, dtypes, instruction = KINDS[kind]
    plan = plan_of(workload, intrinsic, m=500 if kind == "bf16 across" else 512, n=384, k=512, **dtypes)
    for row in covering(plan)[:2]:
        source = printed(plan, row)
        cubin = compiled(source)
        assert instructions_of(cubin.code, source.arch)[instruction], plan.space.schedule(row)
        counted = int(plan.space.values([row])["shared_bytes"][0])
        assert max(launch.shared_bytes for launch in source.plan.launches) == counted, plan.space.schedule(row)


def issuing(number: int, intrinsic: Intrinsic, majors: tuple[str, ...]) -> list[str]:
    """A kernel that issues the instruction on whatever is there."""
    function = device_function(intrinsic, lambda name: None, majors)
    head = function[function.index("void ") + 5 :].split(")", maxsplit=1)[0]
    name, given = head.split("(", maxsplit=1)[0], function.split(f"{function.split('void ')[1].split('(')[0]}(")[1]
    parameters = given.split(") {")[0].split(", ")
    lines, names = [], []
    for k, parameter in enumerate(parameters):
        own = f"p{k}"
        names.append(own)
        if "(&" in parameter:
            count = parameter[parameter.rindex("[") + 1 : -1]
            lines += [f"{parameter.split(' (&')[0].replace('const ', '')} {own}[{count}];"]
            lines += [f"for (auto& r : {own}) r = seed++;"]
        else:
            lines += [f"{parameter.split()[0]} {own} = seed++;"]
    lines += ["group_begin();", f"{name}({', '.join(names)});", "group_end();", "group_wait<0>();"]
    lines += [f"for (auto r : {names[0]}) out[seed++] = r;"]
    return [function, f'extern "C" __global__ void k{number}(int* out, int seed) {{', *lines, "}"]


@pytest.mark.slow
def test_every_form_of_wgmma_assembles() -> None:
    """A few widths of each family, operands along the reduction and across it, and the first operand in registers."""
    needs_nvrtc("sm_90a")
    text = ['#include "autosched/types.cuh"', '#include "autosched/wgmma.cuh"', "using namespace autosched;"]
    number = 0
    for outline in CATALOGUE.outlines(["cuda/wgmma.*"]):
        if not any(f".m64n{n}k" in outline.name for n in (8, 24, 256)):
            continue
        intrinsic = CATALOGUE[outline.name]
        across = "{a.across}" in intrinsic.emit["cuda"]
        for majors in [(ALONG, ALONG), (ALONG, HELD), *([(ACROSS, ACROSS)] if across else [])]:
            text += issuing(number, intrinsic, majors)  # `b`, then `a`: as the rules name them
            number += 1
    found = compile_cuda("\n".join(text) + "\n", "sm_90a", device_headers())
    assert len(found.kernels) == number > 50


def test_barriers_are_counted() -> None:
    """The numbers at which a block's threads meet are below what the space counts."""
    plan = plan_of("matmul_nt", "cuda/wgmma.m64n64k16.bf16.f32", m=1024, n=1024, k=1024, **BF16)
    wanted = {"groups_i": 3, "groups_j": 1, "reg_i": 1, "copy": "TMA", "stages": 2, "split": 1, "persistent": "no"}
    ways = [("together", "direct", 1), ("producer", "direct", 2), ("together", "TMA", 5), ("producer", "TMA", 5)]
    for roles, epilogue, count in ways:
        row = request(plan.space, wanted | {"roles": roles, "epilogue": epilogue}).row
        numbers = [0]
        for number, worker in re.findall(r" meet\((?:(\d+)|warpgroup \+ (\d+)),", printed(plan, row).text):
            numbers.append(int(number) if number else 3 - 1 + int(worker))
        assert row is not None
        assert int(plan.space.values(row)["barriers"][0]) == count
        assert max(numbers) == (count - 1 if epilogue == "TMA" else 0)
    many = plan.space.row_of({"groups_i": 4, "groups_j": 4, "epilogue": "TMA"})
    assert "18 barriers > 16" in plan.space.why_not(many)


def test_a_tile_of_results_is_filled_without_guards() -> None:
    """What lies outside of the tensor does not leave the tile; a load of a bias from memory stays guarded."""
    wanted = {"groups_i": 2, "groups_j": 1, "reg_i": 1, "copy": "TMA", "stages": 2, "split": 1, "persistent": "no"}
    for workload, guarded in (("matmul_nt", False), ("matmul_bias_relu", True)):
        plan = plan_of(workload, "cuda/wgmma.m64n64k16.bf16.f32", m=1000, n=1000, k=1024, **BF16)
        for epilogue in ("shared", "TMA"):
            row = request(plan.space, wanted | {"roles": "producer", "epilogue": epilogue}).row
            assert row is not None
            text = printed(plan, row).text
            last = text.index("// rows of" if epilogue == "shared" else "store_box(")
            filled = text[text.index("hold(acc)") : last]
            assert "bits_bf16(" in filled
            assert ("< 1000" in filled or "< 500" in filled) == guarded, (workload, epilogue)
