"""How many weights of few bits a core turns into floats and multiplies, at most: a loop over a first cache's data.

A byte is loaded and widened, a nibble masked or shifted out of it, converted to f32, and goes into one multiply-add.
Zero points and scales can wait for the end of a group, so they are not counted. The weights of 4 bits lie two a byte.
"""

from __future__ import annotations

import ctypes
import time

import numpy as np

from autosched.codegen.llvm.machine.compile import initialise
from autosched.codegen.llvm.machine.engine import Module
from autosched.machine import native
from benchmarks.peers.task import Array

LANES, UNROLL = 16, 4
BLOCK = LANES * UNROLL
BYTES = 16 << 10
SAMPLE_S = 1e-2
_BYTE, _INT, _FLOAT = (f"<{LANES} x {t}>" for t in ("i8", "i32", "float"))
SEQUENCE = {
    4: "load and widen for two, mask or shift, convert, multiply-add",
    8: "load and widen, convert, multiply-add",
}


def _splat(value: int) -> str:
    return "<" + ", ".join([f"i32 {value}"] * LANES) + ">"


def _loop(bits: int) -> str:
    """`convert(source, x, sums, passes)`."""
    each = 8 // bits
    count = UNROLL * each
    lines = ["define void @convert(ptr %source, ptr %x.at, ptr %sums, i64 %passes) {", "entry:",
             f"  %x = load {_FLOAT}, ptr %x.at", "  br label %pass", "pass:",
             "  %p = phi i64 [ 0, %entry ], [ %p1, %end ]"]  # fmt: skip
    lines += [f"  %a{i} = phi {_FLOAT} [ zeroinitializer, %entry ], [ %d{i}, %end ]" for i in range(count)]
    lines += ["  br label %loop", "loop:", "  %i = phi i64 [ 0, %pass ], [ %i1, %loop ]"]
    lines += [f"  %b{i} = phi {_FLOAT} [ %a{i}, %pass ], [ %d{i}, %loop ]" for i in range(count)]
    for u in range(UNROLL):
        lines += [f"  %o{u} = add i64 %i, {u * LANES}", f"  %s{u} = getelementptr i8, ptr %source, i64 %o{u}",
                  f"  %v{u} = load volatile {_BYTE}, ptr %s{u}, align {LANES}",
                  f"  %w{u} = {'sext' if bits == 8 else 'zext'} {_BYTE} %v{u} to {_INT}"]  # fmt: skip
        halves = [f"%w{u}"]
        if bits == 4:
            lines += [f"  %l{u} = and {_INT} %w{u}, {_splat(15)}", f"  %h{u} = lshr {_INT} %w{u}, {_splat(4)}"]
            halves = [f"%l{u}", f"%h{u}"]
        for half, value in enumerate(halves):
            i = u * each + half
            lines += [
                f"  %f{i} = sitofp {_INT} {value} to {_FLOAT}",
                f"  %d{i} = call {_FLOAT} @llvm.fma.v{LANES}f32({_FLOAT} %f{i}, {_FLOAT} %x, {_FLOAT} %b{i})",
            ]
    lines += [f"  %i1 = add i64 %i, {BLOCK}", f"  %more = icmp slt i64 %i1, {BYTES}",
              "  br i1 %more, label %loop, label %end", "end:", "  %p1 = add i64 %p, 1",
              "  %again = icmp slt i64 %p1, %passes", "  br i1 %again, label %pass, label %done", "done:"]  # fmt: skip
    for i in range(count):
        lines += [f"  %t{i} = getelementptr {_FLOAT}, ptr %sums, i64 {i}", f"  store {_FLOAT} %d{i}, ptr %t{i}"]
    declared = f"declare {_FLOAT} @llvm.fma.v{LANES}f32({_FLOAT}, {_FLOAT}, {_FLOAT})"
    return "\n".join([*lines, "  ret void", "}", declared])


class Conversions:
    """The loop for weights of `bits` (4 or 8) bits, on one core."""

    def __init__(self, bits: int) -> None:
        initialise()
        self._module = Module(native.compile_ir(_loop(bits)))
        self.bytes, self._weights = BYTES, BYTES * 8 // bits
        self._memory = [_aligned(np.full(BYTES, 0x31, np.uint8)), _aligned(np.full(LANES, 0.5, np.float32)),
                        _aligned(np.zeros(LANES * UNROLL * 8 // bits, np.float32))]  # fmt: skip
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        self._call = kind(self._module.address("convert"))

    def fill(self, byte: int) -> None:
        """All weights anew: one byte over and over."""
        self._memory[0][:] = byte

    def sums(self, passes: int) -> Array:
        """What the loop adds up: each accumulator of LANES floats in turn."""
        self._call(*(m.ctypes.data for m in self._memory), passes)
        return self._memory[2].copy()

    def sample(self) -> float:
        """Weights a second, over SAMPLE_S."""
        passes = 1
        while True:
            started = time.perf_counter()
            self._call(*(m.ctypes.data for m in self._memory), passes)
            took_s = time.perf_counter() - started
            if took_s >= SAMPLE_S:
                return self._weights * passes / took_s
            passes = max(2 * passes, int(passes * SAMPLE_S / max(took_s, 1e-7)))


def _aligned(values: Array) -> Array:
    raw = np.empty(values.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    held = raw[start : start + values.nbytes].view(values.dtype)
    held[...] = values
    return held
