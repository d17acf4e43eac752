"""How many weights of few bits a core turns into floats and multiplies, at most: a loop over a first cache's data.

A byte is loaded and widened, a nibble masked or shifted out of it, converted to f32, and goes into one multiply-add.
Weights of 4 bits lie two a byte. With AVX-512 a register of 32-bit words may have eight a lane, each shifted down and
taken out of a table, which is faster. Zero points and scales can wait for the end of a group: they are not counted.
"""

from __future__ import annotations

import ctypes
import time

import numpy as np

from autosched.codegen.llvm.machine.compile import initialise
from autosched.codegen.llvm.machine.engine import Module
from autosched.machine import native
from autosched.machine.host import host_features
from benchmarks.peers.task import Array

LANES, UNROLL = 16, 4
BLOCK = LANES * UNROLL
BYTES = 16 << 10
SAMPLE_S = 1e-2
_PERMUTE = "llvm.x86.avx512.permvar.sf.512"
_BYTE, _INT, _FLOAT = (f"<{LANES} x {t}>" for t in ("i8", "i32", "float"))
BYTES_OF_TWO, BYTES_OF_ONE, WORDS = "bytes of two", "bytes", "words of eight"
SEQUENCE = {
    BYTES_OF_TWO: "load and widen for two, mask or shift, convert, multiply-add",
    BYTES_OF_ONE: "load and widen, convert, multiply-add",
    WORDS: "load for eight, shift, look up, multiply-add",
}


def known(bits: int) -> tuple[str, ...]:
    """The sequences of instructions that this machine has for weights of `bits` (4 or 8) bits."""
    if bits == 8:
        return (BYTES_OF_ONE,)
    return (BYTES_OF_TWO, WORDS) if "avx512f" in host_features() else (BYTES_OF_TWO,)


def _splat(value: int) -> str:
    return "<" + ", ".join([f"i32 {value}"] * LANES) + ">"


def _loop(sequence: str) -> str:
    """`convert(source, x, sums, passes)`."""
    count = accumulators(sequence)
    lines = ["define void @convert(ptr %source, ptr %x.at, ptr %sums, i64 %passes) {", "entry:",
             f"  %x = load {_FLOAT}, ptr %x.at", "  br label %pass", "pass:",
             "  %p = phi i64 [ 0, %entry ], [ %p1, %end ]"]  # fmt: skip
    lines += [f"  %a{i} = phi {_FLOAT} [ zeroinitializer, %entry ], [ %d{i}, %end ]" for i in range(count)]
    lines += ["  br label %loop", "loop:", "  %i = phi i64 [ 0, %pass ], [ %i1, %loop ]"]
    lines += [f"  %b{i} = phi {_FLOAT} [ %a{i}, %pass ], [ %d{i}, %loop ]" for i in range(count)]
    lines += _looked_up() if sequence == WORDS else _converted(sequence)
    for i in range(count):
        lines.append(f"  %d{i} = call {_FLOAT} @llvm.fma.v{LANES}f32({_FLOAT} %f{i}, {_FLOAT} %x, {_FLOAT} %b{i})")
    lines += [f"  %i1 = add i64 %i, {BLOCK}", f"  %more = icmp slt i64 %i1, {BYTES}",
              "  br i1 %more, label %loop, label %end", "end:", "  %p1 = add i64 %p, 1",
              "  %again = icmp slt i64 %p1, %passes", "  br i1 %again, label %pass, label %done", "done:"]  # fmt: skip
    for i in range(count):
        lines += [f"  %t{i} = getelementptr {_FLOAT}, ptr %sums, i64 {i}", f"  store {_FLOAT} %d{i}, ptr %t{i}"]
    declared = [f"declare {_FLOAT} @llvm.fma.v{LANES}f32({_FLOAT}, {_FLOAT}, {_FLOAT})"]
    if sequence == WORDS:
        declared.append(f"declare {_FLOAT} @{_PERMUTE}({_FLOAT}, {_INT})")
    return "\n".join([*lines, "  ret void", "}", *declared])


def accumulators(sequence: str) -> int:
    """Registers that the loop adds up in, one for each that it converts a trip."""
    return BLOCK * (1 if sequence == BYTES_OF_ONE else 2) // LANES


def _converted(sequence: str) -> list[str]:
    """`f0`, `f1`, …: the weights of BLOCK bytes, widened and converted."""
    lines, floats = [], list[str]()
    for u in range(UNROLL):
        lines += [f"  %o{u} = add i64 %i, {u * LANES}", f"  %s{u} = getelementptr i8, ptr %source, i64 %o{u}",
                  f"  %v{u} = load volatile {_BYTE}, ptr %s{u}, align {LANES}",
                  f"  %w{u} = {'sext' if sequence == BYTES_OF_ONE else 'zext'} {_BYTE} %v{u} to {_INT}"]  # fmt: skip
        halves = [f"%w{u}"]
        if sequence == BYTES_OF_TWO:
            lines += [f"  %l{u} = and {_INT} %w{u}, {_splat(15)}", f"  %h{u} = lshr {_INT} %w{u}, {_splat(4)}"]
            halves = [f"%l{u}", f"%h{u}"]
        floats += halves
    return [*lines, *(f"  %f{i} = sitofp {_INT} {value} to {_FLOAT}" for i, value in enumerate(floats))]


def _looked_up() -> list[str]:
    """The same of one register of 32-bit words, by a table."""
    table = ", ".join(f"float {n}.0" for n in range(16))
    lines = ["  %s = getelementptr i8, ptr %source, i64 %i", f"  %v = load volatile {_INT}, ptr %s, align {BLOCK}"]
    for i in range(accumulators(WORDS)):
        lines += [f"  %w{i} = lshr {_INT} %v, {_splat(4 * i)}",
                  f"  %f{i} = call {_FLOAT} @{_PERMUTE}({_FLOAT} <{table}>, {_INT} %w{i})"]  # fmt: skip
    return lines


class Conversions:
    """The loop that converts by a sequence of `known`, on one core."""

    def __init__(self, sequence: str) -> None:
        initialise()
        self._module = Module(native.compile_ir(_loop(sequence)))
        self.bytes, self._weights = BYTES, BYTES * (1 if sequence == BYTES_OF_ONE else 2)
        self._memory = [_aligned(np.full(BYTES, 0x31, np.uint8)), _aligned(np.full(LANES, 0.5, np.float32)),
                        _aligned(np.zeros(LANES * accumulators(sequence), np.float32))]  # fmt: skip
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
