"""Calls of a built kernel on a card of host memory: what is kept between calls, streams, graphs, several devices,
constants laid out once, arrays of several libraries."""

import ctypes
import pickle
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from support.cards.host_card import HostCard, array

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
from autosched.device.cuda.call.dlpack import description
from autosched.device.cuda.driver import CudaError
from autosched.errors import UnknownNameError, UsageError
from autosched.ir import parse
from autosched.ir.dtypes import DTYPES

PROGRAM = parse(
    """
def product(A: f32[n], W: const[f32[n]], s: f32, B: f32[n], *, n=32):
    for i in range(n):
        B[i] = s * (A[i] * W[i])
"""
)
N, F32 = 32, DTYPES["f32"]


def buffers(*names):
    return tuple(BufferArgument(n, F32, n == "B") for n in names)


PLAN = LaunchPlan(
    "product",
    "sm_90a",
    (
        Launch("multiply", (1, 1, 1), (32, 1, 1), 0, (MapArgument("map"), *buffers("P", "T"))),
        Launch("scale", (1, 1, 1), (32, 1, 1), 0, (*buffers("T"), ScalarArgument("s", F32), *buffers("B"))),
    ),
    (Launch("pack", (1, 1, 1), (32, 1, 1), 0, buffers("W", "P")),),
    (Workspace("T", F32, (N,)),),
    (Workspace("P", F32, (N,)),),
    (TensorMapEncoding("map", "A", F32, (N,), (), (N,)),),
)


def floats(address):
    return array(address, N, np.float32)


def pack(w, p):
    floats(p)[:] = floats(w)[::-1]


def multiply(place, p, t):
    floats(t)[:] = floats(ctypes.c_uint64.from_address(place).value) * floats(p)[::-1]


def scale(t, s, b):
    floats(b)[:] = np.frombuffer(s, np.float32)[0] * floats(t)


class Tensor:
    """As much of a tensor of PyTorch as a call looks at."""

    def __init__(self, card, values, **changed):
        values = np.ascontiguousarray(values, np.float32)
        self.address = card.allocate(values.nbytes)
        floats(self.address)[:] = values
        self.shape, self.dtype, self.is_cuda, self.at = values.shape, "float32", True, card.ordinal
        self.ordered = True
        for name, value in changed.items():
            setattr(self, name, value)

    def get_device(self):
        return self.at if self.is_cuda else -1

    def is_contiguous(self):
        return self.ordered

    def data_ptr(self):
        return self.address

    def element_size(self):
        return 4

    def stride(self):
        return (2,)


class Interfaced:
    """An array with the CUDA array interface alone."""

    def __init__(self, address, **changed):
        self.__cuda_array_interface__ = {"shape": (N,), "typestr": "<f4", "data": (address, False), **changed}


@pytest.fixture
def card():
    return HostCard({"pack": pack, "multiply": multiply, "scale": scale})


@pytest.fixture
def torch(monkeypatch, card):
    """A PyTorch whose current stream is 40 on device 0, and 50 on device 1; `card` lies behind its empty tensors."""
    found = SimpleNamespace(Tensor=Tensor, float32="float32", uint8="uint8", streams={0: 40, 1: 50})
    found._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda ordinal: found.streams[ordinal])
    found.nn = SimpleNamespace(Parameter=Tensor)
    found.empty = lambda shape, dtype, device: Tensor(card, np.zeros(shape))
    monkeypatch.setitem(sys.modules, "torch", found)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    return found


@pytest.fixture
def kernel(card):
    return CudaKernel(PROGRAM, CudaSource("product", "text", PLAN), b"good", cards=lambda ordinal: card)


@pytest.fixture
def values():
    return np.arange(N, dtype=np.float32), np.linspace(1, 2, N, dtype=np.float32)


def test_a_call_runs_on_the_current_stream_and_waits_for_nothing(kernel, card, torch, values):
    a, w, b = (Tensor(card, v) for v in (*values, np.zeros(N)))
    assert kernel(a, w, 2.0, b) is b
    assert np.array_equal(floats(b.address), 2 * (values[0] * values[1]))
    assert set(card.streams) == {40}
    assert card.waits == 0
    torch.streams[0] = 41
    kernel(a, w, 2.0, b)
    assert card.streams[-1] == 41


def test_what_a_call_needs_is_kept(kernel, card, torch, values):
    a, w, b = (Tensor(card, v) for v in (*values, np.zeros(N)))
    kernel(a, w, 2.0, b)
    loads, held = card.loads, len(card.memory)
    for scalar in (2.0, 3.0, 2.0, -0.0, 0.0):
        kernel(a, w, scalar, b)
        assert np.array_equal(floats(b.address), np.float32(scalar) * (values[0] * values[1]))
    assert np.array_equal(np.signbit(floats(b.address)), np.zeros(N, bool)), "zeros of both signs are told apart"
    assert (card.loads, len(card.memory)) == (loads, held)
    assert card.encoded == [a.address], "one map, encoded once"
    other = Tensor(card, values[0] + 1)
    kernel(other, w, 2.0, b)
    assert np.array_equal(floats(b.address), 2 * ((values[0] + 1) * values[1]))
    assert card.encoded == [a.address], "for another address it is copied"


def test_new_tensors_are_looked_at_once(card, torch, values):
    """Behind a first call tensors at other addresses go the quick way too, if they lie as they must."""
    text = "def product(A: f32[n], W: const[f32[n]], B: f32[n], s: f32, *, n=32):\n    for i in range(n):\n"
    program = parse(text + "        B[i] = s * (A[i] * W[i])\n")

    class Counting(CudaKernel):
        slow = 0

        def _slowly(self, arrays, named):
            self.slow += 1
            return super()._slowly(arrays, named)

    kernel = Counting(program, CudaSource("product", "text", PLAN), b"good", cards=lambda ordinal: card)
    a, w, b = (Tensor(card, v) for v in (*values, np.zeros(N)))
    kernel(a, w, b, 2.0)
    assert kernel.slow == 1
    for number in range(70):  # more than have their maps' memory at once
        c, d = Tensor(card, values[0] + number), Tensor(card, np.zeros(N))
        assert kernel(c, w, d, 2.0) is d
        assert np.array_equal(floats(d.address), 2 * ((values[0] + number) * values[1]))
    with pytest.raises(UsageError, match="B overlaps A"):
        kernel(a, w, a, 2.0)
    assert kernel.slow == 1
    with pytest.raises(UsageError, match="no multiple of 16 bytes"):
        kernel(Tensor(card, values[0], address=a.address + 4), w, b, 2.0)
    with pytest.raises(UsageError, match="not in the memory of a CUDA device"):
        kernel(Tensor(card, values[0], is_cuda=False), w, b, 2.0)


def test_outputs_that_are_left_out_are_new_arrays_of_the_library(kernel, card, torch, values):
    a, w = (Tensor(card, v) for v in values)
    found = kernel(a, w, 2.0)
    assert isinstance(found, Tensor)
    assert np.array_equal(floats(found.address), 2 * (values[0] * values[1]))


def test_memory_of_the_kernels_own_belongs_to_a_stream_and_to_a_graph(kernel, card, torch, values):
    a, w, b = (Tensor(card, v) for v in (*values, np.zeros(N)))

    def added():
        before = set(card.memory)
        kernel(a, w, 2.0, b)
        return len(set(card.memory) - before)

    assert added() == 2, "what is packed, and the workspace"
    assert added() == 0
    torch.streams[0] = 41
    assert added() == 2
    card.graph = 5  # a graph is being recorded
    assert added() == 2
    assert added() == 0
    card.graph, torch.streams[0] = 0, 40
    assert added() == 0


def test_it_is_all_freed_with_the_kernel(card, torch, values):
    a, w, b = (Tensor(card, v) for v in (*values, np.zeros(N)))
    before = len(card.memory)
    kernel = CudaKernel(PROGRAM, CudaSource("product", "text", PLAN), b"good", cards=lambda ordinal: card)
    kernel(a, w, 2.0, b)
    fast = kernel.prepack(W=values[1])
    fast(a, 2.0, b)
    assert len(card.memory) > before
    del fast, kernel
    assert len(card.memory) == before


def test_each_device_has_its_own_code_and_memory(torch, values):
    cards = {}
    for ordinal in (0, 1):
        cards[ordinal] = HostCard({"pack": pack, "multiply": multiply, "scale": scale})
        cards[ordinal].ordinal = ordinal
    kernel = CudaKernel(PROGRAM, CudaSource("product", "text", PLAN), b"good", cards=cards.__getitem__)
    for ordinal, card in cards.items():
        a, w, b = (Tensor(card, v) for v in (*values, np.zeros(N)))
        kernel(a, w, 2.0, b)
        assert np.array_equal(floats(b.address), 2 * (values[0] * values[1]))
        assert set(card.streams) == {(40, 50)[ordinal]}
    with pytest.raises(UsageError, match=r"W is on CUDA device 1, and the kernel runs on device 0"):
        kernel(Tensor(cards[0], values[0]), w, 2.0, b)
    fast = kernel.prepack(W=w)
    fast(a, 2.0, b)
    with pytest.raises(UsageError, match="constants of product are on CUDA device 1"):
        fast(Tensor(cards[0], values[0]), 2.0, Tensor(cards[0], values[0]))


def test_constants_are_laid_out_once(kernel, card, torch, values):
    a, w, b = (Tensor(card, v) for v in (*values, np.zeros(N)))
    for consts in (values[1], w):
        fast = kernel.prepack(W=consts)
        assert card.launched[-1] == "pack"
        begin = len(card.launched)
        for _ in range(2):
            fast(a, 2.0, b)
        assert card.launched[begin:] == ["multiply", "scale"] * 2
        assert np.array_equal(floats(b.address), 2 * (values[0] * values[1]))
        assert np.array_equal(fast(values[0], 3.0), 3 * (values[0] * values[1])), "host arrays too"
    with pytest.raises(UsageError, match="B overlaps W"):
        fast(a, 2.0, w)
    with pytest.raises(UsageError, match="bound already: W"):
        fast.prepack(W=w)
    with pytest.raises(UsageError, match="are on a GPU, which no pickle holds"):
        pickle.dumps(fast)
    with pytest.raises(UsageError, match="needs the const tensor W"):
        kernel.prepack()
    with pytest.raises(UnknownNameError, match="const tensor"):
        kernel.prepack(W=w, A=a)
    with pytest.raises(UsageError, match=r"W is float32\[31\]"):
        kernel.prepack(W=values[1][:31])
    card.graph = 1
    with pytest.raises(UsageError, match="while a CUDA graph is recorded"):
        kernel.prepack(W=w)


def test_what_a_tensor_must_be_is_said(kernel, card, torch, values):
    a, w, b = (Tensor(card, v) for v in (*values, np.zeros(N)))
    for changed, said in (
        ({"dtype": "torch.float16"}, r"A is float16\[32\]"),
        ({"shape": (4, 8)}, r"A is float32\[4, 8\]"),
        ({"ordered": False}, "A is not contiguous"),
        ({"address": a.address + 4}, "no multiple of 16 bytes"),
        ({"is_cuda": False}, "A is not in the memory of a CUDA device"),
    ):
        with pytest.raises(UsageError, match=said):
            kernel(Tensor(card, values[0], **changed), w, 2.0, b)
    wrong = ((a, w, 2.0, a), "B overlaps A"), ((a, w), "no value for the scalar s"), ((a, w, 1, b, b), "takes 4")
    for arguments, said in wrong:
        with pytest.raises(UsageError, match=said):
            kernel(*arguments)
    kernel(A=a, W=w, s=2.0, B=b)
    assert np.array_equal(floats(b.address), 2 * (values[0] * values[1]))


def test_a_scalar_that_is_no_such_number_is_refused(kernel, card, torch, values):
    a, w, b = (Tensor(card, v) for v in (*values, np.zeros(N)))
    for _ in range(2):  # the second time it is a call like the last
        for wrong, said in (("2", "'2' is no number"), (None, "None is no number"), (1e300, "not in -3.40")):
            with pytest.raises(UsageError, match=f"the scalar s is f32, and.*{said}"):
                kernel(a, w, wrong, b)
            with pytest.raises(UsageError, match="the scalar s is f32"):
                kernel(*values, wrong)
        kernel(a, w, np.float32(2), b)
    with pytest.raises(UsageError, match="A is a masked array"):
        kernel(np.ma.array(values[0]), values[1], 2.0)


def test_arrays_of_two_libraries_are_worked_on_in_one_stream(kernel, card, torch, values):
    a, w, b = (Tensor(card, v) for v in (*values, np.zeros(N)))
    kernel(a, Interfaced(w.address), 2.0, b)
    kernel(a, Interfaced(w.address, stream=40), 2.0, b)
    with pytest.raises(UsageError, match="W is of the CUDA array interface and A of PyTorch, whose current streams"):
        kernel(a, Interfaced(w.address, stream=1), 2.0, b)
    card.streams.clear()
    kernel(*(Interfaced(t.address, stream=9) for t in (a, w)), 2.0, Interfaced(b.address))
    assert set(card.streams) == {9}


def test_arrays_here_and_there_go_together(kernel, card, torch, values):
    a, b = Tensor(card, values[0]), Tensor(card, np.zeros(N))
    held = len(card.memory)
    kernel(a, values[1], 2.0, b)
    assert np.array_equal(floats(b.address), 2 * (values[0] * values[1]))
    assert set(card.streams) == {40}
    assert len(card.memory) == held + 2, "what was copied is free again; the kernel's own is kept"


def test_code_for_another_card_is_refused_by_name(card, torch, values):
    def load(code):
        raise CudaError("CUDA_ERROR_NO_BINARY_FOR_GPU", "loading the code")

    card.load = load
    kernel = CudaKernel(PROGRAM, CudaSource("product", "text", PLAN), b"good", cards=lambda ordinal: card)
    with pytest.raises(UsageError, match="product was built for sm_90a"):
        kernel(*(Tensor(card, v) for v in values), 2.0)


def test_threads_do_not_meet_in_memory_of_the_kernels_own(kernel, card, torch, values):
    wrong = []

    def work(number):
        a, w, b = Tensor(card, values[0] + number), Tensor(card, values[1]), Tensor(card, np.zeros(N))
        for _ in range(200):
            kernel(a, w, 2.0, b)
            if not np.array_equal(floats(b.address), 2 * ((values[0] + number) * values[1])):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.slow
def test_a_dlpack_capsule_is_read_in_place():
    real = pytest.importorskip("torch")
    whole = real.arange(24, dtype=real.bfloat16).reshape(4, 6)

    class Shown:
        def __dlpack__(self, stream):
            assert stream == 1
            return whole[1:, ::2].__dlpack__()

    found = description(Shown())
    assert (found.kind, found.bits, found.shape, found.strides) == ("V", 16, (3, 3), (6, 2))
    assert found.address == whole.data_ptr() + 12


def test_a_kernel_is_pickled_with_its_code_and_bound_once(kernel):
    again = pickle.loads(pickle.dumps(kernel))
    assert (again.code, again.source, again.parameters) == (kernel.code, kernel.source, kernel.parameters)
    assert repr(again) == repr(kernel)
    assert len(repr(kernel).splitlines()) == 1
