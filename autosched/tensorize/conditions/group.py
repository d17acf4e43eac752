"""Proves a `GroupRule`, the exact predicate on one operand, by trying all elements."""

from __future__ import annotations

from itertools import product

import numpy as np

from autosched.ir.dtypes import DTYPES
from autosched.ir.oracle import numerics
from autosched.ir.value import Arith, Literal, Read, Value, map_value
from autosched.logic import Int
from autosched.tensorize.body.arrays import evaluate
from autosched.tensorize.body.counterexample import leaves
from autosched.tensorize.conditions.rule import GroupRule
from autosched.tensorize.conditions.weakest import ClampedSum
from autosched.tensorize.reduction.update import Clamp, Update

MOST_VALUES = 1 << 20
"""Combinations of elements that are tried to prove a rule."""


def group_rule(update: Update, group: ClampedSum, clamp: Clamp, tensor: str) -> GroupRule | None:
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


def _proved(rule: GroupRule, group: ClampedSum, others: list[Read]) -> bool:
    """Whether `low` and `high` bound the term for every combination of elements, and no sum of them wraps."""
    ranges = [group.whole[r.tensor] for r in (rule.read, *others)]
    if np.prod([float(r.high - r.low + 1) for r in ranges]) > MOST_VALUES:
        return False
    grid = np.meshgrid(*(np.arange(r.low, r.high + 1) for r in ranges), indexing="ij", sparse=True)
    env = {r: values.astype(numerics.container(r.dtype)) for r, values in zip((rule.read, *others), grid, strict=True)}
    term, low, high = (np.asarray(evaluate(v, env), np.int64) for v in (group.term, rule.low, rule.high))
    widest = max(len(g) for g in rule.groups) * max(abs(int(low.min())), abs(int(high.max())))
    return bool((low <= term).all() and (term <= high).all()) and widest < 2**31
