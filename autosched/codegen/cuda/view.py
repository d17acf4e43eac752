"""A kernel as one block sees it: its own part of what a cluster shares, and boxes where TMA moves them.

In the loop tree a shared buffer of a cluster has a first dimension that numbers the cluster's blocks, and what the copy
engine does is also said element by element; a thread of a block has no use for either. Where it reads another block's
part, the buffer is another one, of scope `peer`, which keeps its first dimension.
"""

from __future__ import annotations

from dataclasses import replace

from autosched.codegen.tree.kernel import (
    Assign,
    AsyncCalls,
    AsyncCopies,
    Branch,
    Buffer,
    Chosen,
    For,
    Function,
    GuardedDispatch,
    If,
    IntrinsicCall,
    Kernel,
    RegisterRef,
    Stmt,
    TileCopy,
    WarpSpecialize,
    statements,
)
from autosched.ir.value import Index, Read, Value, map_value
from autosched.logic import Int, Var

PEER = "peer"
RANK = Var("cluster")
"""A block's number in its cluster."""


def block_view(kernel: Kernel) -> Kernel:
    """The kernel with every shared buffer as one block holds it, and copies of the engine as boxes alone."""
    ranked: set[str] = set()
    for stmt in kernel.main.body:
        inside = list(statements((stmt,)))
        if any(isinstance(s, For) and s.kind == "cluster" for s in inside):
            ranked |= {s.buffer for s in inside if isinstance(s, Assign) and kernel.buffers[s.buffer].scope == "shared"}
    buffers = {n: _own(b) if n in ranked else b for n, b in kernel.buffers.items()}
    buffers |= {peer_of(n): replace(kernel.buffers[n], name=peer_of(n), scope=PEER) for n in ranked}
    view = _View(frozenset(ranked))
    main = Function(kernel.main.name, kernel.main.buffers, view.body(kernel.main.body))
    return replace(kernel, buffers=buffers, main=main)


def peer_of(name: str) -> str:
    """The buffer as other blocks of the cluster hold it."""
    return f"{name} of peers"


def own_of(name: str) -> str:
    """The block's own buffer, of the name that `peer_of` gave."""
    return name.removesuffix(" of peers")


def _own(buffer: Buffer) -> Buffer:
    return replace(buffer, shape=buffer.shape[1:])


class _View:
    def __init__(self, ranked: frozenset[str]) -> None:
        self.ranked = ranked

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(map(self.statement, body))

    def statement(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For() | If() | AsyncCalls():
                return replace(stmt, body=self.body(stmt.body))
            case AsyncCopies():
                return replace(stmt, body=self.body(stmt.boxes or stmt.body), boxes=())
            case Branch():
                return replace(stmt, condition=self.value(stmt.condition), body=self.body(stmt.body))
            case Chosen():
                return replace(stmt, value=self.value(stmt.value), body=self.body(stmt.body))
            case GuardedDispatch():
                return replace(stmt, body=self.body(stmt.body), fallback=self.body(stmt.fallback))
            case WarpSpecialize():
                return replace(stmt, bodies=tuple(map(self.body, stmt.bodies)))
            case Assign():
                return replace(stmt, index=self.index(stmt.buffer, stmt.index), value=self.value(stmt.value))
            case IntrinsicCall():
                return replace(stmt, operands={n: self.register(ref) for n, ref in stmt.operands.items()})
            case TileCopy():
                return replace(stmt, index=self.index(stmt.buffer, stmt.index))
            case _:
                return stmt

    def index(self, buffer: str, index: tuple[Int, ...]) -> tuple[Int, ...]:
        return index[1:] if buffer in self.ranked else index

    def register(self, ref: RegisterRef) -> RegisterRef:
        return replace(ref, index=self.index(ref.buffer, ref.index))

    def value(self, value: Value) -> Value:
        if not self.ranked:
            return value

        def own(node: Value) -> Value:
            if isinstance(node, Read) and node.tensor in self.ranked:
                if node.index[0] != RANK:
                    return replace(node, tensor=peer_of(node.tensor))
                rest: tuple[Index, ...] = node.index[1:]
                return replace(node, index=rest)
            return node

        return map_value(value, own)
