"""`fitting`: whether the answers in a store fit the spaces of these plans. A store is a file, which others may have
written."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from autosched.search.space.answer_cache import AnswerCache, Column
from autosched.tiling.plans.plan import Plan

_NUMBERED = re.compile(r"plan (\d+)")


def fitting(kept: AnswerCache, plans: Sequence[Plan]) -> AnswerCache:
    """`kept`, or nothing where an answer has other columns, lengths, plans or rows than the plans' spaces allow."""
    return kept if all(_fits(name, kept, plans) for name in kept.names) else AnswerCache()


def _fits(name: str, kept: AnswerCache, plans: Sequence[Plan]) -> bool:
    answer = kept.find(name)
    assert answer is not None
    found = _NUMBERED.search(name)
    number = int(found[1]) if found else None
    if number is not None and number >= len(plans):
        return False
    kind, first = name.split()[0].rstrip(","), answer[0] if answer else np.zeros(0)
    if kind in ("best", "near"):
        rows = answer[1:] if kind == "best" else answer
        return (kind == "near" or (len(first) == 1 and _within(first, 1 << 32))) and _rows(rows, plans)
    if kind == "some" and number is not None and len(answer) == 2:
        return len(first) == len(answer[1]) > 0 and _within(first, plans[number].space.size) and _seconds(answer[1])
    if len(answer) != 1:
        return False
    if kind == "plausible":
        return _within(first, len(plans))
    if kind == "bound":
        return _seconds(first)
    if kind != "plan" or number is None:
        return False
    if name.endswith("laid out"):
        rules = dict.fromkeys(rule.name for rule in plans[number].space.rules)
        return len(first) == 4 + len(rules) and first.dtype.kind == "i" and bool((first >= -1).all())
    laid = kept.find(f"plan {number}, laid out")
    listed = laid is not None and len(laid) == 1 and len(laid[0]) > 3 and len(first) == laid[0][3]
    return bool(listed) and _within(first, plans[number].space.size)


def _rows(columns: Sequence[Column], plans: Sequence[Plan]) -> bool:
    """Whether the columns are plans, rows of these and seconds."""
    if len(columns) != 3 or len({len(column) for column in columns}) != 1 or not len(columns[0]):
        return False
    plan, ids, seconds = columns
    if not _within(plan, len(plans)) or not _seconds(seconds):
        return False
    sizes = np.array([min(p.space.size, np.iinfo(np.int64).max) for p in plans], np.int64)
    return ids.dtype.kind == "i" and bool(((ids >= 0) & (ids < sizes[plan])).all())


def _within(column: Column, end: int) -> bool:
    return column.dtype.kind == "i" and bool(((column >= 0) & (column < min(end, np.iinfo(np.int64).max))).all())


def _seconds(column: Column) -> bool:
    return column.dtype.kind == "f" and not bool(np.isnan(column).any()) and bool((column >= 0).all())
