"""Reductions that a row computes only where the data say so: each row asks once, before its loops.

Conditions are asked in the order of the text, those on axes too: `if i < 3: if F[i] != 0:` reads no F[3].
"""

from __future__ import annotations

from dataclasses import replace

from autosched.ir.nodes import Stage
from autosched.ir.value import Condition, Literal, Logical, Value, is_plain, is_value, reads, walk
from autosched.ir.variables import value_vars
from autosched.logic import Bool, Const, free_vars


def asked_first(stage: Stage) -> tuple[Condition, ...]:
    """The guards of an updating reduction that its axes do not change, up to the last one on data of those that come
    before any other guard: a row where one fails keeps what it has. None where a sum may have no term, which would not
    ask."""
    bounds = [b for a in stage.reduction for b in (a.lower, a.upper)]
    runs = all(isinstance(b, Const) for b in bounds) and all(a.extent > 0 for a in stage.reduction)
    if stage.init is not None or not stage.reduction or not runs:
        return ()
    inner = {a.name for a in stage.reduction}
    found: list[Condition] = []
    for guard in stage.guards:
        if isinstance(guard, Bool):
            if free_vars(guard) & inner:
                break
        elif value_vars(guard) & inner or not _is_plain(guard, stage):
            break
        found.append(guard)
    while found and not is_value(found[-1]):
        found.pop()
    return tuple(found)


def asked_once(stage: Stage) -> tuple[Value, ...]:
    """Those of them on data."""
    return tuple(g for g in asked_first(stage) if is_value(g))


def _is_plain(guard: Value, stage: Stage) -> bool:
    """Whether it reads nothing of what the stage writes, and no part of it keeps another from being read outside its
    tensor."""
    if any(isinstance(v, Logical) and not all(map(is_value, v.parts)) for v in walk(guard)):
        return False
    found = reads(guard)
    gathered = any(not is_plain(r.index) for r in found)
    joined = any(isinstance(v, Logical) for v in walk(guard))
    return all(r.tensor != stage.assign.tensor for r in found) and not (gathered and joined)


def looked_at(stage: Stage) -> Stage:
    """A stage of such conditions as rows see it where they fail: what is computed behind them is left out."""
    if not asked_once(stage):
        return stage
    assign = replace(stage.assign, value=Literal(0, stage.assign.value.dtype))
    return replace(stage, axes=stage.spatial, assign=assign)
