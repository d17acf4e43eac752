"""The cuda device on a card: kernels written here that are right, wrong, out of bounds, endless or too large, each a
recorded trial after which the next one is measured."""

from dataclasses import replace

import numpy as np
import pytest
from support.cards.card import card
from support.programs.boxes import COPY, MAP

from autosched.device.correctness.oracle import compute
from autosched.device.cuda.compile.nvrtc import compile_cuda
from autosched.device.cuda.device import CudaDevice
from autosched.device.cuda.launch_job import CudaJob, Encoding, KernelMemory, LaunchCall, Mapped, Pointer, Value
from autosched.device.protocol import Build
from autosched.ir import parse
from autosched.machine.catalogue import load_target
from autosched.search.tuning.baseline import literal_plan
from autosched.tiling.candidate import Candidate

ARCH, WHY = card()
pytestmark = pytest.mark.skipif(ARCH is None, reason=WHY)
PROGRAM = """
def scale(A: f32[m, n], B: f32[m, n], s: f32, *, m=512, n=512):
    for i, j in grid(m, n):
        B[i, j] = s * A[i, j]
"""
KERNELS = """
extern "C" __global__ void scaled(const float *a, float *b, float s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 512 * 512) b[i] = s * a[i];
}
extern "C" __global__ void all_but_one(const float *a, float *b, float s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 512 * 512 && i != 777) b[i] = s * a[i];
}
extern "C" __global__ void past_the_end(const float *a, float *b, float s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 512 * 512 + 4) b[i] = s * a[i];
}
extern "C" __global__ void far_outside(const float *a, float *b, float s) { b[1ull << 45] = s; }
extern "C" __global__ void endless(const float *a, volatile float *b, float s) { while (b[0] != 12345.f) {} }
extern "C" __global__ void doubled(const float *a, float *p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    p[i] = 2 * a[i];
}
extern "C" __global__ void halved(const float *p, float *b, float s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    b[i] = s * (p[i] / 2);
}
extern "C" __global__ void staged(const float *a, float *b, float s) {
    extern __shared__ float tile[];
    for (int i = threadIdx.x; i < 32768; i += blockDim.x) tile[i] = a[blockIdx.x * 32768 + i];
    __syncthreads();
    for (int i = threadIdx.x; i < 32768; i += blockDim.x) b[blockIdx.x * 32768 + i] = s * tile[i];
}
"""
CLUSTER = """
extern "C" __global__ void clustered(const float *a, float *b, float s) {
    unsigned blocks;
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    b[i] = blocks == 4 ? s * a[i] : 0;
}
""" + MAP + """
extern "C" __global__ void boxes(const __grid_constant__ Map map, float *b, float s) {
""" + COPY + """
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) b[(y + i / 32) * 512 + x + i % 32] = s * tile[i / 32][i % 32];
}
"""
COUNT = 512 * 512


@pytest.fixture(scope="module")
def program():
    return parse(PROGRAM)


@pytest.fixture(scope="module")
def target():
    base = load_target("nvidia-h200" if ARCH == "sm_90" else "nvidia-a100")
    suffix = "a" if ARCH == "sm_90" else ""
    return replace(base, compiler=dict(base.compiler) | {"arch": f"{ARCH}{suffix}"}, limits={"warp_threads": 32})


@pytest.fixture(scope="module")
def device(program, target):
    with CudaDevice(program, target, deadline_s=3.0, cache="cold") as found:
        yield found


@pytest.fixture(scope="module")
def code(target):
    return compile_cuda(KERNELS, target.compiler["arch"]).code


@pytest.fixture
def measured(program, target, device, code):
    candidate = Candidate(literal_plan(program, target), 0)
    scalar = Value(np.float32(compute(program, 0).scalars["s"]).tobytes())

    def measure(kernel, repeats="search", code=code, **how):
        first = how.pop("first", Pointer("A"))
        call = LaunchCall(kernel, **({"grid": (COUNT // 256 + 1, 1, 1), "block": (256, 1, 1)} | how))
        job = CudaJob(code, (replace(call, arguments=(first, Pointer("B"), scalar)),))
        return device.measure(Build(candidate, job), repeats)

    measure.candidate, measure.scalar = candidate, scalar
    return measure


def test_a_right_kernel_has_a_time(measured, device):
    found = measured("scaled", "final")
    assert found.status == "ok", found.message
    assert 1e-7 < found.time_s < 1e-3
    assert found.max_abs_error == 0
    assert "every element" in found.extra["compared"]
    assert device.describe()["arch"] == ARCH


@pytest.mark.parametrize(
    ("kernel", "status", "said"),
    [
        ("all_but_one", "wrong", "B[1, 265] is"),
        ("past_the_end", "wrong", "bytes outside B"),
        ("far_outside", "crash", "illegal address"),
        ("endless", "timeout", "while its results were checked"),
        ("missing", "refused", "NOT_FOUND"),
    ],
)
def test_what_goes_wrong_is_recorded_and_the_next_one_is_measured(measured, kernel, status, said):
    found = measured(kernel)
    assert found.status == status, found.message
    assert said in found.message
    assert measured("scaled").status == "ok"


def test_what_the_card_cannot_hold_is_refused(measured):
    assert measured("scaled", block=(2048, 1, 1)).status == "refused"
    assert measured("scaled", shared_bytes=1 << 20).status == "refused"
    assert measured("scaled", code=b"not machine code").status == "refused"
    assert measured("scaled").status == "ok"


def test_shared_memory_beyond_48_kib(measured):
    if ARCH not in ("sm_80", "sm_90", "sm_100"):
        pytest.skip("such blocks do not fit there")
    found = measured("staged", grid=(8, 1, 1), block=(1024, 1, 1), shared_bytes=131072)
    assert found.status == "ok", found.message


def test_packed_data(measured, device):
    calls = (
        LaunchCall("halved", (COUNT // 256, 1, 1), (256, 1, 1), 0, (Pointer("P"), Pointer("B"), measured.scalar)),
        LaunchCall("doubled", (COUNT // 256, 1, 1), (256, 1, 1), 0, (Pointer("A"), Pointer("P"))),
    )
    code = compile_cuda(KERNELS, device.target.compiler["arch"]).code
    job = CudaJob(code, calls[:1], calls[1:], {"P": KernelMemory(4 * COUNT, True)})
    found = device.measure(Build(measured.candidate, job))
    assert found.status == "ok", found.message


def test_clusters_and_tensor_maps(measured, device):
    if ARCH != "sm_90":
        pytest.skip("Hopper has them")
    code = compile_cuda(CLUSTER, "sm_90a").code
    found = measured("clustered", code=code, grid=(COUNT // 256, 1, 1), cluster=(4, 1, 1))
    assert found.status == "ok", found.message
    call = LaunchCall("boxes", (256, 1, 1), (128, 1, 1), 0, (Mapped("map"), Pointer("B"), measured.scalar))
    maps = {"map": Encoding("A", "FLOAT32", (512, 512), (2048,), (32, 32))}
    found = device.measure(Build(measured.candidate, CudaJob(code, (call,), maps=maps)))
    assert found.status == "ok", found.message


def test_candidates_in_turn(measured, device, code):
    def job(kernel):
        arguments = (Pointer("A"), Pointer("B"), measured.scalar)
        return CudaJob(code, (LaunchCall(kernel, (COUNT // 256, 1, 1), (256, 1, 1), 0, arguments),))

    kernels = ("scaled", "all_but_one", "far_outside", "scaled")
    found = device.measure_interleaved([Build(measured.candidate, job(k)) for k in kernels], 3)
    assert [m.status for m in found] == ["ok", "wrong", "crash", "ok"]
