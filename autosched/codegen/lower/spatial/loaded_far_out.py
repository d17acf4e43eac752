"""Loads of a state move out of the loops in which it stays the same: one load serves all calls inside.

A load moves in front of a loop if nothing in it changes with the loop, nothing else in the loop fills the state or
changes what the load reads, and no call before it reads what the state held until then.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from autosched.codegen.analysis.held_states import written
from autosched.codegen.tree.kernel import Assign, For, If, IntrinsicCall, Stmt, statements
from autosched.codegen.tree.uses import used_variables
from autosched.ir.value import reads


def loaded_far_out(body: tuple[Stmt, ...], states: Set[str]) -> tuple[Stmt, ...]:
    """The statements with the loads of these buffers as far out as they stay right."""
    found: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, If):
            found.append(replace(stmt, body=loaded_far_out(stmt.body, states)))
        elif isinstance(stmt, For):
            inside = list(loaded_far_out(stmt.body, states))
            while (load := next((s for s in inside if _stays(s, stmt, inside, states)), None)) is not None:
                inside.remove(load)
                found.append(load)
            found.append(replace(stmt, body=tuple(inside)))
        else:
            found.append(stmt)
    return tuple(found)


def _stays(load: Stmt, loop: For, body: list[Stmt], states: Set[str]) -> bool:
    """Whether a statement of a loop's body is a load that the loop may follow."""
    if not (isinstance(load, Assign) and load.buffer in states) or loop.var in used_variables((load,)):
        return False
    place = body.index(load)
    before, others = tuple(body[:place]), tuple(s for s in body if s is not load)
    read = {r.tensor for r in reads(load.value)}
    return not written(others) & {load.buffer, *read} and load.buffer not in called(before)


def called(body: tuple[Stmt, ...]) -> set[str]:
    """Buffers that calls take operands from."""
    calls = (s for s in statements(body) if isinstance(s, IntrinsicCall))
    return {ref.buffer for call in calls for ref in call.operands.values()}
