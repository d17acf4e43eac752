"""The part of a buffer that statements touch: what registers hold may leave one column of a tile to memory.

    S f32[128, 64], in which S[i, 0] alone is written and read    →    S f32[128, 1]
"""

from __future__ import annotations

from dataclasses import replace

from autosched.codegen.tree.kernel import Assign, Branch, Buffer, Chosen, Stmt, statements, with_bodies
from autosched.codegen.tree.uses import places, used_buffers
from autosched.ir.value import Index
from autosched.logic import Const

PLAIN = Assign | Branch | Chosen
"""Statements of which `places` tells every element that they touch."""


def used_part(buffer: Buffer, body: tuple[Stmt, ...]) -> Buffer:
    """The buffer, no longer than the statements need it in dimensions whose subscripts are all numbers."""
    touched: list[tuple[Index, ...]] = []
    for stmt in statements(body):
        own = with_bodies(stmt, lambda _: ()) or stmt
        if buffer.name not in used_buffers((own,)):
            continue
        if not isinstance(stmt, PLAIN):
            return buffer
        touched += [index for name, index in places(stmt) if name == buffer.name]
    if not touched:
        return buffer
    shape = list(buffer.shape)
    for dimension, subscripts in enumerate(zip(*touched, strict=True)):
        if all(isinstance(i, Const) for i in subscripts):
            shape[dimension] = 1 + max(i.value for i in subscripts if isinstance(i, Const))
    return replace(buffer, shape=tuple(shape))
