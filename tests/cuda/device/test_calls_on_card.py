"""Calls of a built kernel on a card, with PyTorch: streams, graphs, tensor maps, workspaces, constants, numpy."""

from dataclasses import replace

import numpy as np
import pytest
from support.cards.card import card
from support.programs.boxes import COPY, MAP

from autosched.codegen.cuda import CudaSource
from autosched.codegen.cuda.launch import (
    BufferArgument,
    Launch,
    LaunchPlan,
    MapArgument,
    ScalarArgument,
    TensorMapEncoding,
    Workspace,
)
from autosched.device.cuda.call.callable import CudaKernel
from autosched.device.cuda.comparing import BITS, DOUBLES, TEXT, Comparer, Wanted
from autosched.device.cuda.compile.nvrtc import compile_cuda
from autosched.device.cuda.driver import Card
from autosched.errors import UsageError
from autosched.ir import parse
from autosched.ir.dtypes import DTYPES

ARCH, WHY = card()
pytestmark = pytest.mark.skipif(ARCH is None, reason=WHY)
F32, SIDE, COUNT = DTYPES["f32"], 512, 512 * 512
PROGRAM = """
def product(A: f32[n, n], W: const[f32[n, n]], s: f32, B: f32[n, n], *, n=512):
    for i, j in grid(n, n):
        B[i, j] = s * (A[i, j] * W[i, j])
"""
KERNELS = """
extern "C" __global__ void pack(const float *w, float *p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    p[i] = 2 * w[i];
}
extern "C" __global__ void multiply(const float *a, const float *p, float *t) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    t[i] = a[i] * p[i];
}
extern "C" __global__ void scale(const float *t, float s, float *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    b[i] = s * (t[i] / 2);
}
"""
BOXES = """
""" + MAP + """
extern "C" __global__ void multiply(const __grid_constant__ Map map, const float *p, float *t) {
""" + COPY + """
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) {
        int place = (y + i / 32) * 512 + x + i % 32;
        t[place] = tile[i / 32][i % 32] * p[place];
    }
}
"""


def buffers(*names):
    return tuple(BufferArgument(n, F32, n == "B") for n in names)


def launched(kernel, *arguments):
    return Launch(kernel, (COUNT // 256, 1, 1), (256, 1, 1), 0, arguments)


@pytest.fixture(scope="module")
def kernel():
    hopper = ARCH == "sm_90"
    arch = "sm_90a" if hopper else ARCH
    text = KERNELS
    multiply = launched("multiply", *buffers("A", "P", "T"))
    maps = ()
    if hopper:
        begin, end = (
            KERNELS.index('extern "C" __global__ void multiply'),
            KERNELS.index('extern "C" __global__ void sc'),
        )
        text = KERNELS[:begin] + BOXES + KERNELS[end:]
        multiply = Launch("multiply", (256, 1, 1), (128, 1, 1), 0, (MapArgument("map"), *buffers("P", "T")))
        maps = (TensorMapEncoding("map", "A", F32, (SIDE, SIDE), (4 * SIDE,), (32, 32)),)
    plan = LaunchPlan(
        "product",
        arch,
        (multiply, launched("scale", *buffers("T"), ScalarArgument("s", F32), *buffers("B"))),
        (launched("pack", *buffers("W", "P")),),
        (Workspace("T", F32, (SIDE, SIDE)),),
        (Workspace("P", F32, (SIDE, SIDE)),),
        maps,
    )
    return CudaKernel(parse(PROGRAM), CudaSource("product", text, plan), compile_cuda(text, arch).code)


@pytest.fixture(scope="module")
def torch():
    found = pytest.importorskip("torch")
    if not found.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    return found


@pytest.fixture
def tensors(torch):
    return [torch.randn(SIDE, SIDE, device="cuda") for _ in range(3)]


def test_numpy_there_and_back(kernel):
    a, w = np.random.default_rng(0).normal(size=(2, SIDE, SIDE)).astype(np.float32)
    assert np.array_equal(kernel(a, w, 3.0), 3 * (a * w))
    assert np.array_equal(kernel.prepack(W=w)(a, 3.0), 3 * (a * w))


def test_the_current_stream_and_outputs_of_ones_own(kernel, torch, tensors):
    a, w, b = tensors
    assert kernel(a, w, 3.0, b) is b
    assert torch.equal(b, 3 * (a * w))
    assert torch.equal(kernel(a, w, 2.0), 2 * (a * w))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x = a + 1
        kernel(x, w, 2.0)  # the first call on a stream takes memory for it
        torch.cuda._sleep(100_000_000)  # what is behind it must wait for it
        out = kernel(x, w, 2.0)
        assert not side.query(), "the call has not waited"
    torch.cuda.current_stream().wait_stream(side)
    assert torch.equal(out, 2 * ((a + 1) * w))


def test_a_recorded_call_runs_beside_others(kernel, torch, tensors):
    a, w, b = tensors
    fresh = CudaKernel(kernel.program, kernel.printed, kernel.code)  # even the first call may be recorded
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fresh(a, w, 3.0, b)
        fresh(b, w, 1.0, a)
    begin = a.clone()
    other = fresh(begin, w, 5.0)
    graph.replay()
    assert torch.equal(b, 3 * (begin * w))
    assert torch.equal(a, b * w)
    assert torch.equal(other, 5 * (begin * w))


def test_constants_once(kernel, torch, tensors):
    a, w, b = tensors
    fast = kernel.prepack(W=w)
    for _ in range(3):
        fast(a, 3.0, b)
    assert torch.equal(b, 3 * (a * w))
    with pytest.raises(UsageError, match="B overlaps W"):
        fast(a, 3.0, w)


def test_a_thread_without_a_context(kernel, torch, tensors):
    import threading

    a, w, b = tensors
    torch.cuda.synchronize()
    raised = []

    def work():
        try:
            kernel(a, w, 3.0, b)
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert not raised
    assert torch.equal(b, 3 * (a * w))


def test_what_does_not_fit_is_refused(kernel, torch, tensors):
    a, w, b = tensors
    for given, said in (
        ((a.half(), w, 1.0, b), "A is float16"),
        ((a.t(), w, 1.0, b), "A is not contiguous"),
        ((a.cpu(), w, 1.0, b), "A is not in the memory of a CUDA device"),
        ((a, w, 1.0, a), "B overlaps A"),
    ):
        with pytest.raises(UsageError, match=said):
            kernel(*given)


def test_cupy_and_dlpack(kernel, torch, tensors):
    cupy = pytest.importorskip("cupy")
    x, y = (cupy.from_dlpack(t) for t in tensors[:2])
    out = kernel(x, y, 3.0)
    assert isinstance(out, cupy.ndarray)
    assert cupy.array_equal(out, 3 * (x * y))

    class Plain:
        def __init__(self, tensor):
            self.__dlpack__, self.__dlpack_device__ = tensor.__dlpack__, tensor.__dlpack_device__

    b = torch.zeros_like(tensors[0])
    kernel(*(Plain(t) for t in tensors[:2]), 3.0, Plain(b))
    torch.cuda.synchronize()
    assert torch.equal(b, 3 * (tensors[0] * tensors[1]))


def test_outputs_are_compared_there():
    device = Card()
    comparer = Comparer(device, compile_cuda(TEXT, "sm_90a" if ARCH == "sm_90" else ARCH).code)
    rng = np.random.default_rng(0)
    got = rng.normal(size=1_000_003).astype(np.float16)
    want, tolerance = got.astype(np.float64), np.full(got.size, 1e-2)
    want[123_456] += 9e-3
    at = comparer.put(got)
    wanted = Wanted(got.size, DOUBLES, comparer.put(want), comparer.put(tolerance))
    assert (comparer(at, "float16", wanted).wrong, comparer(at, "float16", wanted).nearest) == (0, 123_456)
    want[[5, 1_000_002]] = np.nan, np.inf
    assert comparer(at, "float16", replace(wanted, want=comparer.put(want))).wrong == 2
    other = got.view(np.uint16).copy()
    other[77] ^= 1
    assert comparer(at, "uint16", Wanted(got.size, BITS, comparer.put(other))).wrong == 1
    comparer.close()
