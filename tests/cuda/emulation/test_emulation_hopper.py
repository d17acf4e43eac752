"""The emulator on hand-written kernels of Hopper's tier: the copy engine, barriers in shared memory, clusters."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from support.cards.hand_kernels import Hand, Planted, assert_found, build_all, halves, needs_compiler

from autosched.codegen.cuda.emission import device_function
from autosched.codegen.cuda.emulation import Emulated, EmulationError, build
from autosched.codegen.cuda.fragments.lane_registers import issue_name
from autosched.codegen.cuda.launch import TensorMapEncoding
from autosched.ir.dtypes import DTYPES
from autosched.tensorize.numerics.model import Model
from autosched.tensorize.spec.catalogue import Catalogue

pytestmark = [needs_compiler, pytest.mark.compiler]
F16 = DTYPES["f16"]

PIPELINE = Hand(
    """#include "autosched/types.cuh"
#include "autosched/barrier.cuh"
#include "autosched/bulk.cuh"
using namespace autosched;

extern "C" __global__ void doubled(const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap y) {
    extern __shared__ __align__(1024) unsigned char memory[];
    f16* stages = reinterpret_cast<f16*>(memory);
    f16* results = stages + 2 * 8 * 64;
    Barrier* full = reinterpret_cast<Barrier*>(memory + 3 * 1024);
    Barrier* empty = full + 2;
    const int t = threadIdx.x;
    if (t == 0) {
        for (int s = 0; s < 2; ++s) {
            barrier_init(&full[s], 1);
            barrier_init(&empty[s], 32);
        }
        fence_barriers();
    }
    __syncthreads();  // barriers are there
    if (t >= 32) {
        if (t == 32) {
            for (int k = 0; k < 5; ++k) {
                barrier_wait(&empty[k % 2], (k / 2 + 1) % 2);
                barrier_expect(&full[k % 2], 1024);
                fetch_box(stages + k % 2 * 512, x, &full[k % 2], 0, k * 8);
            }
        }
        return;
    }
    for (int k = 0; k < 5; ++k) {
        barrier_wait(&full[k % 2], k / 2 % 2);
        if (k > 0 && t == 0) wait_stores_read<0>();  // results are free
        __syncwarp();
        for (int e = t; e < 512; e += 32) results[e] = stages[k % 2 * 512 + e];
        fence_async();
        barrier_arrive(&empty[k % 2]);
        __syncwarp();  // results are written
        if (t == 0) {
            store_box(y, results, 0, k * 8);
            commit_stores();
        }
    }
    if (t == 0) wait_stores_read<0>();  // all is stored
}
""",
    """
def doubled(X: f16[37, 56], Y: f16[37, 56]):
    for i, j in grid(37, 56):
        Y[i, j] = X[i, j]
""",
    (1, 1, 1),
    (64, 1, 1),
    3 * 1024 + 32,
    maps=(
        TensorMapEncoding("x", "X", F16, (56, 37), (112,), (64, 8), 128),
        TensorMapEncoding("y", "Y", F16, (56, 37), (112,), (64, 8), 128),
    ),
)
"""Boxes of 8 rows of 64 elements, beyond the tensor both ways."""
READS, ASKS, STORES = "results[e] = stages", "fetch_box(stages", "store_box(y"
PIPELINE_MISTAKES = (
    Planted("does not wait for full", "barrier_wait(&full[k % 2], k / 2 % 2);", "", "race|uninitialised read", READS),
    Planted("does not wait for empty", "barrier_wait(&empty[k % 2], (k / 2 + 1) % 2);", "", "race|barrier", "k % 2"),
    Planted("signals too early", "        barrier_arrive(&empty[k % 2]);\n", "", "deadlock", "barrier_wait"),
    Planted("expects too much", "k % 2], 1024)", "k % 2], 1040)", "deadlock", "barrier_wait"),
    Planted("expects too little", "k % 2], 1024)", "k % 2], 512)", "deadlock|race|uninitialised read", ""),
    Planted(
        "waits for another phase",
        "full[k % 2], k / 2 % 2)",
        "full[k % 2], 1)",
        "race|deadlock|uninitialised read",
        "",
    ),
    Planted(
        "no barriers yet",
        "__syncthreads();  // barriers are there",
        "",
        "uninitialised read|race",
        "barrier_wait",
    ),
    Planted("no fence behind the barriers", "        fence_barriers();\n", "", "missing fence", ASKS),
    Planted("too few arrivals", "barrier_init(&empty[s], 32)", "barrier_init(&empty[s], 31)", "race|deadlock", ""),
    Planted("no fence before the store", "fence_async();", "", "missing proxy fence", ""),
    Planted(
        "loads may be on their way when a stage is told empty",
        "fence_async();\n        barrier_arrive(&empty[k % 2]);",
        "barrier_arrive(&empty[k % 2]);\n        fence_async();",
        "missing proxy fence",
        ASKS,
        "after a read",
    ),
    Planted(
        "no barrier before the store",
        "__syncwarp();  // results are written",
        "",
        "race|missing proxy fence|uninitialised read",
        STORES,
    ),
    Planted("stores are overtaken", "if (k > 0 && t == 0) wait_stores_read<0>();", "", "race", READS),
    Planted("stores are not waited for", "if (t == 0) wait_stores_read<0>();", "", "unfinished", ""),
    Planted("a box within 16 bytes", "&full[k % 2], 0, k * 8)", "&full[k % 2], 4, k * 8)", "tensor map", ASKS),
    Planted("a box not on 128 bytes", "stages + k % 2 * 512, x", "stages + k % 2 * 512 + 8, x", "misaligned", ASKS),
)  # fmt: skip


@cache
def pipeline() -> dict[str, Emulated]:
    return build_all(PIPELINE, PIPELINE_MISTAKES)


@pytest.mark.slow
def test_boxes_come_and_go() -> None:
    x = halves(37, 56)
    for seed in range(4):
        assert (pipeline()[""].run({"X": x}, seed=seed)["Y"] == x).all()


@pytest.mark.parametrize("mistake", PIPELINE_MISTAKES, ids=lambda m: m.name)
def test_mistakes_of_pipelines_are_found(mistake: Planted) -> None:
    assert_found(mistake, pipeline()[mistake.name], {"X": halves(37, 56)}, range(8))


# -- a cluster: one block's box for all

CLUSTER = Hand(
    """#include "autosched/types.cuh"
#include "autosched/barrier.cuh"
#include "autosched/bulk.cuh"
#include "autosched/cluster.cuh"
using namespace autosched;

extern "C" __global__ void spread(const __grid_constant__ TensorMap x, f16* __restrict__ Y) {
    extern __shared__ __align__(1024) unsigned char memory[];
    const f16* box = reinterpret_cast<const f16*>(memory);
    Barrier* full = reinterpret_cast<Barrier*>(memory + 512);
    const int t = threadIdx.x;
    if (t == 0) {
        barrier_init(full, 1);
        fence_barriers();
        barrier_expect(full, 512);
    }
    meet_cluster();  // barriers are there
    if (t == 0) fetch_box_for(3, memory + cluster_rank() * 256, x, full, 0, int(cluster_rank()) * 8);
    barrier_wait_cluster(full, 0);
    for (int e = t; e < 256; e += 32) Y[blockIdx.x * 256 + e] = box[e];
    meet_cluster();  // nobody leaves before
}
""",
    """
def spread(X: f16[16, 16], Y: f16[4, 16, 16]):
    for b, i, j in grid(4, 16, 16):
        Y[b, i, j] = X[i, j]
""",
    (4, 1, 1),
    (32, 1, 1),
    520,
    cluster=(2, 1, 1),
    maps=(TensorMapEncoding("x", "X", F16, (16, 16), (32,), (16, 8), 0),),
)
CLUSTER_MISTAKES = (
    Planted("one block alone", "fetch_box_for(3,", "fetch_box_for(1,", "deadlock", "barrier_wait_cluster"),
    Planted("barriers of nobody", "meet_cluster();  // barriers are there", "", "uninitialised read|race|deadlock", ""),
)


@cache
def cluster() -> dict[str, Emulated]:
    return build_all(CLUSTER, CLUSTER_MISTAKES)


def test_a_box_for_all_blocks_of_a_cluster() -> None:
    x = halves(16, 16)
    for seed in range(4):
        got = cluster()[""].run({"X": x}, seed=seed)["Y"]
        assert (got == np.broadcast_to(x, (4, 16, 16))).all()


@pytest.mark.parametrize("mistake", CLUSTER_MISTAKES, ids=lambda m: m.name)
def test_mistakes_of_clusters_are_found(mistake: Planted) -> None:
    assert_found(mistake, cluster()[mistake.name], {"X": halves(16, 16)}, range(8))


# -- products of a warpgroup

WGMMA = Catalogue.builtin()["cuda/wgmma.m64n8k16.f16.f32"]
NOTHING: set[str] = set()
PRODUCT = Hand(
    f"""#include "autosched/types.cuh"
#include "autosched/barrier.cuh"
#include "autosched/wgmma.cuh"
using namespace autosched;

{device_function(WGMMA, NOTHING.add, ("k", "k"))}

extern "C" __global__ void product(const f16* __restrict__ A, const f16* __restrict__ B, float* __restrict__ C) {{
    extern __shared__ __align__(1024) f16 a[];
    f16* b = a + 1024;
    const int t = threadIdx.x;
    for (int e = t; e < 1024; e += 128) a[e % 16 / 8 * 512 + e / 16 * 8 + e % 8] = A[e];
    b[t % 16 / 8 * 64 + t / 16 * 8 + t % 8] = B[t];
    fence_async();
    __syncthreads();  // filled
    float c[4] = {{}};
    group_begin();
    {issue_name(WGMMA, ("k", "k"))}(c, descriptor<0>(a, 1024, 128), descriptor<0>(b, 128, 256), 1);
    group_end();
    group_wait<0>();
    hold(c);
    __syncthreads();  // multiplied
    a[t] = 0;
    for (int v = 0; v < 4; ++v) C[(t / 32 * 16 + t % 32 / 4 + v / 2 * 8) * 8 + t % 4 * 2 + v % 2] = c[v];
}}
""",
    """
def product(A: f16[64, 16], B: f16[8, 16], C: f32[64, 8]):
    for i, j in grid(64, 8):
        C[i, j] = 0
        for p in range(16):
            C[i, j] += f32(A[i, p]) * f32(B[j, p])
""",
    (1, 1, 1),
    (128, 1, 1),
    2304,
    intrinsics=(WGMMA,),
)
MULTIPLIES = "(c, descriptor"
PRODUCT_MISTAKES = (
    Planted("no fence of threads", "fence_async();", "", "missing proxy fence", MULTIPLIES),
    Planted("no barrier", "__syncthreads();  // filled", "", "race|uninitialised read|missing proxy fence", MULTIPLIES),
    Planted("no fence of registers", "group_begin();", "", "missing fence", MULTIPLIES),
    Planted("does not wait", "group_wait<0>();", "", "register in use|race|unfinished", ""),
    Planted("waits for too few", "group_wait<0>();", "group_wait<1>();", "register in use|race|unfinished", ""),
    Planted("a descriptor beyond", "(a, 1024, 128)", "(a, 2048, 128)", "out of bounds|uninitialised read", MULTIPLIES),
    Planted("part of the warps", "float c[4]", "if (t >= 96) return;\n    float c[4]", "deadlock", ""),
    Planted("zeros too early", "__syncthreads();  // multiplied\n", "", "", ""),
)


@cache
def product() -> dict[str, Emulated]:
    return build_all(PRODUCT, PRODUCT_MISTAKES)


def product_of(emulated: Emulated, seed: int) -> bool:
    a, b = halves(64, 16), halves(8, 16, seed=1)
    zero = np.zeros((1, 64, 8), np.float32)
    want = Model(WGMMA)({"a": a[None], "b": np.ascontiguousarray(b.T)[None], "c": zero})[0]
    return bool((emulated.run({"A": a, "B": b}, seed=seed)["C"] == want).all())


def test_a_warpgroup_multiplies_as_the_description_says() -> None:
    for seed in range(3):
        assert product_of(product()[""], seed)


def test_a_wait_for_products_is_a_barrier_of_their_operands() -> None:
    """All four warps of the product are past it: what it read may be overwritten."""
    for seed in range(3):
        assert product_of(product()["zeros too early"], seed)


@pytest.mark.parametrize("mistake", PRODUCT_MISTAKES[:-1], ids=lambda m: m.name)
def test_mistakes_with_products_are_found(mistake: Planted) -> None:
    assert_found(mistake, product()[mistake.name], {"A": halves(64, 16), "B": halves(8, 16)})


def test_wrong_descriptors_compute_wrong_numbers() -> None:
    text = PRODUCT.text.replace("(a, 1024, 128)", "(a, 128, 1024)")
    with pytest.raises(EmulationError):
        product_of(build([PRODUCT.unit(text, "turned.cu")])[0], 0)
