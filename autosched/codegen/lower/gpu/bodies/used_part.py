"""The part of a buffer that statements touch: what registers hold may leave one column of a tile to memory.

    S f32[128, 64], in which S[i, 0] alone is written and read    →    S f32[128, 1]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from autosched.codegen.tree.kernel import Assign, Branch, Buffer, Chosen, Stmt, statements, with_bodies
from autosched.codegen.tree.uses import places, used_buffers
from autosched.ir.value import Index
from autosched.logic import Const

PLAIN = Assign | Branch | Chosen
"""Statements of which `places` tells every element that they touch."""


Touched = Mapping[str, list[tuple[Index, ...]] | None]
"""The subscripts at which statements touch each buffer; None where one of them does not tell."""


def touched(body: tuple[Stmt, ...]) -> Touched:
    """Of all statements of a body."""
    found: dict[str, list[tuple[Index, ...]] | None] = {}
    for stmt in statements(body):
        if isinstance(stmt, PLAIN):
            for name, index in places(stmt):
                if (known := found.setdefault(name, [])) is not None:
                    known.append(index)
        else:
            own = with_bodies(stmt, lambda _: ()) or stmt
            found |= dict.fromkeys(used_buffers((own,)))
    return found


def used_part(buffer: Buffer, at: Touched) -> Buffer:
    """The buffer, no longer than the statements need it in dimensions whose subscripts are all numbers."""
    known = at.get(buffer.name)
    if not known:
        return buffer
    shape = list(buffer.shape)
    for dimension, subscripts in enumerate(zip(*known, strict=True)):
        if all(isinstance(i, Const) for i in subscripts):
            shape[dimension] = 1 + max(i.value for i in subscripts if isinstance(i, Const))
    return replace(buffer, shape=tuple(shape))
