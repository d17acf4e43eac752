"""What an instruction asks of an operand whose neighbours must differ (the two that are kept of each four in 2:4
sparsity): the program states it, or constant data show it."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from autosched.ir.data import known_values
from autosched.ir.nodes import Assume
from autosched.ir.oracle.assumed import integer_range
from autosched.ir.oracle.distinct import is_distinct
from autosched.ir.value import Read
from autosched.logic import Int, evaluate, free_vars
from autosched.tensorize.addresses.axes import Assignment
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.intervals import Range
from autosched.tensorize.conditions.weakest import range_condition
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.low_bits import low_bits
from autosched.tensorize.match_types import Condition, Obligation, Reason

MOST_POINTS = 1 << 22
"""Of the loops along which neighbours lie."""
Asked = tuple[tuple[Obligation, ...], tuple[Condition, ...]]


def asked_to_differ(
    facts: StageFacts, intrinsic: Intrinsic, assignment: Assignment, roles: Mapping[str, Read]
) -> Asked | Reason:
    """What is known of the elements that must differ, and the conditions that are left; a Reason where they are no
    neighbours in the program."""
    known: list[Obligation] = []
    left: list[Condition] = []
    for operand in intrinsic.operands.values():
        if not operand.distinct or operand.name not in roles:
            continue
        n, read = operand.distinct, roles[operand.name]
        axis = intrinsic.operand_axes[operand.name][-1]
        fused = assignment.axes.get(axis or "", ())
        if axis is None or not _neighbours(facts, read, fused, n):
            said = f"{intrinsic.name} asks each {n} of {operand.name} to differ: no neighbours in {read.tensor}"
            fix = f"keep them beside each other along the last dimension of {read.tensor}"
            return Reason("BODY_DIFFERS", said, fix=fix, distance=0)
        written = read.tensor in facts.program.written
        least, most = read.dtype.limits if written else integer_range(facts.program, read.tensor)
        given = known_values(facts.program, read.tensor) if facts.program.data else None
        bits = min(operand.field_bits, low_bits(intrinsic.stage.assign.value, operand.name, operand.dtype.bits))
        if given is not None and given.values is not None:
            least, most = int(given.values.min()), int(given.values.max())
        if least < 0 or most >= 1 << bits:
            left.append(range_condition(read.tensor, Range(0, (1 << bits) - 1), True))
        text, differ = f"distinct({read.tensor}, {n})", f"each {n} neighbours of {read.tensor} differ"
        stated = (a.distinct for a in facts.program.lasting_assumptions if a.subject == read.tensor)
        if any(d and d % n == 0 for d in stated):
            known.append(Obligation("body", f"{differ}, as assumed", "structure"))
        elif given is not None and given.values is not None and is_distinct(given.values, n):
            known.append(Obligation("body", f"{differ}, by its values", "exhaustion"))
        else:
            left.append(Condition("distinct", text, True, assume=Assume(read.tensor, distinct=n)))
    return tuple(known), tuple(left)


def _neighbours(facts: StageFacts, read: Read, fused: tuple[str, ...], n: int) -> bool:
    """Whether each n points that follow each other along fused axes, from the first on, mean n neighbours of a tensor's
    last dimension, from a multiple of n on."""
    parts = [p for p in read.index if isinstance(p, Int)]
    extents = [facts.extents[y] for y in fused]
    if len(parts) != len(read.index) or not fused or prod(extents) > MOST_POINTS or prod(extents) % n:
        return False
    mixed = any(free_vars(p) & set(fused) and not free_vars(p) <= set(fused) for p in parts)
    if mixed or not set(fused) <= facts.exact:
        return False
    grid = np.meshgrid(*(np.arange(e) + facts.ranges[y][0] for y, e in zip(fused, extents, strict=True)), indexing="ij")
    env = {y: of.reshape(-1, n) for y, of in zip(fused, grid, strict=True)}
    others = {v: 0 for p in parts for v in free_vars(p) if v not in env}
    *outer, last = (np.broadcast_to(evaluate(p, env | others), env[fused[0]].shape) for p in parts)
    beside = np.sort(last, axis=1) == last.min(axis=1, keepdims=True) + np.arange(n)
    same = all((o == o[:, :1]).all() for o in outer)
    return bool(beside.all() and (last.min(axis=1) % n == 0).all() and same)
