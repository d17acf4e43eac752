"""The exact predicate on one operand: what each group of neighbours may add up to, whatever the other operands hold.

It is weaker than any range of all elements, and dearer to look at: a check of constant data affords it, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from autosched.ir.dtypes import DTYPES
from autosched.ir.oracle import numerics
from autosched.ir.value import Arith, Literal, Read, Value, map_value
from autosched.logic import Int
from autosched.tensorize.body.arrays import evaluate
from autosched.tensorize.body.counterexample import leaves
from autosched.tensorize.conditions.weakest import Group
from autosched.tensorize.reduction.update import Clamp, Update

MOST_VALUES = 1 << 20
"""Combinations of elements that are tried to prove a rule."""


@dataclass(frozen=True)
class GroupRule:
    """Within each tile along the instruction's `axis`, the `low` values of each of `groups` (coordinates) sum to at
    least `limits[0]` and the `high` values to at most `limits[1]`. Both are values of `read`, an element of one tensor
    in the program's axes: the least and the greatest that its term may add, zero included."""

    read: Read
    axis: str
    groups: tuple[tuple[int, ...], ...]
    limits: tuple[int, int]
    low: Value
    high: Value

    def __str__(self) -> str:
        count = len(self.groups[0])
        return f"no {count} neighbours of {self.read.tensor} can leave {self.limits[0]} to {self.limits[1]}"


def group_rule(update: Update, group: Group, clamp: Clamp, tensor: str) -> GroupRule | None:
    """The rule on `tensor` alone, proved by trying all elements; None where these are too many, or extremes of the
    other operands are not where the term is extreme."""
    reads = [r for r in leaves(group.term) if isinstance(r, Read)]
    own = [r for r in reads if r.tensor == tensor]
    plain = len(reads) == len(leaves(group.term)) and group.term.dtype == DTYPES["s32"]
    if not plain or len(own) != 1 or not clamp.groups or not all(isinstance(i, Int) for i in own[0].index):
        return None
    others = [r for r in reads if r.tensor != tensor]
    spans = [group.whole[r.tensor] for r in others]
    ends = product(*((s.low, s.high) for s in spans))
    corners = [_with(group.term, dict(zip(others, values, strict=True))) for values in ends]
    low: Value = Literal(0, group.term.dtype)
    high: Value = low
    for corner in corners:
        low, high = Arith("min", low, corner, group.term.dtype), Arith("max", high, corner, group.term.dtype)
    rule = GroupRule(own[0], clamp.axis, clamp.groups, group.limits, low, high)
    return rule if _proved(rule, group, others) else None


def _with(term: Value, elements: dict[Read, int]) -> Value:
    """The term with some elements known."""

    def known(v: Value) -> Value:
        return Literal(elements[v], v.dtype) if isinstance(v, Read) and v in elements else v

    return map_value(term, known)


def _proved(rule: GroupRule, group: Group, others: list[Read]) -> bool:
    """Whether `low` and `high` bound the term for every combination of elements, and no sum of them wraps."""
    ranges = [group.whole[r.tensor] for r in (rule.read, *others)]
    if np.prod([float(r.high - r.low + 1) for r in ranges]) > MOST_VALUES:
        return False
    grid = np.meshgrid(*(np.arange(r.low, r.high + 1) for r in ranges), indexing="ij", sparse=True)
    env = {r: values.astype(numerics.container(r.dtype)) for r, values in zip((rule.read, *others), grid, strict=True)}
    term, low, high = (np.asarray(evaluate(v, env), np.int64) for v in (group.term, rule.low, rule.high))
    widest = max(len(g) for g in rule.groups) * max(abs(int(low.min())), abs(int(high.max())))
    return bool((low <= term).all() and (term <= high).all()) and widest < 2**31


__all__ = ["GroupRule", "group_rule"]
