"""Whether a counterexample shows what it says: the term is computed again from the numbers that are printed, in f64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from support.rewritten.certified import Evaluation

from autosched.ir.printer import print_value
from autosched.ir.program import Program
from autosched.ir.rewrites.online.members import Cascade, Member, cascades_of
from autosched.ir.rewrites.versions import Versions, separate_versions
from autosched.ir.value import Condition, FromIndex, Logical, Read, Scalar, Select, Value, is_value, walk
from autosched.logic import Bool


@dataclass
class Shown(Evaluation):
    """A term whose elements are the numbers that were printed, its choices by axes alone taken as `sides` say."""

    numbers: Mapping[str, float] = field(default_factory=dict)
    sides: Mapping[Bool, bool] = field(default_factory=dict)
    told: Callable[[str], str] = str

    def pair(self, value: Value, places: dict[str, int]) -> tuple[float, float]:
        if isinstance(value, Read | Scalar | FromIndex):
            return self.plain(self.numbers[self.told(print_value(value))])
        return super().pair(value, places)

    def holds(self, condition: Condition, places: dict[str, int]) -> bool:
        return super().holds(condition, places) if is_value(condition) else self.sides[condition]


def shows(program: Program, stage: str, shown: dict[str, Any]) -> str:
    """What is wrong with a counterexample, or nothing: that no factor takes the term at one reference to the other,
    and that the values are those that the language computes."""
    said = ["there is no such stage"]
    single = separate_versions(program)
    stages = {old: new for new, old in single.of.items()} | {f"{old}.2": old for old in single.of.values()}
    cascades = [c for c in cascades_of(single.program) if isinstance(c, Cascade)]
    for member in (m for c in cascades for m in c.members if m.stage.name == stages.get(stage, stage)):
        conditions = {c for v in walk(member.term) for c in _formulas(v)}
        for chosen in product([True, False], repeat=len(conditions)):
            sides = dict(zip(conditions, chosen, strict=True))
            wrong = _wrong(single, member, shown, sides)
            if not wrong:
                return ""
            said.append(wrong)
    return said[-1]


def _formulas(value: Value) -> list[Bool]:
    match value:
        case Select(Bool() as condition, _, _, _):
            return [condition]
        case Logical(_, parts, _):
            return [p for p in parts if isinstance(p, Bool)]
    return []


def _wrong(single: Versions, member: Member, shown: dict[str, Any], sides: dict[Bool, bool]) -> str:
    got = np.zeros((2, 2))
    for (r, reference), (d, data) in product(enumerate(shown["references"]), enumerate(shown["data"])):
        numbers = {**shown.get("given", {}), **reference, **data}
        try:
            term = Shown(single.program, {}, {}, numbers=numbers, sides=sides, told=single.text)
            got[r, d] = term.pair(member.term, {})[0]
        except KeyError as missing:
            return f"{missing} is not shown"
    if not np.allclose(got, shown["values"], rtol=1e-2, atol=2e-3):
        return f"the term is {got.tolist()}, and {shown['values']} is shown"
    (a, b), (c, d) = got
    if member.op == "+":
        left, right, size = a * d, b * c, max(abs(a * d), abs(b * c))
    else:
        left, right, size = a - b, c - d, np.abs(got).max()
    return "" if abs(left - right) > 5e-5 * size > 0 else f"a factor takes {got.tolist()} to one another"
