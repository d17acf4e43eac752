"""Operands that matching takes in parts, as registers hold them: of an instruction that selects elements of an operand.

    c[i, j] += a[i, k] * b[k // 2, e[i, k] & 3, j]        b_0[k // 2, j] … b_3[k // 2, j] in matching
    b_0: B[4 * (q // 2), j], b_1: B[4 * (q // 2) + 1, j], …     b: B[4 * (q // 2) + n, j], n the number of the part

The parts of an operand are elements of one tensor, at equal steps along each of its dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import TypeVar

import numpy as np

from autosched.ir.value import Read
from autosched.logic import Int, Var, evaluate, free_vars
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Mapping

Said = TypeVar("Said")
MOST_POINTS = 1 << 20
"""Points of the loops that are looked at, to see that parts lie at equal steps."""


def as_issued(mapping: Mapping, box: MappingOf[str, tuple[int, int]]) -> Mapping:
    """The mapping on the operands that the instruction's registers have. `box`: the least value and the extent of each
    loop. ValueError where the parts of one do not lie at equal steps in one tensor, or hold different fills."""
    whole = mapping.intrinsic.registered
    if whole is None:
        return mapping
    of = {part: name for name, parts in whole.parts.items() for part in parts}
    operands: dict[str, Read] = {}
    for name in whole.operands:
        held = [mapping.operands[p] for p in whole.parts.get(name, ())]
        operands[name] = _joined(name, whole, held, box) if held else mapping.operands[name]

    def renamed(names: Sequence[str]) -> tuple[str, ...]:
        """The operands of which all parts are among some."""
        return tuple(n for n in whole.operands if set(whole.parts.get(n, (n,))) <= set(names))

    padded = {axis: renamed(names) for axis, names in mapping.padded.items()}
    neutral = tuple(renamed(s) for s in mapping.neutral if {of.get(n, n) for n in s} == set(renamed(s)))
    for axis, names in padded.items():
        if mapping.padded[axis] and not any(set(s) <= set(names) for s in neutral):
            raise ValueError(f"a part alone would hold the fill past the end of {axis}")

    guards, fills = _by_operand(mapping.guards, whole), _by_operand(mapping.fills, whole)
    return replace(
        mapping, intrinsic=whole, operands=operands, padded=padded, neutral=neutral, guards=guards, fills=fills,
        replicated=_by_operand(mapping.replicated, whole),
    )  # fmt: skip


def _by_operand(said: MappingOf[str, Said], whole: Intrinsic) -> dict[str, Said]:
    """What is said of parts as said of their operands."""
    found = {n: v for n, v in said.items() if n in whole.operands}
    for name, parts in whole.parts.items():
        if any(p in said for p in parts):
            if any(p not in said or said[p] != said[parts[0]] for p in parts):
                raise ValueError(f"the parts of {name} hold different elements where the program has none")
            found[name] = said[parts[0]]
    return found


def _joined(name: str, whole: Intrinsic, parts: Sequence[Read], box: MappingOf[str, tuple[int, int]]) -> Read:
    """The element of part number `name.d`, which is a variable of its subscripts."""
    (number,) = (n for n, (operand, _) in whole.selected.items() if operand == name)
    first = parts[0]
    if any(p.tensor != first.tensor or p.dtype != first.dtype for p in parts):
        raise ValueError(f"the parts of {name} lie in several tensors")
    index = []
    for places in zip(*(p.index for p in parts), strict=True):
        if not all(isinstance(i, Int) for i in places):
            raise ValueError(f"{first.tensor} is indexed by data")
        step = _step([i for i in places if isinstance(i, Int)], box)
        if step is None:
            raise ValueError(f"the parts of {name} are no elements of {first.tensor} at equal steps")
        index.append(places[0] + Var(number) * step if step else places[0])
    return replace(first, index=tuple(index))


def _step(places: Sequence[Int], box: MappingOf[str, tuple[int, int]]) -> int | None:
    """How far each subscript is behind the one before it, at every point of the loops; None where that differs, or the
    points are too many to look at."""
    names = sorted(frozenset[str]().union(*map(free_vars, places)))
    if not set(names) <= box.keys() or prod(box[n][1] for n in names) > MOST_POINTS:
        return None
    grid = np.meshgrid(*(np.arange(box[n][1]) + box[n][0] for n in names), indexing="ij")
    env = dict(zip(names, grid, strict=True))
    found = [np.asarray(evaluate(p, env)) for p in places]
    steps = {int(s) for a, b in pairwise(found) for s in np.unique(b - a)}
    return steps.pop() if len(steps) == 1 else None
