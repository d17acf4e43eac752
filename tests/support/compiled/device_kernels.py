"""Hand-written kernels for the worker's tests: y[i] = x[i] + 1 over `N` floats, and ways to get it wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from autosched.device.correctness.oracle import Oracle
from autosched.device.job import EntryPoint, Job, ScratchBuffer
from autosched.device.protocol import Build
from autosched.ir.dtypes import DTYPES
from autosched.ir.nodes import Tensor
from autosched.ir.program import Program
from autosched.logic import Const
from autosched.machine import native

N = 1000  # 4,000 bytes: the end of a guarded buffer is not the end of a cache line

LOOP = """
define void @main(ptr %x, ptr %y) {
entry:
  br label %loop
loop:
  %i = phi i64 [ FIRST, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %p
  %w = fadd float %v, ADD
  %q = getelementptr float, ptr %y, i64 %i
  store float %w, ptr %q
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, LAST
  br i1 %more, label %loop, label %done
done:
  EXTRA
  ret void
}
"""
SPIN = """
define void @main(ptr %x, ptr %y) {
entry:
  br label %loop
loop:
  store volatile i8 0, ptr %y
  br label %loop
}
"""
CRASH = "define void @main(ptr %x, ptr %y) {\n  store volatile i8 1, ptr null\n  ret void\n}"
NOTHING = "define void @main(ptr %x, ptr %y) {\n  ret void\n}"
PACKED = """
define void @prepare(ptr %x, ptr %packed) {
  call void @llvm.memcpy.p0.p0.i64(ptr %packed, ptr %x, i64 BYTES, i1 false)
  ret void
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def kernel(first: int = 0, last: int = N, add: float = 1.0, extra: str = "") -> str:
    """IR of the loop over [first, last)."""
    text = LOOP.replace("FIRST", str(first)).replace("LAST", str(last)).replace("ADD", repr(float(add)))
    return text.replace("EXTRA", extra)


def job(text: str, **changes: Any) -> Job:
    native.start()
    return Job((native.compile_ir(text),), **({"main": EntryPoint("main", ("X", "Y"))} | changes))


def packed_job() -> Job:
    """The same through a packed copy of X."""
    text = PACKED.replace("BYTES", str(4 * N)) + kernel()
    return job(
        text,
        main=EntryPoint("main", ("packed", "Y")),
        prepare=(EntryPoint("prepare", ("X", "packed")),),
        scratch={"packed": ScratchBuffer(4 * N, packed=True)},
    )


@dataclass(frozen=True)
class Fake:
    """A candidate of the program below, as far as a device looks at one."""

    key: str = "hand#0"
    plan: Any = field(
        default_factory=lambda: SimpleNamespace(
            program=program(),
            name="hand",
            guards=(),
            granted=(),
            rewrites=(),
            mappings=(),
            formulas={},
            parts=(),
            tensor_parts=(),
            own_tensor_parts=(),
        )
    )
    row: int = 0
    analytic_s: float | None = None


def built(text: str | Job) -> Build:
    return Build(Fake(), text if isinstance(text, Job) else job(text), seconds=0.01, kernel_sha="sha")


def program(dtype: str = "f32", inout: bool = False) -> Program:
    """`Y = X + 1` as a program without a body: devices with an oracle of their own never run it."""
    tensors = {n: Tensor(n, DTYPES[dtype], (Const(N),)) for n in ("X", "Y")}
    return Program("add", "", tensors, {}, ("X", "Y"), {}, {}, ())


def oracle(tolerance: float = 1e-6) -> Oracle:
    x = np.random.default_rng(0).uniform(-1, 1, N).astype(np.float32)
    return Oracle({"X": x}, {"Y": x.astype(np.float64) + 1}, {"Y": np.full(N, tolerance)})
