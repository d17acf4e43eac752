"""A GPU's lane reads registers of its own warp only: shuffles go no farther, and nothing else reads another lane's."""

from __future__ import annotations

import numpy as np

from autosched.backends import CUDA
from autosched.codegen.analysis.held_registers import HeldRegisters
from autosched.codegen.tree.kernel import Assign
from autosched.ir.value import Read, walk
from autosched.logic import Int, Var, evaluate, free_vars

WARP = CUDA.warp


def across_warps(stmt: Assign, held: HeldRegisters) -> str | None:
    """What is wrong with an assignment in which a lane reads an element that a lane of another warp holds, as far as
    the loop tree says who holds what; None where nothing is."""
    for read in (v for v in walk(stmt.value) if isinstance(v, Read)):
        if held.kernel.buffers[read.tensor].scope != "register":
            continue
        holders, last = held.holders(read.tensor), read.index[-1]
        lane = stmt.lane.var if stmt.lane else ""
        if holders is None or holders.max() < WARP or not isinstance(last, Int) or free_vars(last) - {lane}:
            continue  # one warp holds it, or a loop's variable says which element it is
        width = stmt.lane.width if stmt.lane else 1
        elements = np.broadcast_to(np.asarray(evaluate(last, {lane: np.arange(width)})), (width,))
        readers = _readers(stmt, held, int(holders.max()) + 1)
        if readers is not None and (holders[elements] // WARP != readers // WARP).any():
            return f"{read.tensor} is read from another warp's registers; a lane reads those of its own {WARP} only"
    return None


def _readers(stmt: Assign, held: HeldRegisters, lanes: int) -> np.ndarray | None:
    """The lanes that execute the assignment, one for each of its elements (all in turn, where each reads the same
    one); None where the loop tree does not say."""
    if stmt.lane is None:
        return np.arange(lanes)[:, None]
    if stmt.index[-1] == Var(stmt.lane.var) and held.kernel.buffers[stmt.buffer].scope == "register":
        found = held.holders(stmt.buffer)
        if found is not None:
            return found[: stmt.lane.width]
    return np.arange(lanes) if stmt.lane.width == lanes else None
