"""Searching a recording: its rows as the `SearchSpace` of strategies, scored by the clock it was recorded with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.ir import parse
from autosched.ir.program import Program
from autosched.machine.catalogue import load_target
from autosched.machine.spec import target_from_yaml
from autosched.machine.target import Target
from autosched.search.space.space import SearchSpace
from autosched.store.recorded_space import RecordedSpace
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.listed import ListedSpace

_NOTHING = "def recorded(X: f32[n], *, n=1):\n    for i in range(n):\n        X[i] = 0.0\n"
"""Stands for the program of a space that was not ours: its plans cannot be lowered anyway."""


def program_of(recording: RecordedSpace) -> Program:
    """The recorded program; one that does nothing where the space is somebody else's."""
    return parse(recording.program or _NOTHING, filename=recording.name)


def target_of(recording: RecordedSpace) -> Target:
    """The machine that was measured; the portable one where the recording does not describe it."""
    return target_from_yaml(recording.target, recording.name) if recording.target else load_target("portable")


def plans_of(recording: RecordedSpace) -> tuple[Plan, ...]:
    """A plan without parts for each recorded one: it can be searched, and not built."""
    program, target = program_of(recording), target_of(recording)
    return tuple(Plan(p.name, program, target, (), p.space()) for p in recording.plans)


def space_of(recording: RecordedSpace, *, seed: int = 0, threads: int = 2) -> SearchSpace:
    """The recorded rows as a search space."""
    return SearchSpace(plans_of(recording), RecordedClock(recording), threads=threads, seed=seed)


class RecordedClock:
    """What the clock said when the rows were measured; where there is no clock, one second for every row."""

    def __init__(self, recording: RecordedSpace) -> None:
        self._terms = {p.name: p.terms for p in recording.plans}

    def __call__(self, plan: Plan, values: Mapping[str, npt.NDArray[np.int64]]) -> Mapping[str, npt.NDArray[Any]]:
        space = plan.space
        assert isinstance(space, ListedSpace)
        at = space.places(space.ids_of(values))
        terms = self._terms[plan.name]
        return {name: column[at] for name, column in terms.items()} if terms else {"total": np.ones(len(at))}
