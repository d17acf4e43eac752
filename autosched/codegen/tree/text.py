"""`print_kernel`: a loop tree as readable text, what `autosched show` prints.

One line a statement, Python-like: `acc[r, :16] = B[p, j + e]  for e in 0..16 where j + e < 500` assigns sixteen lanes,
`acc[r] <- x86/vfmadd(a=a0, b=b0, c=acc[r])` issues an intrinsic, and a loop that is not serial says its kind first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from autosched.codegen.tree.kernel import (
    Assign,
    AsyncCalls,
    AsyncCopies,
    AsyncProxyFence,
    BarrierArrive,
    BarrierWait,
    Branch,
    Buffer,
    Chosen,
    Comment,
    Configure,
    For,
    Function,
    GuardedDispatch,
    If,
    IntrinsicCall,
    Kernel,
    Prefetch,
    RegisterRef,
    Stmt,
    StoreFence,
    TileCopy,
    WaitCalls,
    WaitCopies,
    WarpSpecialize,
    WorkerBarrier,
)
from autosched.codegen.tree.value_text import index_text, value_text
from autosched.ir.variables import value_vars
from autosched.logic import FALSE, TRUE, Int, Truth, Var
from autosched.tensorize.matrices import Matrices

_INDENT = "  "


def print_kernel(kernel: Kernel) -> str:
    """The kernel as text: a heading, the schedule, the buffers, then each function's loop tree."""
    threads = "" if _in_blocks(kernel) else f", {kernel.threads} thread{'' if kernel.threads == 1 else 's'}"
    lines = [f"kernel {kernel.name}: {kernel.isa}{threads}"]
    lines += [f"{_INDENT}{name} = {value}" for name, value in kernel.schedule.items()]
    lines += [f"{_INDENT}relies on: {text}" for text in kernel.relies]
    lines += ["", "buffers", *_buffer_table(list(kernel.buffers.values()))]
    for function in kernel.prepare:
        lines += ["", f"prepare {function.name}({', '.join(function.buffers)})", *_body(function, kernel)]
    lines += ["", f"{kernel.main.name}({', '.join(kernel.main.buffers)})", *_body(kernel.main, kernel)]
    return "\n".join(lines) + "\n"


def _in_blocks(kernel: Kernel) -> bool:
    """Whether blocks of a grid compute it, whose threads their loops say."""
    return any(isinstance(s, For) and s.kind.startswith("block") for s in kernel.main.body)


def print_statement(stmt: Stmt) -> str:
    """One statement (with its body) as text, without a heading; for messages and notes."""
    return "\n".join(_statement(stmt, 0))


def _buffer_table(buffers: list[Buffer]) -> Iterator[str]:
    types = [f"{b.dtype}[{', '.join(str(n) for n in b.shape)}]" for b in buffers]
    wide = max((len(b.name) for b in buffers), default=0)
    widest = max((len(t) for t in types), default=0)
    for b, text in zip(buffers, types, strict=True):
        origin = f" of {b.origin}" if b.origin and b.origin != b.name else ""
        yield f"{_INDENT}{b.name:<{wide}}  {text:<{widest}}  {b.scope}{origin}"


def _body(function: Function, kernel: Kernel) -> Iterator[str]:
    for stmt in function.body:
        yield from _statement(stmt, 1)


def _statement(stmt: Stmt, depth: int) -> Iterator[str]:
    pad = _INDENT * depth
    match stmt:
        case For(var, lower, upper, body, kind, step, note, no_barrier, registers):
            head = "for" if kind == "serial" else f"{'free ' if no_barrier else ''}{kind} for"
            by = f" step {step}" if step != 1 else ""
            by += f", {registers} registers" if registers else ""
            comment = f"  # {note}" if note else ""
            yield f"{pad}{head} {var} in {lower}..{upper}{by}:{comment}"
            yield from _block(body, depth + 1)
        case If(condition, body):
            yield f"{pad}if {condition}:"
            yield from _block(body, depth + 1)
        case Branch(data, body):
            yield f"{pad}if {value_text(data)}:"
            yield from _block(body, depth + 1)
        case Chosen(var, value, extent, body):
            yield f"{pad}with {var} = {value_text(value)} in 0..{extent}:"
            yield from _block(body, depth + 1)
        case GuardedDispatch(checks, body, fallback, note):
            comment = f"  # {note}" if note else ""
            yield f"{pad}if {' and '.join(f'{name}[0] == 0' for name in checks)}:{comment}"
            yield from _block(body, depth + 1)
            yield f"{pad}else:"
            yield from _block(fallback, depth + 1)
        case Assign():
            yield pad + _assign(stmt)
        case IntrinsicCall(intrinsic, operands, zero_init):
            target = _register(operands[intrinsic.accumulator.name])
            taken = (o for o in operands.items() if intrinsic.accumulates or o[0] != intrinsic.accumulator.name)
            given = ", ".join(f"{name}={_register(ref)}" for name, ref in taken)
            zero = "" if zero_init == FALSE else f" from zero where {zero_init}"
            yield f"{pad}{target} <- {intrinsic.name}({given}){zero}"
        case Prefetch(buffer, index, write):
            yield f"{pad}prefetch {buffer}{index_text(index)}{' for writing' if write else ''}"
        case StoreFence():
            yield f"{pad}drain what went past the caches"
        case Configure(matrices, on):
            yield f"{pad}{'configure' if on else 'release'} {matrices.count} registers of {_matrix(matrices)}"
        case AsyncCopies(body, barrier, slot, boxes):
            yield f"{pad}start{f', then signal {barrier}[{slot}]' if barrier else ''}:"
            yield from _block(boxes or body, depth + 1)
        case WaitCopies(pending, engine):
            of = " of the engine" if engine else ""
            yield f"{pad}wait for all copies{of}{f' but the last {pending}' if pending else ''}"
        case BarrierArrive(barrier, slot, own):
            yield f"{pad}signal {barrier}[{slot}]{' of this block' if own else ''}"
        case BarrierWait(barrier, slot, times):
            yield f"{pad}await {barrier}[{slot}] x {times}"
        case TileCopy():
            yield pad + _box(stmt)
        case AsyncCalls(body):
            yield f"{pad}begin:"
            yield from _block(body, depth + 1)
        case WaitCalls(pending):
            yield f"{pad}wait for all calls{f' but the last {pending}' if pending else ''}"
        case WorkerBarrier():
            yield f"{pad}meet the worker's other threads"
        case AsyncProxyFence():
            yield f"{pad}publish what was written to shared memory"
        case WarpSpecialize(names, parts):
            for name, part in zip(names, parts, strict=True):
                yield f"{pad}beside, as {name}:"
                yield from _block(part, depth + 1)
        case Comment(text):
            for line in text.splitlines() or [""]:
                yield f"{pad}# {line}".rstrip()
        case _:
            assert_never(stmt)


def _matrix(matrices: Matrices) -> str:
    rows = [matrices.rows_in(register) for register in range(matrices.count)]
    fewer = f", with {' '.join(map(str, rows))} rows" if min(rows) < matrices.rows else ""
    return f"{matrices.rows} x {matrices.row_bytes} bytes{fewer}"


def _block(body: tuple[Stmt, ...], depth: int) -> Iterator[str]:
    for stmt in body:
        yield from _statement(stmt, depth)
    if not body:
        yield _INDENT * depth + "pass"


def _box(stmt: TileCopy) -> str:
    seen = stmt.map
    box = " x ".join(str(n) for n in reversed(seen.box))
    swizzled = f", swizzled by {seen.swizzle} B" if seen.swizzle else ""
    there = f"{seen.buffer} at ({', '.join(str(c) for c in reversed(stmt.coordinates))})"
    if seen.walk:
        there += f" + ({', '.join(str(c) for c in reversed(stmt.inside))})"
    here = stmt.buffer + index_text(stmt.index)
    others = f", {stmt.apart} apart" if stmt.apart > 1 else ""
    here += f" of {stmt.blocks} blocks{others}" if stmt.blocks > 1 else ""
    source, target = (here, there) if stmt.store else (there, here)
    what = "pixels" if seen.walk else "box"
    return f"{what} of {box} from {source} to {target}{swizzled}"


def _assign(stmt: Assign) -> str:
    lane = stmt.lane
    subscripts = [_subscript(i, lane.var if lane else None, lane.width if lane else 0) for i in stmt.index]
    text = f"{stmt.buffer}[{', '.join(subscripts)}] = {value_text(stmt.value)}"
    text += " past the caches" if stmt.stream else ""
    # `acc[r, :16] = 0` says all; where more than the plain subscript depends on the lane it has to be named.
    if lane is not None and (
        stmt.valid != TRUE or stmt.index[-1] != Var(lane.var) or lane.var in value_vars(stmt.value)
    ):
        text += f"  for {lane.var} in 0..{lane.width}"
    if not isinstance(stmt.valid, Truth):
        text += f"  where {stmt.valid}"
    elif not stmt.valid.value:
        text += "  where False"
    return text


def _subscript(index: Int, lane: str | None, width: int) -> str:
    return f":{width}" if lane is not None and index == Var(lane) else str(index)


def _register(ref: RegisterRef) -> str:
    over = f" for {ref.lane.var} in 0..{ref.lane.width}" if ref.lane is not None else ""
    return ref.buffer + (index_text(ref.index) if ref.index else "") + over
