"""Fragments that are filled from other fragments of the same lanes: what a product hands on to the next.

The loop tree says which element of which fragment is read, for each element that is filled. Here it becomes the lane's
own registers, one by one. Every lane has to find all that it reads in registers of its own, and in the same ones as the
others; everything else is refused.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from autosched.codegen.cuda.scope import CudaScope
from autosched.codegen.tree.kernel import Assign
from autosched.errors import UsageError
from autosched.ir.value import Read, Value, map_value, walk
from autosched.ir.variables import value_vars
from autosched.logic import Const, Int, Var, evaluate, free_vars, where
from autosched.logic.walk import substitute_bool, substitute_int
from autosched.tiling.plans.warp_rows import LANES, Numbers, owners

MOST_TRIPS = 4096
"""Of the loops whose variables number registers."""


def from_fragments(scope: CudaScope, stmt: Assign) -> list[Assign] | None:
    """The statement as one for each of a lane's elements, without lanes; None where it reads no fragment but at its own
    lane. UsageError for an element that another lane has."""
    if stmt.lane is None or stmt.buffer not in scope.layouts:
        return None
    lane = stmt.lane.var
    if not any(_elsewhere(scope, n, lane) for n in walk(stmt.value)):
        return None
    layout = scope.layouts[stmt.buffer]
    if layout.operand is None or layout.operand.fragment is None or layout.lanes != LANES:
        raise UsageError(f"{stmt.buffer} is filled from fragments, and its own has no map of lanes")
    _, own = owners(layout.operand)
    made = []
    for v in range(layout.held):
        mine = np.flatnonzero(own == v)  # by element; every lane has one
        lanes = owners(layout.operand)[0][mine]

        def placed(node: Value, mine: Numbers = mine, lanes: Numbers = lanes) -> Value:
            return _own(scope, node, lane, mine, lanes) if _elsewhere(scope, node, lane) else node

        value = map_value(stmt.value, placed)
        if lane in value_vars(value):
            raise UsageError(f"{stmt.buffer} is filled from fragments and from other places")
        valid = substitute_bool(stmt.valid, {lane: layout.element(Const(v))})
        made.append(Assign(stmt.buffer, (*stmt.index[:-1], Const(v)), value, valid=valid))
    return made


def _elsewhere(scope: CudaScope, node: Value, lane: str) -> bool:
    """Whether it is an element of a fragment at another place than the lane's own."""
    if not isinstance(node, Read) or node.tensor not in scope.layouts:
        return False
    layout = scope.layouts[node.tensor]
    return layout.operand is not None and layout.lanes > 1 and node.index[-1] != Var(lane)


def _own(scope: CudaScope, read: Value, lane: str, mine: Numbers, lanes: Numbers) -> Read:
    """What all lanes read, each its element of `mine`, in their own registers."""
    assert isinstance(read, Read)
    source = scope.layouts[read.tensor]
    if source.operand is None or source.operand.fragment is None:
        raise UsageError(f"{read.tensor}: its fragment has no map of lanes")
    holder, own = owners(source.operand)
    *outer, last = (i for i in read.index if isinstance(i, Int))
    varying = sorted(free_vars(last).union(*map(free_vars, outer)) - {lane} - set(scope.workers))
    trips = list(product(*(range(scope.ranges[n][0], scope.ranges[n][1] + 1) for n in varying)))
    if len(trips) > MOST_TRIPS:
        raise UsageError(f"{read.tensor}: {len(trips)} trips number its registers")
    seen: dict[int, int] = {}  # the first lane's elements, and which of its registers they are
    for trip in trips:
        env: dict[str, Any] = dict(zip(varying, trip, strict=True)) | dict.fromkeys(scope.workers, 0) | {lane: mine}
        element = np.broadcast_to(np.asarray(evaluate(last, env)), mine.shape)
        if element.min() < 0 or element.max() >= len(holder) or (holder[element] != lanes).any():
            raise UsageError(f"{read.tensor} is read where another lane holds it")
        for numbers in (own[element], *(np.asarray(evaluate(part, env)) for part in outer)):
            if (numbers != numbers.flat[0]).any():
                raise UsageError(f"{read.tensor}: lanes read different registers")
        seen[int(element[lanes == 0][0])] = int(own[element][0])
    # What holds for one lane holds for all.
    first = {lane: Const(int(mine[lanes == 0][0]))}
    (_, register), *others = seen.items()
    number: Int = Const(register)
    for place, register in others:
        number = where(substitute_int(last, first).eq(place), register, number)
    return Read(read.tensor, (*(substitute_int(part, first) for part in outer), number), read.dtype)
