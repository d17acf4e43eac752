"""The CUDA printer: golden files, launch plans, which loads and barriers it finds, names that clash, every text of an
instruction through the compiler."""

from __future__ import annotations

import dataclasses
import os
import re
from typing import Any

import pytest
from support.cards.gpu_plans import CATALOGUE, H200, covering, plans
from support.cards.nvrtc import compiled, needs_nvrtc
from support.paths import TESTS

from autosched.codegen.cuda import CudaSource, print_cuda
from autosched.codegen.cuda.emission import device_function
from autosched.codegen.cuda.headers import device_headers
from autosched.codegen.cuda.launch import BufferArgument, Launch, check_launch
from autosched.codegen.lower import lower
from autosched.device.cuda.compile.nvrtc import compile_cuda
from autosched.errors import UsageError
from autosched.ir import parse
from autosched.machine.catalogue import load_target
from autosched.tensorize.matcher.match import match
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.space.request import request
from autosched.tiling.variants.conditional import candidates_of

GOLDEN = TESTS / "golden"
F16 = {"a": "f16", "b": "f16", "acc": "f32"}
S8 = {"a": "s8", "b": "s8", "acc": "s32"}
PIPELINE = {"stage_a": "shared", "stage_b": "shared", "copy": "cp.async", "stages": 3, "vector": "16 B"}


def printed(name: str, only: str, wanted: dict[str, Any], **sizes: Any) -> CudaSource:
    """The source of a row with the wanted decisions."""
    _, (plan, *_) = plans(name, only, H200, **sizes)
    row = request(plan.space, wanted).row
    assert row is not None
    return print_cuda(lower(plan, plan.space.schedule(row)), H200)


CASES = {
    "dp4a": lambda: printed(
        "matmul_nt",
        "cuda/dp4a.s8.s8",
        {"stage_a": "shared", "stage_b": "shared", "vector": "16 B", "threads_i": 16, "threads_j": 8, "reg_i": 2,
         "reg_j": 4, "block_p": 8},
        m=250, n=256, k=256, **S8,
    ),
    "wmma": lambda: printed(
        "matmul_bias_relu", "cuda/wmma.m16n16k16.f16.f32", {"warps_i": 2, "reg_i": 2},
        m=60, n=64, k=64, out="f16", **F16,
    ),
    "mma": lambda: printed(
        "matmul", "cuda/mma.m16n8k16.f16.f16.f32",
        {**PIPELINE, "swizzle": "64 B", "block_p": 2, "warps_i": 2, "reg_i": 2, "reg_j": 4, "split": 1},
        m=256, n=256, k=256, **F16,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    """The golden files change with `AUTOSCHED_GOLDEN=update pytest`; look at the difference before committing it."""
    source = CASES[name]()
    path = GOLDEN / f"cuda_{name}.cu"
    if os.environ.get("AUTOSCHED_GOLDEN") == "update":
        path.write_text(source.text, encoding="utf-8")
    assert source.text == path.read_text(encoding="utf-8")
    found = compiled(source)
    assert not found.warnings
    assert not any(k.spills for k in found.kernels.values())


def test_a_share_is_loaded_whole_before_it_is_added() -> None:
    """Numbers that are neighbours in memory come at once, not one by one in the middle of the sums."""
    wanted = {**PIPELINE, "swizzle": "64 B", "warps_i": 2, "reg_i": 2, "reg_j": 4, "split": 4}
    text = printed("matmul", "cuda/mma.m16n8k16.f16.f16.f32", wanted, m=256, n=256, k=1024, **F16).text
    sums = text[text.rindex('extern "C"') :]
    assert re.search(r"copy<16>\(&?\w+_share\[", sums)
    assert not re.search(r"acc\w*(\[\w+\])+ \+ \w+_shares", sums)


def test_a_pipeline_meets_once_a_slice_and_loads_by_matrices() -> None:
    text = CASES["mma"]().text
    assert text.count("__syncthreads();") == 1  # after the wait, in the loop over slices
    assert re.search(r"ldmatrix_x4\(a_reg, ", text)
    assert re.search(r"ldmatrix_x\d_trans\(", text)
    assert "start_copy<16>" in text
    assert "copy<8>(&C_at" in text  # pairs of an accumulator's columns


def test_fragments_ahead_meet_once_a_slice_and_copies_stand_between_calls() -> None:
    wish = {**PIPELINE, "swizzle": "128 B", "block_p": 4, "warps_i": 2, "warps_j": 2, "reg_i": 2, "reg_j": 4}
    wish |= {"fragments": "ahead", "split": 1}
    source = printed("matmul", "cuda/mma.m16n8k16.f16.f16.f32", wish, m=256, n=256, k=256, out="f16", **F16)
    loop = source.text[source.text.index("int slice = 0") : source.text.index("C_at = ")]
    assert loop.count("__syncthreads();") == 1
    assert "a_reg[(pu + 1) % 2]" in loop
    assert loop.index("ldmatrix") < loop.index("start_copy") < loop.index("mma_m16n8k16")
    assert "slot = slot == 2 ? 0 : slot + 1;" in loop
    assert "% 3" not in loop  # stages are counted on
    assert {k.spill_store_bytes for k in compiled(source).kernels.values()} == {0}


@pytest.mark.parametrize("fragments", ["in turn", "ahead"])
@pytest.mark.parametrize("only", ["cuda/mma.m16n8k16.f16.f16.f32", "cuda/wmma.m16n16k16.f16.f32"])
def test_fragments_have_been_read_when_their_stage_is_told_empty(only: str, fragments: str) -> None:
    """`ptxas` moves the arrival in front of the products: loads were overtaken on a card, and the next boxes read."""
    wish = {"stage_a": "shared", "stage_b": "shared", "copy": "TMA", "roles": "producer", "fragments": fragments,
            "stages": 3, "warps_i": 2, "warps_j": 2, "block_p": 2, "split": 1}  # fmt: skip
    source = printed("matmul", only, wish, m=256, n=256, k=256, **F16)
    consumer = source.text[source.text.rindex("for (int slice = 0") :]
    arrival = consumer.index("barrier_arrive(&empty[")
    loads = [found.start() for found in re.finditer(r"ldmatrix|_load", consumer[:arrival])]
    assert loads
    assert max(loads) < consumer.index("fence_async();") < arrival


def test_the_plan_says_how_to_launch() -> None:
    source = CASES["mma"]()
    (launch,) = source.plan.launches
    assert launch.grid == (8, 4, 1)
    assert launch.block == (64, 1, 1)
    assert launch.shared_bytes == 3 * (64 * 32 + 32 * 32) * 2
    assert [(a.name, a.written) for a in launch.arguments if isinstance(a, BufferArgument)] == [
        ("A", False), ("B", False), ("C", True),
    ]  # fmt: skip
    assert source.plan.kernels == ("matmul",)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("only", "exact"), [("cuda/mma.m16n8k16.f16.f16.f32", True), ("cuda/wmma.m16n16k16.f16.f32", False)]
)
def test_shared_memory_is_what_the_space_says(only: str, exact: bool) -> None:
    """Fragments that are opaque may need less than the space allows for."""
    _, (plan, *_) = plans("matmul", only, H200, m=64, n=96, k=128, **F16)
    for row in covering(plan)[:12]:
        schedule = plan.space.schedule(row)
        source = print_cuda(lower(plan, schedule), H200)
        taken = max(launch.shared_bytes for launch in source.plan.launches)
        said = int(plan.space.values([row])["shared_bytes"][0])
        assert taken == said if exact else taken <= said, schedule.named


def test_a_split_sum_is_two_launches_over_a_workspace() -> None:
    source = printed("matmul", "cuda/mma.m16n8k16.f16.f16.f32", {"split": 2}, m=64, n=32, k=64, **F16)
    first, second = source.plan.launches
    (shares,) = source.plan.workspaces
    assert shares.bytes == 2 * 64 * 32 * 4
    assert ("C_shares", True) in [(a.name, a.written) for a in first.arguments if isinstance(a, BufferArgument)]
    assert ("C_shares", False) in [(a.name, a.written) for a in second.arguments if isinstance(a, BufferArgument)]
    compiled(source)


def test_grids_that_are_too_tall_are_numbered_in_one() -> None:
    wanted = {"stage_a": "global", "stage_b": "global", "threads_i": 1, "threads_j": 1, "reg_i": 1, "reg_j": 1}
    wanted |= {"split": 1, "raster": "last fastest"}
    source = printed("matmul_nt", "cuda/dp4a.s8.s8", wanted, m=70_000, n=2, k=16, **S8)
    (launch,) = source.plan.launches
    assert launch.grid == (140_000, 1, 1)
    compiled(source)


def test_offsets_of_large_arrays_have_64_bits() -> None:
    sizes = {"m": 70_000, "n": 40_000, "k": 16, **S8}
    source = printed("matmul_nt", "cuda/dp4a.s8.s8", {"split": 1, "threads_i": 8, "reg_i": 8}, **sizes)
    assert "(int64_t)" in source.text
    compiled(source)
    with pytest.raises(UsageError, match="2,800,000,000 blocks are more than a grid has"):
        printed("matmul_nt", "cuda/dp4a.s8.s8", {"split": 1, "threads_i": 1, "reg_i": 1}, **sizes)


def test_axes_and_tensors_may_have_any_name() -> None:
    """`v`, `u`, `lane`, `thread`, `row` and `copy` are also what printed code itself says."""
    program = parse(
        """
def rows(copy: f16[32, 64], lane: const[f16[64, 16]], element: f32[32, 16]):
    for v, u in grid(32, 16):
        element[v, u] = 0
        for thread in range(64):
            element[v, u] += f32(copy[v, thread]) * f32(lane[thread, u])
"""
    )
    found = match(program, [CATALOGUE["cuda/mma.m16n8k16.f16.f16.f32"].on(H200.features)])
    (plan, *_) = make_plans(program, H200, candidates_of(found))
    row = request(plan.space, {"stage_a": "shared", "stage_b": "shared", "split": 1}).row
    assert row is not None
    compiled(print_cuda(lower(plan, plan.space.schedule(row)), H200))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"grid": (1, 70_000, 1)}, "70,000 blocks along y > 65,535"),
        ({"block": (1056, 1, 1)}, "1,056 threads along x > 1,024"),
        ({"shared_bytes": 240_000}, "240,000 bytes of shared memory > 232,448"),
        ({"cluster": (16, 1, 1)}, "clusters of 16 blocks > 8"),
        ({"grid": (3, 1, 1), "cluster": (2, 1, 1)}, r"a grid of \(3, 1, 1\) in clusters of \(2, 1, 1\)"),
    ],
)
def test_what_cannot_be_launched_is_refused(changes: dict[str, Any], said: str) -> None:
    launch = Launch("k", (1, 1, 1), (32, 1, 1), 0, ())
    check_launch(launch, H200.limits)
    with pytest.raises(UsageError, match=said):
        check_launch(dataclasses.replace(launch, **changes), H200.limits)


def test_an_older_target_is_printed_for_its_architecture() -> None:
    ada = load_target("nvidia-rtx4090")
    _, (plan, *_) = plans("matmul_nt", "cuda/mma.m16n8k32.s8.s8.s32", ada, m=32, n=32, k=64, **S8)
    row = request(plan.space, {"split": 1}).row
    assert row is not None
    source = print_cuda(lower(plan, plan.space.schedule(row)), ada)
    assert source.arch == "sm_89"
    compiled(source)


ARCHES = (75, 80, 89, 90, 120)
"""Each compiles what it is the first to have (75: and what older ones had), 90 everything up to it."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("number", ARCHES)
def test_every_text_of_a_warp_or_thread_assembles(number: int) -> None:
    """One kernel an instruction, which issues it on whatever is in registers."""
    arch = f"sm_{number}a" if number >= 90 else f"sm_{number}"
    needs_nvrtc(arch)
    functions: list[str] = []
    for outline in CATALOGUE.outlines(["cuda/*"]):
        if "cuda" not in outline.printers or "wgmma" in outline.name:
            continue
        needed = max(int(re.sub(r"\D", "", f)) for f in outline.requires)
        if number != min(a for a in ARCHES if a >= needed) and not needed <= number == 90:
            continue
        intrinsic = CATALOGUE[outline.name]
        if intrinsic.kind == "function":
            continue
        majors = ("row", "col") if any(o.opaque for o in intrinsic.operands.values()) else ()
        functions.append(device_function(intrinsic.registered or intrinsic, _no_helpers, majors))
    assert functions
    text = ['#include "autosched/address.cuh"', '#include "autosched/types.cuh"', "using namespace autosched;"]
    for n, function in enumerate(functions):
        text += [function, *_issuing(f"k{n}", function)]
    found = compile_cuda("\n".join(text) + "\n", arch, device_headers())
    assert len(found.kernels) == len(functions)


def _issuing(name: str, function: str) -> list[str]:
    """A kernel that calls a device function on registers of any contents, and keeps the result."""
    head = re.search(r"void (\w+)\(\s*(.*)\) \{", function)
    assert head is not None
    lines, names = [], []
    for k, parameter in enumerate(head[2].split(", ")):
        own = f"p{k}"
        names.append(own)
        if "void*" in parameter:
            lines.append(f"void* {own} = out;")
            continue
        lines.append(re.sub(r"(?:const )?([\w ]+) \(&\w+\)", rf"\1 {own}", parameter) + ";")
        lines.append(f"for (auto& r : {own}) r = seed++;")
    lines += [f"{head[1]}({', '.join(names)});", f"for (auto r : {names[0]}) out[seed++] = r;"]
    return [f'extern "C" __global__ void {name}(int* out, int seed) {{', *lines, "}"]


def _no_helpers(name: str) -> None:
    raise AssertionError(f"a text needs no helper, this one {name}")
