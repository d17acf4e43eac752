"""Inputs that break what a kernel checks at run time, by one: its fallback must compute the same there.

A kernel that forgot to look would take them for good: the operands of the mapping hold nothing but their extreme
values, for which the instruction does clamp wherever the condition is tight.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autosched.ir.nodes import Assume
from autosched.ir.oracle.assumed import integer_range
from autosched.ir.oracle.numerics import store
from autosched.ir.program import Program
from autosched.tensorize.conditions.origin import origin
from autosched.tiling.plans.plan import Plan


@dataclass(frozen=True)
class ViolatingData:
    """`tensor` holds `past`, one past a bound, in some places. `others`: tensor to the two values that it holds."""

    program: Program
    tensor: str
    past: int
    others: tuple[tuple[str, int, int], ...]
    seed: int

    @property
    def folder(self) -> str:
        """A name for the data set, which messages show."""
        return f"{self.tensor} = {self.past}"

    def inputs(self) -> dict[str, Any]:
        """The arrays, by tensor."""
        rng = np.random.default_rng([self.seed, abs(self.past), len(self.tensor)])
        found = {}
        for name, one, other in self.others:
            tensor = self.program.tensors[name]
            chosen = np.where(rng.integers(0, 2, tensor.extents).astype(bool), one, other)
            if name == self.tensor:
                chosen.flat[0] = self.past
            found[name] = store(np.asarray(chosen), tensor.dtype)
        return found


def assuming(program: Program, conditions: Iterable[Assume]) -> Program:
    """The program with more assumptions: random data are drawn within them."""
    new = tuple(c for c in dict.fromkeys(conditions) if c not in program.assumptions)
    return replace(program, assumptions=(*program.assumptions, *new)) if new else program


def measured_on(program: Program, plans: Iterable[Plan]) -> Program:
    """The program with all that its plans check or assume: data to measure are drawn within that, so that times are
    those of kernels whose checks hold."""
    asked = [c for p in plans for c in (*p.guards, *p.granted)]
    return assuming(program, asked)


def violations(program: Program, plan: Plan, seed: int) -> tuple[ViolatingData, ...]:
    """One for each bound of the plan's checks that an element can pass; none for a plan without checks."""
    violated: dict[tuple[str, int], ViolatingData] = {}
    for part in (p for p in plan.tensor_parts if p.guards):
        named = [r.tensor for r in part.nest.mapping.operands.values()] + [g.subject for g in part.guards]
        made = {t: found[0].tensor for t in named if (found := origin(part.nest.mapping.program, t)) is not None}
        operands = dict.fromkeys(made.get(t, t) for t in named)
        asked = {t for t in operands if t in program.inputs and t not in program.data}
        for condition in part.guards:
            whole = {t: integer_range(plan.program, t) for t in operands if t in asked}
            for bound, step, end in ((condition.low, -1, 0), (condition.high, 1, 1)):
                if bound is None or whole[condition.subject][end] == bound:
                    continue
                past = int(bound) + step
                inside = (condition.high, condition.low)[end]
                other = past if inside is None else int(inside)
                values = tuple((t, *((past, other) if t == condition.subject else w)) for t, w in whole.items())
                key = condition.subject, past
                violated.setdefault(key, ViolatingData(program, condition.subject, past, values, seed))
    return tuple(violated.values())


class Widening:
    """The program whose data candidates are measured on: `program` (None: their plans' own) within what their plans,
    and those of candidates before them, check or take for granted. Several threads may ask."""

    def __init__(self, program: Program | None) -> None:
        self._program = program
        self._lock = threading.Lock()
        self._latest: tuple[Program, Program] | None = None

    def of(self, *plans: Plan) -> Program:
        """The same object as before where the plans, of one program, add nothing."""
        base = self._program or plans[0].program
        with self._lock:
            before = base if self._latest is None or self._latest[0] is not base else self._latest[1]
            wider = assuming(before, [a for plan in plans for a in (*plan.guards, *plan.granted)])
            self._latest = base, wider
        return wider
