"""Printed kernels on the emulated card: no mistake is found, and the numbers are the oracle's.

Every run takes some rows of a covering sample (every value of every decision) of each case; `-m slow_cuda` takes the
whole sample of several plans of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from support.cards.emulated_cases import BF16, CASES, F16, S8, Case, emulation, wished
from support.cards.hand_kernels import needs_compiler

from autosched.codegen.cuda import print_cuda
from autosched.codegen.lower import lower

pytestmark = [needs_compiler, pytest.mark.compiler]
MOST, PLANS = 3, 3


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CASES)
def test_kernels_of_every_tier(name: str) -> None:
    made = emulation(CASES[name], MOST)
    assert made is not None
    made.check_all()


STORED: dict[str, int | str] = {"epilogue": "TMA", "stage_a": "shared", "stage_b": "shared", "stages": 2, "split": 1}
WARPS_STORE = {
    "mma": CASES["mma f16 k16"],
    "mma, ragged": Case("matmul_nt", "cuda/mma.m16n8k32.s8.s8.s32", {"m": 33, "n": 20, "k": 64, **S8}),
    "mma, gelu": replace(CASES["mma, gelu"], cores=1),
    "wmma": Case("matmul", "cuda/wmma.m16n16k16.f16.f32", {"m": 40, "n": 48, "k": 64, **F16}),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", WARPS_STORE)
def test_warps_store_boxes(name: str) -> None:
    """Each from a tile of its own, which it fills again once the engine has read it."""
    wishes: list[Mapping[str, int | str]] = [
        STORED | {"copy": "TMA", "roles": "producer", "persistent": "yes", "warps_i": 2, "warps_j": 1, "reg_i": 1},
        STORED | {"copy": "cp.async", "persistent": "no", "warps_i": 2},
    ]
    made = wished(WARPS_STORE[name], wishes)
    made.check_all()


SPANS = {"epilogue": "TMA by span", "stages": 2, "split": 1}
SPANS_STORE = {
    "mma": (Case("matmul", "cuda/mma.m16n8k16.f16.f16.f32", {"m": 50, "n": 140, "k": 32, **F16}), {"reg_j": 8}),
    "wmma": (Case("matmul", "cuda/wmma.m16n16k16.f16.f32", {"m": 40, "n": 72, "k": 32, **F16}), {"reg_j": 4}),
    "wgmma": (Case("matmul", "cuda/wgmma.m64n128k16.f16.f32", {"m": 70, "n": 200, "k": 40, "out": "f16", **F16}), {}),
    "wgmma, a bias": (Case("matmul_bias_relu", "cuda/wgmma.m64n64k16.f16.f32", {"m": 70, "n": 72, "k": 40, **F16}), {}),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SPANS_STORE)
def test_workers_store_their_rows_span_by_span(name: str) -> None:
    """A span is some registers of a warp or some elements of a fragment; the last may lie beyond the tensor."""
    case, wish = SPANS_STORE[name]
    ways: list[dict[str, int | str]] = [{"persistent": "no"}, {"persistent": "yes", "copy": "TMA", "roles": "producer"}]
    made = wished(case, [SPANS | wish | way for way in ways])
    made.check_all()


PADDED = {"padding": "16 B", "vector": "16 B"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["wmma f16", "wmma bf16 by columns", "mma f16 k16", "dp4a"])
def test_padded_slices(name: str) -> None:
    copies = ("sync",) if name == "dp4a" else ("sync", "cp.async")  # whose depth is one slice of two chunks
    made = wished(CASES[name], [PADDED | {"copy": copy} for copy in copies])
    made.check_all()


AHEAD: dict[str, int | str] = {"fragments": "ahead", "stage_a": "shared", "stage_b": "shared", "block_p": 2}
STARTED: dict[str, int | str] = {"copy": "cp.async", "vector": "16 B", "stages": 2}
LOADED_AHEAD: dict[str, tuple[Case, list[Mapping[str, int | str]]]] = {
    "mma": (
        Case("matmul", "cuda/mma.m16n8k16.f16.f16.f32", {"m": 48, "n": 32, "k": 128, "out": "f16", **F16}),
        [
            AHEAD | STARTED | {"stages": 3},
            AHEAD | STARTED | {"block_p": 4, "warps_i": 2},  # a slice's copies in three groups
            AHEAD | STARTED | {"split": 2},
            AHEAD | STARTED | {"persistent": "yes"},
            AHEAD | {"copy": "TMA", "stages": 2, "warps_i": 2},
            AHEAD | {"copy": "TMA", "stages": 2, "persistent": "yes"},
        ],
    ),
    "wmma": (
        Case("matmul", "cuda/wmma.m16n16k16.f16.f32", {"m": 40, "n": 48, "k": 64, **F16}),
        [AHEAD | STARTED | {"padding": "16 B", "warps_i": 2}],
    ),
    "dp4a": (
        Case("matmul_nt", "cuda/dp4a*", {"m": 12, "n": 12, "k": 128, **S8}),
        [AHEAD | STARTED | {"block_p": 4, "threads_i": 2, "threads_j": 2}],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LOADED_AHEAD)
def test_fragments_loaded_ahead(name: str) -> None:
    case, wishes = LOADED_AHEAD[name]
    made = wished(case, wishes)
    made.check_all()


def test_elements_of_a_word_are_loaded_as_matrices() -> None:
    tf32 = {"a": "tf32", "b": "tf32", "acc": "f32"}
    case = Case("matmul_nt", "cuda/mma.m16n8k8.tf32*", {"m": 32, "n": 24, "k": 32, **tf32})
    made = wished(case, [{"stage_a": "shared", "stage_b": "shared", "swizzle": "64 B", "block_p": 2, "vector": "16 B"}])
    text = print_cuda(lower(made.plan, made.plan.space.schedule(made.rows[0])), case.chosen()).text
    assert "ldmatrix_x4(words(a_reg), " in text
    made.check_all()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["mma f16 k16", "mma s8", "mma e4m3", "wmma bf16 by columns"])
def test_boxes_for_warps(name: str) -> None:
    """What the copy engine has swizzled, `ldmatrix` finds; fragments of WMMA are loaded from plain rows."""
    case = CASES[name]
    if name == "mma s8":
        case = replace(case, sizes=case.sizes | {"m": 48, "n": 32, "k": 128})
    swizzles = ("none",) if name.startswith("wmma") else ("none", "32 B", "64 B")
    made = wished(case, [{"copy": "TMA", "stages": 2, "swizzle": swizzle} for swizzle in swizzles])
    made.check_all()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["mma f16 k16", "wmma bf16 by columns", "requant"])
def test_a_producer_for_warps(name: str) -> None:
    engine = {"copy": "TMA", "roles": "producer", "stages": 2}
    ways = [{"persistent": "no"}, {"persistent": "yes", "epilogue": "shared"}, {"fragments": "ahead"}]
    case = replace(CASES[name], sizes=CASES[name].sizes | {"k": 128})
    made = wished(case, [engine | way for way in ways])
    made.check_all()


def test_clusters_along_both_axes() -> None:
    """Each operand is fetched by two blocks of four for each other: a by those of a row, b by those of a column."""
    case = replace(CASES["wgmma s8"], sizes=CASES["wgmma s8"].sizes | {"m": 256, "n": 64}, cores=16)
    engine = {"copy": "TMA", "cluster": "2 x 2", "swizzle": "64 B", "block_p": 2, "reg_i": 1, "groups_i": 1}
    ways = [{"roles": "producer", "stages": 2, "groups_j": 1, "reg_j": 1}, {"roles": "together", "stages": 2}]
    made = wished(case, [engine | way for way in ways])
    made.check_all()


def test_a_producer_stays_until_the_cluster_is_done() -> None:
    """No block leaves while others signal there, and none waits for the others' stores: persistent blocks of unequal
    work, and blocks that run once."""
    case = Case("matmul", "cuda/wgmma.m64n16k16.bf16.f32", {"m": 384, "n": 16, "k": 80, "out": "bf16", **BF16}, cores=4)
    engine: dict[str, int | str] = {"copy": "TMA", "roles": "producer", "cluster": "2 along i", "block_p": 1}
    ways: list[dict[str, int | str]] = [{"persistent": "yes", "stages": 3}, {"persistent": "no", "stages": 4}]
    made = wished(case, [engine | way for way in ways])
    for row in made.rows:
        kernel = lower(made.plan, made.plan.space.schedule(row))
        assert print_cuda(kernel, case.chosen()).text.count("meet_cluster();") == 1
    made.check_all()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("cluster", ["none", "2 along o", "2 along y.x"])
def test_pixels_along_a_walk(cluster: str) -> None:
    """A window of three lines that moves two at a time over images with a border."""
    engine = {"copy": "TMA", "roles": "producer", "stages": 2, "swizzle": "32 B", "cluster": cluster, "reg_o": 1}
    made = wished(replace(CASES["wgmma conv2d strided"], cores=2), [engine | {"groups_o": 1, "groups_y.x": 1}])
    made.check_all()


def test_half_of_a_slice_may_begin_behind_the_last_pixel() -> None:
    """Two blocks fetch 32 pixels each for both, and there are 14: the second's are of an image that is not there."""
    sizes = {"w": 12, "ci": 16, "co": 24, "kw": 3, "pad": 2, **BF16}
    case = Case("conv1d", "cuda/wgmma.m64n16k16.bf16.f32", sizes)
    made = wished(case, [{"copy": "TMA", "stages": 2, "cluster": "2 along o", "roles": "producer"}], 2)
    made.check_all()


def test_an_activation_is_turned_in_the_call() -> None:
    """A kernel of teams writes the copy through tiles in shared memory; the next one's copy engine fetches it."""
    case = Case("matmul_tn", "cuda/wgmma.m64n8k32.s8.s8.s32", {"m": 80, "n": 16, "k": 64, **S8}, turned=True)
    made = wished(case, [{"A_turned.tile": "32", "C.copy": "TMA", "C.roles": "producer", "C.stages": 2}])
    made.check_all()


@pytest.mark.slow
def test_many_stages() -> None:
    """More stages than a tile has slices, and twelve of fourteen: barriers change their phases late.
    Slices of two spans."""
    few = {"m": 130, "n": 40, "k": 16 * 5, **BF16}
    many = {"m": 64, "n": 16, "k": 16 * 14, **BF16}
    deep = {"m": 64, "n": 16, "k": 32 * 24, **S8}
    engine: dict[str, int | str] = {"copy": "TMA", "roles": "producer", "block_p": 1}
    warps = AHEAD | {"copy": "cp.async", "vector": "16 B", "stages": 12, "block_p": 1, "fragments": "in turn"}
    for only, sizes, wish in (
        ("cuda/wgmma.m64n16k16.bf16.f32", few, engine | {"persistent": "yes", "stages": 16}),
        ("cuda/wgmma.m64n16k16.bf16.f32", many, engine | {"stages": 12}),
        ("cuda/mma.m16n8k16.bf16.bf16.f32", many, engine | {"stages": 12, "warps_i": 2}),
        ("cuda/mma.m16n8k16.bf16.bf16.f32", many, warps),
        ("cuda/wgmma.m64n16k32.s8.s8.s32", deep, engine | {"block_p": 8, "stages": 2, "swizzle": "128 B"}),
    ):
        made = wished(Case("matmul_nt", only, sizes), [wish])
        made.check_all()


@pytest.mark.slow
def test_shares_added_up_in_a_cluster() -> None:
    """Blocks of a cluster share a reduction of eleven slices, the last of which ends early; workers finish in turn."""
    sizes = {"m": 150, "n": 32, "k": 16 * 10 + 8, "out": "bf16", **BF16}
    case = Case("matmul_nt", "cuda/wgmma.m64n16k16.bf16.f32", sizes, cores=4)
    cluster: dict[str, int | str] = {"copy": "TMA", "roles": "producer", "stages": 2, "block_p": 1, "gather": "cluster"}
    ways: list[dict[str, int | str]] = [
        {"split": 2, "epilogue": "TMA", "groups_i": 2, "reg_j": 1},
        {"split": 4, "epilogue": "direct", "groups_i": 1, "reg_j": 2},
        {"split": 4, "epilogue": "direct", "groups_i": 3, "reg_j": 1},
    ]
    made = wished(case, [cluster | {"swizzle": "32 B", "stage_a": "descriptor"} | way for way in ways])
    made.check_all()


@pytest.mark.slow_cuda
@pytest.mark.parametrize("number", range(PLANS))
@pytest.mark.parametrize("name", CASES)
def test_every_decision_of_several_plans(name: str, number: int) -> None:
    made = emulation(CASES[name], None, number)
    if made is None:
        pytest.skip("so many plans there are not")
    made.check_all()
