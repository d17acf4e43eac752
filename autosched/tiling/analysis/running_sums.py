"""Running sums: a triangular reduction whose terms do not depend on the axis that bounds it goes on from its neighbour.

for i: S[i] = 0; for j in range(i + 1): S[i] += X[j]     s = 0; for i: s += X[i]; S[i] = s

Each sum has the terms of the one before and then its own, in the same order: the bits are the same, of floats too.
"""

from __future__ import annotations

from autosched.ir.nodes import Stage
from autosched.ir.variables import value_vars
from autosched.logic import Const, affine, free_vars


def running_axis(stage: Stage) -> str | None:
    """The spatial axis along which the upper bound of the stage's only reduction does not fall, and nothing else
    moves but the element written; None where there is none.

    The initial value is there for every sum; a condition would take terms of its own from each.
    """
    if len(stage.reduction) != 1 or stage.init is None or stage.guards or stage.assign.op == "=":
        return None
    (summed,) = stage.reduction
    bound = affine(summed.upper)
    if bound is None:
        return None
    others = frozenset[str]().union(*(free_vars(a.lower) | free_vars(a.upper) for a in stage.spatial))
    fixed = value_vars(stage.assign.value) | value_vars(stage.init) | free_vars(summed.lower) | others
    for axis in reversed(stage.spatial):
        rises = bound.coefficient(axis.name) > 0 and axis.name not in fixed
        if rises and isinstance(axis.lower, Const) and isinstance(axis.upper, Const) and axis.extent > 1:
            return axis.name
    return None
