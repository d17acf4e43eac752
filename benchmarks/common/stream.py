"""The memory bound of a program: the time of a plain loop, on all threads, that reads and writes as many bytes."""

from __future__ import annotations

import ctypes
import time
from itertools import cycle
from typing import Any

import numpy as np

from autosched.codegen.llvm.machine.engine import Module
from autosched.codegen.llvm.machine.pool_ir import PARALLEL_FOR
from autosched.codegen.llvm.machine.runtime import pool
from autosched.machine import native

VECTOR, UNROLL = 64, 8
BLOCK = VECTOR * UNROLL
SAMPLE_S = 1e-2
"""Passes of one sample last this long together, as the calls of a kernel's do (`sampling.SAMPLE_S`)."""
PLACES, PLACES_BYTES = 5, 64 << 20
"""Memory that samples go through in turn, and what it may take in all. Physical pages decide how sets of the caches
fill: 2 MB in pages of 4 KiB were seen to take 41 us in one process, and 19 in others."""
KINDS = ("cached", "streamed", "columns")
"""Stores that go through the caches or pass them by; and reads, as `cached`, that walk through COLUMNS parts of the
source side by side: some cores get more out of memory that way (Zen 3, 64 MiB: 28 GB/s where one stream has 21)."""
COLUMNS = 4
_KIND = f"<{VECTOR // 4} x i32>"
_DECLARED = f"declare void @{PARALLEL_FOR}(ptr, ptr, i64, i32)\n!0 = !{{i32 1}}"


def _entry(name: str) -> str:
    """`name.on(context, threads)`: the loop on every thread."""
    call = f"call void @{PARALLEL_FOR}(ptr @{name}, ptr %context, i64 %n, i32 %threads)"
    body = f"  %n = zext i32 %threads to i64\n  {call}\n  ret void"
    return f"define void @{name}.on(ptr %context, i32 %threads) {{\n{body}\n}}"


def _loop(name: str) -> str:
    """`name(context, i)`: thread i reads its `reads` blocks and writes its `writes` blocks, `passes` times. What it
    reads and writes at once is a copy."""
    temporal = ", !nontemporal !0" if name == "streamed" else ""
    columns = COLUMNS if name == "columns" else 1
    lines = [f"define void @{name}(ptr %context, i64 %thread) {{", "entry:"]
    for k, field in enumerate(("source", "target")):
        lines += [f"  %f{k} = getelementptr ptr, ptr %context, i64 {k}", f"  %{field}.all = load ptr, ptr %f{k}"]
    for k, field in enumerate(("reads", "writes", "passes"), start=2):
        lines += [f"  %f{k} = getelementptr i64, ptr %context, i64 {k}", f"  %{field} = load i64, ptr %f{k}"]
    for side, count in (("source", "reads"), ("target", "writes")):
        lines += [
            f"  %{side}.blocks = mul i64 %thread, %{count}",
            f"  %{side}.bytes = mul i64 %{side}.blocks, {BLOCK}",
            f"  %{side} = getelementptr i8, ptr %{side}.all, i64 %{side}.bytes",
        ]
    lines += [
        "  %some = icmp slt i64 %reads, %writes", "  %both = select i1 %some, i64 %reads, i64 %writes",
        f"  %column = mul i64 %reads, {BLOCK // columns}",
        "  br label %pass", "pass:", "  %p = phi i64 [ 0, %entry ], [ %p1, %end ]", "  br label %copy.test",
    ]  # fmt: skip
    for kind, low, high, next_part in (
        ("copy", "0", "%both", "read.test"),
        ("read", "%both", "%reads", "write.test"),
        ("write", "%both", "%writes", "end"),
    ):  # fmt: skip
        before = {"copy": "pass", "read": "copy.test", "write": "read.test"}[kind]
        lines += [
            f"{kind}.test:", f"  %{kind}.i = phi i64 [ {low}, %{before} ], [ %{kind}.next, %{kind}.loop ]",
            f"  %{kind}.more = icmp slt i64 %{kind}.i, {high}",
            f"  br i1 %{kind}.more, label %{kind}.loop, label %{next_part}", f"{kind}.loop:",
            f"  %{kind}.at = mul i64 %{kind}.i, {BLOCK}", f"  %{kind}.next = add i64 %{kind}.i, 1",
            f"  %{kind}.c0 = mul i64 %{kind}.i, {BLOCK // columns}",
            *(f"  %{kind}.c{c} = add i64 %{kind}.c{c - 1}, %column" for c in range(1, columns)),
        ]  # fmt: skip
        for u in range(UNROLL):
            lines.append(f"  %{kind}.o{u} = add i64 %{kind}.at, {u * VECTOR}")
            value = "zeroinitializer"
            if kind != "write":
                lines.append(f"  %{kind}.q{u} = add i64 %{kind}.c{u % columns}, {u // columns * VECTOR}")
                lines.append(f"  %{kind}.s{u} = getelementptr i8, ptr %source, i64 %{kind}.q{u}")
                lines.append(f"  %{kind}.v{u} = load volatile {_KIND}, ptr %{kind}.s{u}, align {VECTOR}")
                value = f"%{kind}.v{u}"
            if kind != "read":
                lines.append(f"  %{kind}.t{u} = getelementptr i8, ptr %target, i64 %{kind}.o{u}")
                lines.append(f"  store {_KIND} {value}, ptr %{kind}.t{u}, align {VECTOR}{temporal}")
        lines.append(f"  br label %{kind}.test")
    lines += [
        "end:", "  %p1 = add i64 %p, 1", "  %again = icmp slt i64 %p1, %passes",
        "  br i1 %again, label %pass, label %done", "done:", "  ret void", "}",
    ]  # fmt: skip
    return "\n".join(lines)


class Stream:
    """Reads `bytes_in` and writes `bytes_out` with `threads` threads of the process's pool. A neighbour can
    only make a pass longer, so the bound (`best_s`) is the least of all samples so far."""

    def __init__(self, bytes_in: int, bytes_out: int, threads: int) -> None:
        text = "\n".join([_loop(k) + "\n" + _entry(k) for k in KINDS] + [_DECLARED])
        pool()  # whose symbol the text needs
        self._module = Module(native.compile_ir(text))
        blocks = [max(1, -(-size // (BLOCK * threads))) for size in (bytes_in, bytes_out)]
        sizes = [count * BLOCK * threads for count in blocks]
        places = max(1, min(PLACES, PLACES_BYTES // sum(sizes)))
        self.memory = [tuple(map(_memory, sizes)) for _ in range(places)]
        contexts = [(ctypes.c_int64 * 5)(*(m.ctypes.data for m in pair), *blocks, 1) for pair in self.memory]
        self._threads, self._next = threads, {k: cycle(contexts) for k in KINDS}
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)
        self._calls = {k: call(self._module.address(f"{k}.on")) for k in KINDS}
        self.best_s = float("inf")

    def sample(self, kind: str) -> float:
        """Seconds of a pass with this kind of store, over passes that last SAMPLE_S together; fewer, which are not
        timed, come before them and bring back what the caches keep. The next sample is of the next place."""
        call, passes = self._calls[kind], 1
        context = next(self._next[kind])
        while (took_s := self._took(call, context, passes)) < SAMPLE_S:
            passes = max(2 * passes, int(passes * SAMPLE_S / max(took_s, 1e-7)))
        self.best_s = min(self.best_s, took_s / passes)
        return took_s / passes

    def _took(self, call: Any, context: Any, passes: int) -> float:
        context[4] = passes
        started = time.perf_counter()
        call(ctypes.addressof(context), self._threads)
        return time.perf_counter() - started


def _memory(size: int) -> Any:
    raw = np.ones(size + VECTOR, np.uint8)
    start = -raw.ctypes.data % VECTOR
    return raw[start : start + size]
