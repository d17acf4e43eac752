"""Whether a counterexample shows what it says: the term is computed again from the numbers that are printed, in f64."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from support.rewritten.certified import Evaluation

from autosched.ir.printer import print_value
from autosched.ir.program import Program
from autosched.ir.rewrites.online.members import Cascade, cascades_of
from autosched.ir.value import Condition, FromIndex, Logical, Read, Scalar, Select, Value, is_value, walk
from autosched.logic import Bool


@dataclass
class Shown(Evaluation):
    """A term whose elements are the numbers that were printed, its choices by axes alone taken as `sides` say."""

    numbers: Mapping[str, float] = field(default_factory=dict)
    sides: Mapping[Bool, bool] = field(default_factory=dict)

    def pair(self, value: Value, places: dict[str, int]) -> tuple[float, float]:
        if isinstance(value, Read | Scalar | FromIndex):
            return self.plain(self.numbers[print_value(value)])
        return super().pair(value, places)

    def holds(self, condition: Condition, places: dict[str, int]) -> bool:
        return super().holds(condition, places) if is_value(condition) else self.sides[condition]


def terms_of(program: Program, stage: str) -> list[tuple[Cascade, Value, str]]:
    """A stage's terms in the cascades that it is in, with their reducers."""
    found = [c for c in cascades_of(program) if isinstance(c, Cascade)]
    return [(c, m.term, m.op) for c in found for m in c.members if m.stage.name == stage]


def shows(program: Program, stage: str, shown: dict[str, Any]) -> str:
    """What is wrong with a counterexample, or nothing: that no factor takes the term at one reference to the other,
    and that the values are those that the language computes."""
    said = ["there is no such stage"]
    for _, term, op in terms_of(program, stage):
        conditions = {c for v in walk(term) for c in _formulas(v)}
        for sides in product([True, False], repeat=len(conditions)):
            wrong = _wrong(program, term, op, shown, dict(zip(conditions, sides, strict=True)))
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


def _wrong(program: Program, term: Value, op: str, shown: dict[str, Any], sides: dict[Bool, bool]) -> str:
    got = np.zeros((2, 2))
    for (r, reference), (d, data) in product(enumerate(shown["references"]), enumerate(shown["data"])):
        numbers = {**shown.get("given", {}), **reference, **data}
        try:
            got[r, d] = Shown(program, {}, {}, numbers=numbers, sides=sides).pair(term, {})[0]
        except KeyError as missing:
            return f"{missing} is not shown"
    if not np.allclose(got, shown["values"], rtol=1e-2, atol=2e-3):
        return f"the term is {got.tolist()}, and {shown['values']} is shown"
    (a, b), (c, d) = got
    left, right, size = (a * d, b * c, max(abs(a * d), abs(b * c))) if op == "+" else (a - b, c - d, np.abs(got).max())
    return "" if abs(left - right) > 5e-5 * size > 0 else f"a factor takes {got.tolist()} to one another"
