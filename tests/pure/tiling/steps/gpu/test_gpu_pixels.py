"""Convolutions by the copy engine: which operands are pixels along a window's walk, and that walks bring what single
copies would."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from pure.tiling.steps.gpu.test_gpu_boxes import without_boxes
from support.cards.gpu_plans import CATALOGUE, H200, plans
from support.compiled.kernel_check import check_kernel

from autosched.codegen.cuda import print_cuda
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import AsyncCopies, Im2colWalk, Kernel, TileCopy, statements
from autosched.device.correctness.oracle import compute
from autosched.device.simulator.verify.verify import check
from autosched.ir import parse
from autosched.tensorize.matcher.match import match
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.request import request
from autosched.tiling.steps.gpu.operands.tma_boxes import no_bulk_copy, pixels_of
from autosched.tiling.variants.conditional import candidates_of

F16 = {"a": "f16", "b": "f16", "acc": "f32"}
FEW = dataclasses.replace(H200, cores=2)
INTRINSIC = "cuda/wgmma.m64n16k16.f16.f32"
PRODUCER: dict[str, int | str] = {"copy": "TMA", "roles": "producer", "stages": 2, "swizzle": "32 B"}


def plan_of(workload: str, mapping: str, **sizes: Any) -> Plan:
    _, found = plans(workload, INTRINSIC, FEW, **{**F16, "ci": 16, "co": 32, **sizes})
    return next(p for p in found if mapping in p.name)


def image(nest: Nest) -> str:
    """The operand that is no weight."""
    return next(o for o, read in nest.mapping.operands.items() if read.tensor == "X")


CONVOLUTIONS: dict[str, tuple[str, str, dict[str, Any], Im2colWalk]] = {
    "3x3": ("conv2d", "(i←y.x, j←o, k←c)", {"h": 9, "w": 8}, Im2colWalk((-1, -1), (-1, -1), (1, 1))),
    "3x1, stride 2": (
        "conv2d",
        "(i←z.y.x, j←o, k←c)",
        {"n": 2, "h": 13, "w": 11, "kw": 1, "stride": 2},
        Im2colWalk((-1, -1), (1, -1), (2, 2)),
    ),
    "1x1, stride 2": (
        "conv2d",
        "(i←z.y.x, j←o, k←c)",
        {"n": 2, "h": 16, "w": 15, "kh": 1, "kw": 1, "stride": 2, "pad": 0},
        Im2colWalk((0, 0), (0, -1), (2, 2)),
    ),
    "pixels along n": (
        "conv2d",
        "(i←o, j←y.x, k←c)",
        {"ci": 64, "co": 64, "h": 5, "w": 4},
        Im2colWalk((-1, -1), (-1, -1), (1, 1)),
    ),
    "groups": (
        "conv2d",
        "(i←y.x, j←o, k←c)",
        {"ci": 32, "co": 32, "h": 5, "w": 6, "groups": 2},
        Im2colWalk((-1, -1), (-1, -1), (1, 1)),
    ),
    "groups of 64 along n": (
        "conv2d",
        "(i←o, j←z.y.x, k←c)",
        {"n": 2, "ci": 128, "co": 128, "h": 5, "w": 4, "groups": 2},
        Im2colWalk((-1, -1), (-1, -1), (1, 1)),
    ),
    "a line": ("conv1d", "(i←z.x, j←o, k←c)", {"n": 3, "w": 30}, Im2colWalk((-1,), (-1,), (1,))),
    "a volume": ("conv3d", "(i←e.y.x, j←o, k←c)", {"d": 3, "h": 4, "w": 6}, Im2colWalk((-1,) * 3, (-1,) * 3, (1,) * 3)),
}


def boxes(kernel: Kernel) -> list[TileCopy]:
    asked = [s for s in statements(kernel.main.body) if isinstance(s, AsyncCopies)]
    return [s for one in asked for s in statements(one.boxes) if isinstance(s, TileCopy)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_walks_bring_what_single_copies_would(name: str) -> None:
    workload, mapping, sizes, walk = CONVOLUTIONS[name]
    plan = plan_of(workload, mapping, **sizes)
    wide: dict[str, int | str] = {"swizzle": "128 B", "block_c": 4} if sizes.get("ci", 0) >= 64 else {}
    answer = request(plan.space, PRODUCER | wide)
    assert answer.row is not None, str(answer)
    kernel = lower(plan, plan.space.schedule(answer.row))
    check_kernel(kernel)
    walks = {s.map.walk for s in boxes(kernel)} - {None}
    assert {(w.lower, w.upper, w.steps) for w in walks if w} == {(walk.lower, walk.upper, walk.steps)}
    oracle = compute(plan.program, 0)
    assert check(kernel, oracle).ok
    assert check(without_boxes(kernel), oracle).ok


@pytest.mark.sampled(1)
@pytest.mark.parametrize("cluster", ["2 along o", "2 along z.y.x"])
def test_blocks_of_a_cluster_share_pixels_and_weights(cluster: str) -> None:
    plan = plan_of("conv2d", "(i←z.y.x, j←o, k←c)", n=2, h=10, w=9)
    answer = request(plan.space, PRODUCER | {"cluster": cluster, "reg_o": 1, "groups_o": 1})
    assert answer.row is not None, str(answer)
    kernel = lower(plan, plan.space.schedule(answer.row))
    shared = {s.map.buffer for s in boxes(kernel) if s.blocks > 1}
    assert shared == {"X" if cluster.endswith("o") else "W"}
    assert check(kernel, compute(plan.program, 0)).ok


def test_the_host_is_told_the_walk() -> None:
    plan = plan_of("conv2d", "(i←z.y.x, j←o, k←c)", n=2, h=13, w=11, kw=1, stride=2)
    row = request(plan.space, PRODUCER).row
    assert row is not None
    source = print_cuda(lower(plan, plan.space.schedule(row)), FEW)
    seen = next(m for m in source.plan.maps if m.walk)
    assert (seen.extents, seen.strides, seen.box) == ((16, 11, 13, 2), (32, 352, 4576), (16, 64))
    assert "fetch_pixels(&X_shared" in source.text


@pytest.mark.slow
def test_stages_reach_beyond_a_tile_of_one_slice() -> None:
    plan = plan_of("conv2d", "(i←z.y.x, j←o, k←c)", n=3, h=9, w=8, kh=1, kw=1, pad=0)
    wish = PRODUCER | {"stages": 3, "persistent": "yes", "reg_o": 1, "groups_o": 1}
    answer = request(plan.space, wish)
    assert answer.row is not None, str(answer)
    assert check(lower(plan, plan.space.schedule(answer.row)), compute(plan.program, 0)).ok
    assert request(plan.space, wish | {"persistent": "no"}).row is None


TEXT = """
def conv(X: f16[2, 9, 8, 16], W: const[f16[3, 3, 16, 16]], Y: f32[2, 7, 8, 16]):
    for z, y, x, o in grid(2, 7, 8, 16):
        Y[z, y, x, o] = 0
        for r, s, c in grid(3, 3, 16):
            if {guard}:
                Y[z, y, x, o] += f32(X[{index}]) * f32(W[r, s, c, o])
"""
INSIDE = "0 <= x + 2 * s - 2 < 8"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("guard", "index", "walks"),
    [
        (INSIDE, "z, y + r, x + 2 * s - 2, c", True),  # lines without a border, columns two apart
        (INSIDE + " and y + r < 9", "z, y + r, x + 2 * s - 2, c", True),  # which always holds
        (INSIDE + " and x + s < 7", "z, y + r, x + 2 * s - 2, c", False),  # leaves out elements that are there
        (INSIDE, "z, y + r, 7 - x - 2 * s + 2, c", False),  # backwards
        (INSIDE, "1 - z, y + r, x + 2 * s - 2, c", False),
    ],
)
def test_what_a_walk_is(guard: str, index: str, walks: bool) -> None:
    if "7 - x" in index:
        guard = guard.replace("x + 2 * s - 2", "7 - x - 2 * s + 2")
    program = parse(TEXT.format(guard=guard, index=index))
    found = match(program, [CATALOGUE[INTRINSIC].on(H200.features)], "reassociated")
    made = make_plans(program, H200, candidates_of(found))
    nests = [p.tensor_parts[0].nest for p in made]
    nest = next(n for n in nests if n.mapping.axes["i"] == ("z", "y", "x") and n.mapping.axes["k"] == ("c",))
    assert (pixels_of(nest, image(nest)) is not None) == walks
    assert (not no_bulk_copy(nest, image(nest))) == walks


def test_channels_lie_innermost() -> None:
    _, found = plans("conv2d_nchw", INTRINSIC, H200, n=2, h=8, w=8, ci=16, co=16, **F16)
    for plan in found:
        nest = plan.tensor_parts[0].nest
        assert pixels_of(nest, image(nest)) is None


@pytest.mark.slow
def test_plans_of_whole_images_come_first() -> None:
    """Nobody brings pixels by hand, and no instruction of few columns reads shared memory for most of its time."""
    _, found = plans("conv2d", "cuda/wgmma.m64*k16.f16.f32", H200, n=4, h=14, w=14, ci=64, co=64, **F16)
    assert "z.y.x" in found[0].name
    assert found[0].tensor_parts[0].nest.intrinsic.accumulator.shape[1] >= 64
