"""The emulator on hand-written kernels of threads and warps: the right one runs, every planted mistake is found."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from support.cards.hand_kernels import Arrays, Hand, Planted, assert_found, build_all, halves, needs_compiler

from autosched.codegen.cuda.emission import device_function
from autosched.codegen.cuda.emulation import Emulated, EmulationError
from autosched.tensorize.numerics.model import Model
from autosched.tensorize.spec.catalogue import Catalogue

pytestmark = [needs_compiler, pytest.mark.compiler]

MATMUL = Hand(
    """#include "autosched/types.cuh"
#include "autosched/copy.cuh"
using namespace autosched;

extern "C" __global__ void gemm(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C) {
    extern __shared__ __align__(16) unsigned char memory[];
    float* a = reinterpret_cast<float*>(memory);
    float* b = a + 64;
    const int x = threadIdx.x % 8, y = threadIdx.x / 8;
    float sum = 0;
    for (int k = 0; k < 16; k += 8) {
        a[y * 8 + x] = A[(blockIdx.y * 8 + y) * 16 + k + x];
        b[y * 8 + x] = B[(k + y) * 24 + blockIdx.x * 8 + x];
        __syncthreads();  // filled
        for (int p = 0; p < 8; ++p) sum += a[y * 8 + p] * b[p * 8 + x];
        __syncthreads();  // read
    }
    C[(blockIdx.y * 8 + y) * 24 + blockIdx.x * 8 + x] = sum;
}
""",
    """
def gemm(A: f32[16, 16], B: f32[16, 24], C: f32[16, 24]):
    for i, j in grid(16, 24):
        C[i, j] = 0
        for p in range(16):
            C[i, j] += A[i, p] * B[p, j]
""",
    (3, 2, 1),
    (64, 1, 1),
    512,
)
SUM, LAST = "sum += a[y", "= sum;"
MATMUL_MISTAKES = (
    Planted("no barrier before", "__syncthreads();  // filled", "", "uninitialised read|race", SUM),
    Planted("no barrier after", "__syncthreads();  // read", "", "race", SUM, "after a write"),
    Planted(
        "reads too far",
        "p < 8; ++p",
        "p < 9; ++p",
        "out of bounds",
        SUM,
        "past the end of shared memory (512 bytes)",
    ),
    Planted(
        "writes too far",
        "+ y) * 24 + blockIdx.x * 8 + x] = sum",
        "+ y) * 25 + blockIdx.x * 8 + x] = sum",
        "out of bounds",
        LAST,
        "of C",
    ),
    Planted(
        "reads before",
        "A[(blockIdx.y * 8 + y)",
        "A[(int(blockIdx.y) * 8 + y - 1)",
        "out of bounds",
        "a[y * 8 + x] =",
        "before the start of A",
    ),
    Planted("half is filled", "b[y * 8 + x] =", "if (y < 7) b[y * 8 + x] =", "uninitialised read", SUM),
    Planted("all write one", "* 8 + x] = sum", "* 8] = sum", "race", LAST, "a write of C"),
    Planted("blocks overlap", "C[(blockIdx.y * 8 + y)", "C[y", "race between blocks", LAST),
    Planted("reads its output", "= sum;", "+= sum;", "uninitialised read", LAST),
    Planted("an odd barrier", "__syncthreads();  // read", "if (y < 4) __syncthreads();", "race", SUM),
    Planted(
        "some leave",
        "for (int k = 0",
        "if (x > 6) return;\n    for (int k = 0",
        "deadlock",
        "__syncthreads();  // filled",
        "56 threads",
    ),
    Planted("writes an input", "= sum;", "= sum; const_cast<float*>(A)[y * 16 + x] = 0;", "write to an input", LAST),
    Planted(
        "not on its size",
        "float sum = 0;",
        "uint2 two; copy<8>(&two, A + 1); float sum = __uint_as_float(two.x ^ two.y);",
        "misaligned",
        "copy<8>",
    ),
)  # fmt: skip


@cache
def matmul() -> dict[str, Emulated]:
    return build_all(MATMUL, MATMUL_MISTAKES)


def operands() -> Arrays:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (16, 16)), rng.integers(-4, 5, (16, 24))
    return {"A": a.astype(np.float32), "B": b.astype(np.float32)}


def test_a_right_kernel_computes() -> None:
    arrays = operands()
    for seed in range(3):
        got = matmul()[""].run(arrays, seed=seed)["C"]
        assert (got == arrays["A"] @ arrays["B"]).all()


@pytest.mark.parametrize("mistake", MATMUL_MISTAKES, ids=lambda m: m.name)
def test_mistakes_of_threads_are_found(mistake: Planted) -> None:
    assert_found(mistake, matmul()[mistake.name], operands())


def test_an_error_says_where_and_who() -> None:
    with pytest.raises(EmulationError) as caught:
        matmul()["no barrier after"].run(operands())
    said = str(caught.value)
    assert said.startswith("no_barrier_after.cu:15:")
    assert "kernel gemm, block (" in said
    assert "the other: thread (" in said
    assert "at no_barrier_after.cu:1" in said  # where the slice is filled
    assert caught.value.exit_code == 4


COPIES = Hand(
    """#include "autosched/types.cuh"
#include "autosched/copy.cuh"
using namespace autosched;

extern "C" __global__ void scaled(const float* __restrict__ X, float* __restrict__ Y) {
    extern __shared__ __align__(16) float stages[];
    const int t = threadIdx.x, other = (t + 5) % 32;
    start_copy<4>(&stages[t], &X[t]);
    end_copies();
    for (int k = 0; k < 4; ++k) {
        if (k + 1 < 4) start_copy<4>(&stages[(k + 1) % 2 * 32 + t], &X[(k + 1) * 32 + t]);
        end_copies();
        wait_copies<1>();
        __syncthreads();  // landed
        Y[k * 32 + t] = 2 * stages[k % 2 * 32 + other];
        __syncthreads();  // used
    }
    wait_copies<0>();
}
""",
    """
def scaled(X: f32[4, 32], Y: f32[4, 32]):
    for i, j in grid(4, 32):
        Y[i, j] = X[i, (j + 5) % 32] * 2
""",
    (1, 1, 1),
    (32, 1, 1),
    256,
)
USE = "Y[k * 32 + t] ="
COPY_MISTAKES = (
    Planted("waits for too few", "wait_copies<1>();", "wait_copies<2>();", "race", USE),
    Planted("waits alone", "__syncthreads();  // landed", "", "race|uninitialised read", USE),
    Planted("overwrites", "__syncthreads();  // used", "", "race", "start_copy<4>(&stages[(k + 1)"),
    Planted("never waits", "wait_copies<0>();", "", "unfinished", ""),
    Planted(
        "copies too far",
        "X[(k + 1) * 32 + t]",
        "X[(k + 2) * 32 + t]",
        "out of bounds",
        "start_copy<4>(&stages[(k + 1)",
    ),
)


@cache
def copies() -> dict[str, Emulated]:
    return build_all(COPIES, COPY_MISTAKES)


def test_copies_that_run_on_land() -> None:
    x = np.arange(128, dtype=np.float32).reshape(4, 32)
    for seed in range(3):
        assert (copies()[""].run({"X": x}, seed=seed)["Y"] == 2 * np.roll(x, -5, axis=1)).all()


@pytest.mark.parametrize("mistake", COPY_MISTAKES, ids=lambda m: m.name)
def test_mistakes_with_copies_are_found(mistake: Planted) -> None:
    assert_found(mistake, copies()[mistake.name], {"X": np.zeros((4, 32), np.float32)})


# -- what a warp does as one

MMA = Catalogue.builtin()["cuda/mma.m16n8k8.f16.f16.f32"]
LDMATRIX = Catalogue.builtin()["cuda/ldmatrix.x2"]
NOTHING: set[str] = set()
WARP = Hand(
    f"""#include "autosched/types.cuh"
#include "autosched/address.cuh"
#include "autosched/copy.cuh"
using namespace autosched;

{device_function(MMA, NOTHING.add)}

{device_function(LDMATRIX, NOTHING.add)}

extern "C" __global__ void product(const f16* __restrict__ A, const f16* __restrict__ B, float* __restrict__ C) {{
    extern __shared__ __align__(16) f16 rows[];
    const int lane = threadIdx.x;
    if (lane < 16) copy<16>(&rows[lane * 8], &A[lane * 8]);
    __syncwarp();  // filled
    uint32_t a[2], b[1];
    float c[4] = {{}};
    ldmatrix_x2(a, &rows[lane % 16 * 8]);
    copy<4>(b, &B[lane / 4 * 8 + lane % 4 * 2]);
    mma_m16n8k8_f16_f16_f32(c, a, b);
    float most = c[0];
    for (int by = 16; by > 0; by /= 2) most = max(most, __shfl_xor_sync(0xffffffff, most, by));
    for (int v = 0; v < 4; ++v) C[(lane / 4 + v / 2 * 8) * 8 + lane % 4 * 2 + v % 2] = c[v] + 0 * most;
}}
""",
    """
def product(A: f16[16, 8], B: f16[8, 8], C: f32[16, 8]):
    for i, j in grid(16, 8):
        C[i, j] = 0
        for p in range(8):
            C[i, j] += f32(A[i, p]) * f32(B[j, p])
""",
    (1, 1, 1),
    (32, 1, 1),
    256,
    intrinsics=(MMA, LDMATRIX),
)
WARP_MISTAKES = (
    Planted(
        "lanes part",
        "mma_m16n8k8_f16_f16_f32(c, a, b);\n    float",
        "if (lane < 31) mma_m16n8k8_f16_f16_f32(c, a, b);\n    float",
        "mismatched collective",
        "_",
    ),
    Planted(
        "no barrier of the warp",
        "__syncwarp();  // filled",
        "",
        "race|uninitialised read",
        "ldmatrix_x2(a, &rows",
        "a read of shared memory",
    ),
    Planted("rows beyond", "&rows[lane % 16 * 8]", "&rows[lane % 16 * 8 + 8]", "out of bounds", "ldmatrix_x2(a, &rows"),
    Planted(
        "rows not on 16 bytes",
        "&rows[lane % 16 * 8]",
        "&rows[lane % 16 * 8 + 4]",
        "misaligned",
        "ldmatrix_x2(a, &rows",
    ),
    Planted(
        "a mask without lanes",
        "__shfl_xor_sync(0xffffffff",
        "__shfl_xor_sync(0xffff",
        "mismatched collective",
        "__shfl_xor_sync",
    ),
)  # fmt: skip


@cache
def warp() -> dict[str, Emulated]:
    return build_all(WARP, WARP_MISTAKES)


def test_a_warp_multiplies_as_the_description_says() -> None:
    numbers = np.random.default_rng(0)  # whose sums are rounded
    a, b = (numbers.standard_normal(shape).astype(np.float16) for shape in ((16, 8), (8, 8)))
    got = warp()[""].run({"A": a, "B": b})["C"]
    zero = np.zeros((1, 16, 8), np.float32)
    assert (got == Model(MMA)({"a": a[None], "b": np.ascontiguousarray(b.T)[None], "c": zero})[0]).all()


@pytest.mark.parametrize("mistake", WARP_MISTAKES, ids=lambda m: m.name)
def test_mistakes_of_a_warp_are_found(mistake: Planted) -> None:
    assert_found(mistake, warp()[mistake.name], {"A": halves(16, 8), "B": halves(8, 8, seed=1)})
