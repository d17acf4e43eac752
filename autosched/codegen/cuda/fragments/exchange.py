"""What one lane of a warp reads of another's registers: shuffles, told from where the loop tree says an element lies.

Register buffers with a `run` are dealt out in turn, so that whose an element is can be computed for every lane. An
assignment that only copies from the partner at a distance, or from one lane, is a shuffle; subscripts that stay within
each lane become the numbers of its own elements; everything else is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from autosched.codegen.cuda.fragments.fragments import Layout
from autosched.codegen.cuda.grids import WARP
from autosched.codegen.cuda.scope import CudaScope
from autosched.codegen.tree.kernel import Assign
from autosched.errors import UsageError
from autosched.ir.value import Read, Value, map_value, walk
from autosched.logic import TRUE, Const, Int, Var, evaluate, free_vars

Numbers = npt.NDArray[np.int64]


def spread(scope: CudaScope, name: str) -> Layout | None:
    """The layout of a register that lanes hold in turn; None for everything else."""
    layout = scope.layouts.get(name)
    return layout if layout is not None and layout.buffer.elements_per_thread and layout.lanes > 1 else None


def shuffled(scope: CudaScope, stmt: Assign) -> str | None:
    """The statement as a shuffle; None where it is none."""
    value = stmt.value
    if not isinstance(value, Read) or stmt.buffer not in scope.layouts:
        return None
    source = spread(scope, value.tensor)
    if source is None:
        return None
    last = value.index[-1]
    assert isinstance(last, Int)
    target = scope.layouts[stmt.buffer]
    if stmt.lane is None:
        if free_vars(last):
            return None
        owner, own = _whose(source, np.asarray([int(evaluate(last, {}))]))
        number = int(owner[0]) if source.lanes <= WARP else WARP  # of_lane is of each warp's own lane
        text = _of(scope.register(source, value.index, Const(int(own[0]))), "lane", number, value)
        final = stmt.index[-1]
    else:
        lanes = np.arange(stmt.lane.width)
        if stmt.lane.width != source.lanes or last == Var(stmt.lane.var) or free_vars(last) - {stmt.lane.var}:
            return None
        owner, own = _whose(source, np.asarray(evaluate(last, {stmt.lane.var: lanes})))
        distance = int(owner[0])
        if distance == 0 or (owner != (lanes ^ distance)).any() or (own != own[0]).any():
            return None
        text = _of(scope.register(source, value.index, Const(int(own[0]))), "partner", distance, value)
        final = Const(0)
    scope.used.headers.add("lanes")
    return f"{scope.register(target, stmt.index, final)} = {text};"


def across_fragment(scope: CudaScope, stmt: Assign) -> list[str] | None:
    """A copy from other places of a fragment as shuffles, one for each of a lane's elements; None where it is none, or
    no lane reads another's. UsageError where lanes read from different distances, or different registers."""
    value = stmt.value
    if stmt.lane is None or not isinstance(value, Read) or stmt.valid != TRUE:
        return None
    source, target = scope.layouts.get(value.tensor), scope.layouts.get(stmt.buffer)
    last = value.index[-1]
    if source is None or target is None or not isinstance(last, Int) or free_vars(last) != {stmt.lane.var}:
        return None
    if last == Var(stmt.lane.var) or not (_mapped(source) and _mapped(target)):
        return None
    holder, held = source.owners_of_elements
    lane, own = target.owners_of_elements
    if not (stmt.lane.width == len(lane) and stmt.index[-1] == Var(stmt.lane.var)):
        return None
    wanted = np.asarray(evaluate(last, {stmt.lane.var: np.arange(len(lane))}))
    if (holder[wanted] == lane).all():
        return None
    lines: list[str] = []
    asked: dict[str, str] = {}
    for number in range(target.held):
        mine = np.flatnonzero(own == number)
        distance, registers = holder[wanted[mine]] ^ lane[mine], held[wanted[mine]]
        if (distance != distance[0]).any() or (registers != registers[0]).any():
            raise UsageError(f"{value.tensor} is read where lanes have it at different distances")
        text = scope.register(source, value.index, Const(int(registers[0])))
        place = scope.register(target, stmt.index, Const(number))
        if distance[0]:
            scope.used.headers.add("lanes")
            text = _of(text, "partner", int(distance[0]), value)
        lines.append(f"{place} = {asked.get(text, text)};")
        asked.setdefault(text, place)
    return lines


def _of(register: str, whose: str, number: int, value: Read) -> str:
    """A shuffle. UsageError where the other lane is in another warp."""
    if number >= WARP:
        raise UsageError(f"{value.tensor} is read from another warp's registers; a shuffle stays within {WARP} lanes")
    return f"of_{whose}({register}, {number})"


def _mapped(layout: Layout) -> bool:
    """Whether lanes hold a fragment of which the map is known, each element in a register of its own."""
    return layout.mapped and not layout.packed


def settled(scope: CudaScope, stmt: Assign) -> Assign:
    """The statement with each lane's own elements by number. UsageError for an element of another lane."""
    if not any(spread(scope, r.tensor) for r in _reads(stmt.value)):
        return stmt

    def own(node: Value) -> Value:
        layout = spread(scope, node.tensor) if isinstance(node, Read) else None
        if layout is None or not isinstance(node, Read) or (stmt.lane and node.index[-1] == Var(stmt.lane.var)):
            return node
        last = node.index[-1]
        if stmt.lane is not None and isinstance(last, Int) and free_vars(last) <= {stmt.lane.var}:
            lanes = np.arange(stmt.lane.width)
            owner, number = _whose(layout, np.asarray(evaluate(last, {stmt.lane.var: lanes})))
            if (owner == lanes).all() and (number == number[0]).all():
                return replace(node, index=(*node.index[:-1], Const(int(number[0]))))
        raise UsageError(f"{node.tensor} is read where another lane holds it, in an assignment that computes")

    return replace(stmt, value=map_value(stmt.value, own))


def _whose(layout: Layout, elements: Numbers) -> tuple[Numbers, Numbers]:
    """The lane that holds each element, and its number among that lane's."""
    run, lanes = layout.run, layout.lanes
    return elements // run % lanes, elements // (run * lanes) * run + elements % run


def _reads(value: Value) -> Iterator[Read]:
    return (n for n in walk(value) if isinstance(n, Read))
