"""Kernels as functions of arrays, on a card of host memory: what is copied, used in place, refused."""

import ctypes

import numpy as np
import pytest
from support.cards.host_card import HostCard

from autosched.codegen.cuda import CudaSource
from autosched.codegen.cuda.launch import BufferArgument, Launch, LaunchPlan, ScalarArgument
from autosched.device.cuda.call.callable import CudaKernel
from autosched.errors import UsageError
from autosched.ir import parse
from autosched.ir.dtypes import DTYPES

PROGRAM = parse(
    """
def scale(A: f32[m, n], B: f32[m, n], s: f32, *, m=4, n=8):
    for i, j in grid(m, n):
        B[i, j] = s * A[i, j]
"""
)
F32 = DTYPES["f32"]
ARGUMENTS = (BufferArgument("A", F32), BufferArgument("B", F32, True), ScalarArgument("s", F32))
PLAN = LaunchPlan("scale", "sm_90a", (Launch("scale", (1, 1, 1), (32, 1, 1), 0, ARGUMENTS),))


def array(address):
    return np.ctypeslib.as_array((ctypes.c_float * 32).from_address(address))


def scale(a, b, s):
    array(b)[:] = np.frombuffer(s, np.float32)[0] * array(a)


class OnCard:
    """What PyTorch and CuPy show of an array: `at` elements into memory of the card."""

    def __init__(self, card, values, at=0, **changed):
        base = card.allocate(values.nbytes + 64)
        self.address = base + at
        ctypes.memmove(self.address, np.ascontiguousarray(values).ctypes.data, values.nbytes)
        said = {"shape": values.shape, "typestr": values.dtype.str, "data": (self.address, False), "version": 3}
        self.__cuda_array_interface__ = said | changed


@pytest.fixture
def card():
    return HostCard({"scale": scale})


@pytest.fixture
def kernel(card):
    return CudaKernel(PROGRAM, CudaSource("scale", "text", PLAN), b"good", cards=lambda ordinal: card)


@pytest.fixture
def values():
    return np.arange(32, dtype=np.float32).reshape(4, 8)


def test_numpy_in_numpy_out(kernel, card, values):
    assert (kernel(values, 2.0) == 2 * values).all()
    out = np.empty_like(values)
    assert kernel(values, out, 3.0) is out
    assert (out == 3 * values).all()
    assert (kernel(A=values, s=4.0) == 4 * values).all()
    assert not card.memory, "what was allocated is free again"
    assert kernel.source == "text"


def test_arrays_on_the_card_are_used_where_they_are(kernel, card, values):
    a, b = OnCard(card, values), OnCard(card, np.zeros_like(values))
    held = len(card.memory)
    assert kernel(a, b, 2.0) is b
    assert (array(b.address) == 2 * values.reshape(-1)).all()
    assert len(card.memory) == held


def test_what_cannot_be_used_is_refused(kernel, card, values):
    out = OnCard(card, values)
    for arguments, said in (
        ((OnCard(card, values, at=4), out, 2.0), "no multiple of 16 bytes"),
        ((OnCard(card, values, strides=(4, 16)), out, 2.0), "not contiguous"),
        ((OnCard(card, values.astype(np.float64)), out, 2.0), "<f8"),
        ((OnCard(card, values.reshape(8, 4)), out, 2.0), r"\[8, 4\]"),
        ((OnCard(card, values, data=(16, False)), out, 2.0), "not in the memory of a CUDA device"),
        ((OnCard(card, values), 2.0), "no array for B"),
        ((out, out, 2.0), "B overlaps A"),
        ((OnCard(card, values), OnCard(card, values, data=(out.address, True)), 2.0), "read-only"),
        ((values.T.copy().T, 2.0), "not contiguous"),
        ((values.astype(np.float64), 2.0), "float64"),
        (([1, 2], 2.0), "neither a numpy array"),
        ((values,), "no value for the scalar s"),
        ((values, values.copy(), 1.0, 2), "takes 3 arguments"),
    ):
        with pytest.raises(UsageError, match=said):
            kernel(*arguments)
    with pytest.raises(UsageError, match="given twice"):
        kernel(values, 2.0, A=values)
    with pytest.raises(UsageError, match="unknown argument"):
        kernel(values, 2.0, X=values)
