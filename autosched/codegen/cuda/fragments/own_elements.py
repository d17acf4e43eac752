"""Fragments that are filled from other fragments of the same lanes: what a product hands on to the next.

The loop tree says which element of which fragment is read, for each element that is filled. Here it becomes the lane's
own registers, one by one. Every lane has to find all that it reads in registers of its own, and in the same ones as the
others; everything else is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from autosched.codegen.cuda.fragments.fragments import Layout
from autosched.codegen.cuda.scope import CudaScope
from autosched.codegen.tree.kernel import Assign
from autosched.errors import UsageError
from autosched.ir.value import Read, Value, map_value, walk
from autosched.logic import Const, Int, Var, evaluate, free_vars, where
from autosched.logic.walk import substitute_int
from autosched.tensorize.fragment import Numbers

MOST_TRIPS = 4096
"""Of the loops whose variables number registers."""


def from_fragments(scope: CudaScope, stmt: Assign) -> tuple[Layout, list[Assign]] | None:
    """The statement once for each of a lane's elements `v`, in order; it reads fragments of other places by the numbers
    of the lane's own elements. None where it reads no fragment but at its own lane. The layout says whose element `v`
    is: that of the register which the statement fills, or else of one that it reads at its own lane. UsageError for an
    element that another lane has."""
    if stmt.lane is None:
        return None
    lane = stmt.lane.var
    reads = [n for n in walk(stmt.value) if isinstance(n, Read)]
    if not any(_elsewhere(scope, n, lane) for n in reads):
        return None
    home = _home(scope, stmt)
    if home is None or not home.mapped:
        raise UsageError(f"{stmt.buffer} is filled from fragments, and no register says which lane has what of it")
    holder, own = home.owners_of_elements
    for name in {n.tensor for n in reads if n.index[-1] == Var(lane)} & scope.layouts.keys():
        beside = scope.layouts[name]
        if not beside.mapped or not all(map(np.array_equal, beside.owners_of_elements, (holder, own))):
            raise UsageError(f"{name} does not lie over its lanes like what it is computed with")
    made = []
    for v in range(home.held):
        mine = np.flatnonzero(own == v)  # by element; every lane has one

        def placed(node: Value, mine: Numbers = mine) -> Value:
            return _own(scope, node, lane, mine, holder[mine]) if _elsewhere(scope, node, lane) else node

        made.append(replace(stmt, value=map_value(stmt.value, placed)))
    return home, made


def _home(scope: CudaScope, stmt: Assign) -> Layout | None:
    """The register at whose elements the lanes of an assignment are."""
    assert stmt.lane is not None
    reads = (n for n in walk(stmt.value) if isinstance(n, Read) and n.index[-1] == Var(stmt.lane.var))
    return next((scope.layouts[n] for n in (stmt.buffer, *(r.tensor for r in reads)) if n in scope.layouts), None)


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
    if not source.mapped:
        raise UsageError(f"{read.tensor}: its fragment has no map of lanes")
    holder, own = source.owners_of_elements
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
    number = _numbered(substitute_int(last, first), seen)
    return Read(read.tensor, (*(substitute_int(part, first) for part in outer), number), read.dtype)


def _numbered(element: Int, registers: Mapping[int, int]) -> Int:
    """The register of an element: so many to a step, where that is how they are numbered."""
    (low, first), *others = sorted(registers.items())
    if others:
        (place, register), *_ = others
        apart, step = place - low, register - first
        even = not any((e - low) % apart for e, _ in others)
        if even and all((e - low) * step == (r - first) * apart for e, r in others):
            return (element - low) // apart * step + first
    number: Int = Const(first)
    for place, register in others:
        number = where(element.eq(place), register, number)
    return number
