"""Slices that a loop does not change: copied to shared memory once in front of it.

    for j_block:                                          for warpgroup: Q_shared[…] = Q[i_tile * 64 + …, …]
        for warpgroup:                                    for j_block:
            Q_shared[…] = Q[i_tile * 64 + …, …]       →       for warpgroup: K_shared[…] = K[j_block * 64 + …, …]
            K_shared[…] = K[j_block * 64 + …, …]
"""

from __future__ import annotations

from dataclasses import replace

from autosched.codegen.lower.common.context import Context
from autosched.codegen.tree.kernel import WORKERS, Assign, AsyncProxyFence, For, Stmt, statements
from autosched.codegen.tree.uses import used_variables
from autosched.ir.value import Read, walk

Body = tuple[Stmt, ...]
MEMORY = ("global", "workspace")
"""Whence slices are copied."""


def kept_slices(body: Body, loop: str, ctx: Context) -> tuple[Body, Body]:
    """What fills slices in front of the loop over `loop`, and the loop's body without."""
    written = [s.buffer for s in statements(body) if isinstance(s, Assign)]
    before: list[Stmt] = []
    after: list[Stmt] = []
    for stmt in body:
        if not (isinstance(stmt, For) and stmt.kind in WORKERS):
            after.append(stmt)
            continue
        steady = [s for s in stmt.body if _steady(s, loop, written, ctx)]
        if not steady:
            after.append(stmt)
            continue
        fences = [s for s in stmt.body if isinstance(s, AsyncProxyFence)]
        before.append(replace(stmt, body=(*steady, *fences[:1])))
        others = tuple(s for s in stmt.body if not any(s is x for x in steady))
        if any(not isinstance(s, AsyncProxyFence) for s in others):
            after.append(replace(stmt, body=others))
    return tuple(before), tuple(after)


def _steady(stmt: Stmt, loop: str, written: list[str], ctx: Context) -> bool:
    """Whether a statement copies memory that the body does not write to shared memory that nothing else fills, the same
    in all iterations."""
    found = copied((stmt,), ctx)
    if found is None or loop in used_variables((stmt,)):
        return False
    filled, read = found
    return read.isdisjoint(written) and all(written.count(n) == 1 for n in filled)


def copied(body: Body, ctx: Context) -> tuple[set[str], set[str]] | None:
    """The slices in shared memory that statements fill, and the memory that they copy there; None where they do more
    than that and fences."""
    inside = [s for s in statements(body) if not isinstance(s, For | AsyncProxyFence)]
    fills = [s for s in inside if isinstance(s, Assign) and ctx.buffers[s.buffer].scope == "shared"]
    read = {n.tensor for s in fills for n in walk(s.value) if isinstance(n, Read)}
    if not fills or len(fills) < len(inside) or any(ctx.buffers[n].scope not in MEMORY for n in read):
        return None
    return {s.buffer for s in fills}, read
