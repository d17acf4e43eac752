"""How much a program computes: scalar operations of one run, two a multiply-add, integers too."""

from __future__ import annotations

from math import prod

import numpy as np

from autosched.ir.nodes import Axis, Stage
from autosched.ir.program import Program
from autosched.ir.value import Arith, Call, Unary, walk
from autosched.logic import TRUE, Bool, Const, all_of, conjuncts, evaluate, free_vars, interval

MOST_POINTS = 1 << 22
"""Points of the axes that guards tie together, up to which those inside are counted; beyond, all are."""


def operations(program: Program) -> float:
    """Arithmetic operations and function calls over all iterations that guards on indices let happen; casts, selections
    and the guards themselves are not counted.

    Loops whose bounds depend on outer axes count at their box; where a size is symbolic, at its upper end.
    """
    ranges: dict[str, tuple[int, int]] = dict(program.symbolic)
    total = 0.0
    for stage in program.stages:
        box = dict(ranges)
        counted = sum(isinstance(node, Arith | Call | Unary) for node in walk(stage.assign.value))
        each = counted + (stage.assign.op != "=")
        total += each * prod(most_trips(a, box) for a in stage.axes) * _share(stage, box)
    return total


def _share(stage: Stage, box: dict[str, tuple[int, int]]) -> float:
    """The part of a stage's points at which its guards hold, as far as they speak of axes alone."""
    groups: list[tuple[frozenset[str], Bool]] = []
    for part in conjuncts(all_of(*(g for g in stage.guards if isinstance(g, Bool)))):
        names, joined = frozenset(free_vars(part)), part
        for other in [g for g in groups if g[0] & names]:
            groups.remove(other)
            names, joined = names | other[0], all_of(joined, other[1])
        groups.append((names, joined))
    share = 1.0
    for names, formula in groups:
        sizes = [box[n][1] - box[n][0] + 1 for n in sorted(names)] if names <= box.keys() else [MOST_POINTS + 1]
        if formula != TRUE and 0 < prod(sizes) <= MOST_POINTS:
            steps = (np.arange(box[n][0], box[n][1] + 1) for n in sorted(names))
            grid = np.meshgrid(*steps, indexing="ij", sparse=True)
            held = evaluate(formula, dict(zip(sorted(names), grid, strict=True)))
            share *= float(np.mean(np.broadcast_to(held, sizes)))
    return share


def most_trips(axis: Axis, box: dict[str, tuple[int, int]]) -> int:
    """The most trips that a loop makes inside others, whose ranges `box` holds; the loop's own is added to it."""
    if isinstance(axis.lower, Const) and isinstance(axis.upper, Const):
        low, high = axis.lower.value, axis.upper.value - 1
    else:
        low, high = interval(axis.lower, box)[0], interval(axis.upper, box)[1] - 1
    box[axis.name] = low, max(low, high)
    return max(0, high - low + 1)
