"""Operands that an instruction asks for along another axis are copied with that one last; which plans a GPU gets."""

from typing import Any

import numpy as np
import pytest
from support.cards.gpu_plans import CATALOGUE, H200, plans

from autosched.ir import parse, resolve, run
from autosched.ir.program import Program
from autosched.machine.catalogue import load_target
from autosched.machine.target import Target
from autosched.search.tuning.tune import usable
from autosched.tensorize.matcher.match import match
from autosched.tiling.planner.rank import issue_cycles, rankings
from autosched.tiling.variants.adapted import Variant
from autosched.tiling.variants.transposed_operands import transposed_programs

BYTES = {"t": "s8", "acc": "s32"}


def variants(name: str, only: str, sizes: dict[str, Any], target: Target = H200) -> tuple[Program, list[Variant]]:
    program = resolve(name, sizes)
    found = match(program, usable(CATALOGUE, target, "simulator", [only]))
    return program, list(transposed_programs(program, found, "real"))


def test_weights_of_a_convolution_lie_along_the_channels() -> None:
    sizes = {"h": 4, "w": 5, "ci": 32, "co": 16, **BYTES}
    program, (variant,) = variants("conv2d", "cuda/wgmma.m64n16k32.s8.s8.s32", sizes)
    assert variant.adapters == ("turn W",)
    assert variant.program.tensors["W_turned"].extents == (3, 3, 16, 32)
    assert variant.program.prepared == ("W_turned",)
    (mapping,) = variant.stages.values()
    assert any(o.part == "adapter" and "W_turned holds W" in o.statement for o in mapping.certificate.obligations)
    rng = np.random.default_rng(0)
    inputs = {n: rng.integers(-128, 128, program.tensors[n].extents, np.int8) for n in ("X", "W")}
    assert np.array_equal(run(variant.program, inputs)["Y"], run(program, inputs)["Y"])


@pytest.mark.parametrize(
    ("name", "only", "t", "target", "transposed"),
    [
        ("matmul_nt", "cuda/wgmma.m64n8k32.s8.s8.s32", "s8", "nvidia-h200", ()),
        ("matmul", "cuda/wgmma.m64n8k32.s8.s8.s32", "s8", "nvidia-h200", ("turn B",)),
        ("matmul_tt", "cuda/wgmma.m64n8k32.s8.s8.s32", "s8", "nvidia-h200", ("turn A",)),
        ("matmul", "cuda/mma.m16n8k32.s8.s8.s32", "s8", "nvidia-a100", ("turn B",)),
        ("matmul", "cuda/mma.m16n8k16.f16.f16.f32", "f16", "nvidia-a100", ()),
        ("matmul", "cuda/wgmma.m64n8k16.f16.f32", "f16", "nvidia-h200", ()),
    ],
)
def test_what_is_transposed(name: str, only: str, t: str, target: str, transposed: tuple[str, ...]) -> None:
    sizes = {"m": 64, "n": 16, "k": 64, "t": t, "acc": "s32" if t == "s8" else "f32"}
    found = [v.adapters for v in variants(name, only, sizes, load_target(target))[1]]
    assert found == ([transposed] if transposed else [])


def test_one_tensor_is_transposed_where_it_lies_across() -> None:
    """Of a square the rows lie as they should, the columns do not."""
    program = parse(
        "def square(A: s8[32, 32], C: s32[32, 32]):\n    for i, j in grid(32, 32):\n        C[i, j] = 0\n"
        "        for p in range(32):\n            C[i, j] += s32(A[i, p]) * s32(A[p, j])\n"
    )
    found = match(program, usable(CATALOGUE, H200, "simulator", ["cuda/wgmma.m64n8k32.s8.s8.s32"]))
    (variant,) = transposed_programs(program, found, "real")
    (stage,) = [s for s in variant.program.stages if s.assign.tensor == "C"]
    assert sorted(r.tensor for r in stage.reads) == ["A", "A_turned"]
    squares = np.arange(1024, dtype=np.int8).reshape(32, 32)
    assert np.array_equal(run(variant.program, {"A": squares})["C"], run(program, {"A": squares})["C"])


def test_few_rows_have_a_plan_with_a_tile_for_each_core() -> None:
    """64 rows by 4096 columns are 128 tiles of n = 32, and 16 of n = 256, which blocks have to share."""
    _, found = plans("matmul_nt", "cuda/wgmma.*bf16*", m=64, n=4096, k=4096, t="bf16")
    nests = {p.tensor_parts[0].nest.intrinsic.name.split("k")[0]: p.tensor_parts[0].nest for p in found}
    one, all_of_them, _ = rankings(H200)
    small, large = nests["cuda/wgmma.m64n32"], nests["cuda/wgmma.m64n256"]
    assert issue_cycles(small, one) > issue_cycles(large, one)
    assert issue_cycles(small, all_of_them) < issue_cycles(large, all_of_them)
    assert issue_cycles(large, all_of_them) == issue_cycles(large, one) * all_of_them.cores / 16


def test_blocks_that_leave_few_cores_idle_have_a_plan() -> None:
    """3000 by 3000 are 256 blocks of 192x192, two for nearly each of 132 cores; n = 200 alone fits without padding."""
    _, found = plans("matmul", "cuda/wgmma.m64n*k16.f16.f32", m=3000, n=3000, k=3000, t="f16")
    nests = {p.tensor_parts[0].nest.intrinsic.name.split("k")[0]: p.tensor_parts[0].nest for p in found}
    one, _, blocks = rankings(H200)
    whole, even = nests["cuda/wgmma.m64n192"], nests["cuda/wgmma.m64n200"]
    assert issue_cycles(even, one) < issue_cycles(whole, one)
    assert issue_cycles(whole, blocks) < issue_cycles(even, blocks)
