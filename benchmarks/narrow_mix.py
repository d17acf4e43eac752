"""What converting narrow weights takes at least: the instructions of a product's inner loop, on data of a cache.

Written by hand in LLVM IR, so that it shares nothing with what it is compared with: for each register of weights its
load, its conversion, the zero point, the scale, and the multiply-add; scales and zero points once for a group.
"""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from autosched.codegen.llvm.machine.engine import Module
from autosched.machine import native
from autosched.machine.host import host_features

REGISTERS = (4, 6, 8)
"""Registers of sums side by side; the fastest of these counts."""
GROUP, PASSES = 32, 4000
TRIED = 9
"""Times that each loop is tried to find the fastest."""
SAMPLE_S = 2e-3
"""As long as samples of kernels (`narrow.BURST_S`)."""


def lanes() -> int:
    """Floats of this machine's widest register."""
    return 16 if "avx512f" in host_features() else 8


def _text(bits: int, registers: int) -> str:
    """`mix(x, weights, scales, zeros, sums, passes)`: one group of weights, `passes` times."""
    n = lanes()
    floats, ints, bytes_ = f"<{n} x float>", f"<{n} x i32>", f"<{n} x i8>"
    span = 8 // bits  # units that a byte has
    four, low = f"splat (i32 {bits})", f"splat (i32 {(1 << bits) - 1})"
    if bits == 4:
        four, low = (f"<{', '.join([f'i32 {v}'] * n)}>" for v in (4, 15))
    arguments = "ptr %x, ptr %weights, ptr %scales, ptr %zeros, ptr %sums, i64 %passes"
    lines = [f"define void @mix({arguments}) {{", "entry:", "  br label %pass", "pass:"]
    lines += ["  %p = phi i64 [ 0, %entry ], [ %p1, %latch ]"]
    sums = [f"  %a{r} = phi {floats} [ zeroinitializer, %entry ], [ %s{r}.{span}, %latch ]" for r in range(registers)]
    lines += sums
    for r in range(registers):
        lines += [
            f"  %zp{r} = getelementptr {bytes_}, ptr %zeros, i64 {r}",
            f"  %zb{r} = load volatile {bytes_}, ptr %zp{r}, align 1",
            f"  %zi{r} = sext {bytes_} %zb{r} to {ints}",
            f"  %z{r} = sitofp {ints} %zi{r} to {floats}",
            f"  %cp{r} = getelementptr {floats}, ptr %scales, i64 {r}",
            f"  %c{r} = load volatile {floats}, ptr %cp{r}, align 4",
        ]
    lines += ["  br label %step", "step:", "  %u = phi i64 [ 0, %pass ], [ %u1, %step ]"]
    lines += [f"  %s{r}.0 = phi {floats} [ %a{r}, %pass ], [ %s{r}.{span}, %step ]" for r in range(registers)]
    lines += [f"  %row = mul i64 %u, {registers}"]
    for r in range(registers):
        lines += [
            f"  %at{r} = add i64 %row, {r}",
            f"  %wp{r} = getelementptr {bytes_}, ptr %weights, i64 %at{r}",
            f"  %wb{r} = load {bytes_}, ptr %wp{r}, align 1",
            f"  %wi{r} = {'sext' if bits == 8 else 'zext'} {bytes_} %wb{r} to {ints}",
        ]
        if bits == 4:
            lines += [f"  %h{r}.0 = and {ints} %wi{r}, {low}", f"  %h{r}.1 = lshr {ints} %wi{r}, {four}"]
    for k in range(span):
        lines += [
            f"  %ux{k} = mul i64 %u, {span}", f"  %uk{k} = add i64 %ux{k}, {k}",
            f"  %xp{k} = getelementptr float, ptr %x, i64 %uk{k}", f"  %xs{k} = load float, ptr %xp{k}, align 4",
            f"  %xi{k} = insertelement {floats} poison, float %xs{k}, i32 0",
            f"  %xv{k} = shufflevector {floats} %xi{k}, {floats} poison, <{n} x i32> zeroinitializer",
        ]  # fmt: skip
        for r in range(registers):
            word = f"%wi{r}" if bits == 8 else f"%h{r}.{k}"
            lines += [
                f"  %f{r}.{k} = sitofp {ints} {word} to {floats}",
                f"  %d{r}.{k} = fsub {floats} %f{r}.{k}, %z{r}",
                f"  %m{r}.{k} = fmul {floats} %d{r}.{k}, %c{r}",
                f"  %s{r}.{k + 1} = call {floats} @llvm.fma.v{n}f32("
                f"{floats} %m{r}.{k}, {floats} %xv{k}, {floats} %s{r}.{k})",
            ]
    lines += [
        "  %u1 = add i64 %u, 1", f"  %more = icmp slt i64 %u1, {GROUP // span}",
        "  br i1 %more, label %step, label %latch", "latch:", "  %p1 = add i64 %p, 1",
        "  %again = icmp slt i64 %p1, %passes", "  br i1 %again, label %pass, label %done", "done:",
    ]  # fmt: skip
    for r in range(registers):
        lines += [f"  %o{r} = getelementptr {floats}, ptr %sums, i64 {r}"]
        lines += [f"  store {floats} %s{r}.{span}, ptr %o{r}, align 4"]
    attributes = f'attributes #0 = {{ "prefer-vector-width"="{32 * n}" "min-legal-vector-width"="{32 * n}" }}'
    declared = f"declare {floats} @llvm.fma.v{n}f32({floats}, {floats}, {floats})"
    lines[0] = lines[0].replace(" {", " #0 {")
    return "\n".join([*lines, "  ret void", "}", declared, attributes])


class ConversionMix:
    """The loop for weights of so many bits. `best_s`: seconds of one register of weights, the least of all samples."""

    def __init__(self, bits: int) -> None:
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5, ctypes.c_int64)
        found = []
        for registers in REGISTERS:
            module = Module(native.compile_ir(_text(bits, registers)))
            n = lanes() * registers
            data = [np.ones(GROUP, np.float32), np.ones(GROUP * n, np.uint8), np.ones(n, np.float32)]
            data += [np.zeros(n, np.int8), np.zeros(n, np.float32)]
            found.append(_Loop(registers, kind(module.address("mix")), [d.ctypes.data for d in data], (module, data)))
        self._fastest = min(found, key=lambda loop: min(loop.seconds(PASSES) for _ in range(TRIED)))
        self._passes = max(PASSES, int(SAMPLE_S / self._fastest.seconds(PASSES) / GROUP / self._fastest.registers))
        self.best_s = float("inf")

    def sample(self) -> float:
        """Seconds of a register, over as long a time as a sample of a kernel."""
        took = self._fastest.seconds(self._passes)
        self.best_s = min(self.best_s, took)
        return took


@dataclass(frozen=True)
class _Loop:
    registers: int
    call: Any
    pointers: list[int]
    kept: Any

    def seconds(self, passes: int) -> float:
        """Of one register of weights."""
        started = time.perf_counter()
        self.call(*self.pointers, passes)
        return (time.perf_counter() - started) / (passes * GROUP * self.registers)
