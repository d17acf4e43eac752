"""Named, versioned features of schedules: columns with units, made from what every plan has.

No column is written for one operator or one machine: a space's decisions and derived quantities and the clock's terms
each give their columns, so a new step or a new clock term is a feature without further work. Read `feature_table`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from autosched.errors import AutoschedError

if TYPE_CHECKING:
    from autosched.tiling.plans.plan import Plan

FEATURE_VERSION = "1"
"""Changes whenever a column of the same name changes its meaning."""

Ids = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.float32]
Columns = Mapping[str, npt.NDArray[Any]]

_SHORTEST_S = 1e-12  # a term that does not occur is 0 seconds; its logarithm is taken at this floor


class FeatureMismatchError(AutoschedError):
    """A model was given features of another version, or other columns, than it was fitted with."""


@dataclass(frozen=True)
class Features:
    """`matrix` is (rows, len(names)), float32, NaN where a plan has no such quantity; `units` says what a column
    counts."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    version: str
    matrix: Matrix

    def __len__(self) -> int:
        return len(self.matrix)

    def column(self, name: str) -> npt.NDArray[np.float32]:
        return self.matrix[:, self.names.index(name)]

    def take(self, rows: npt.ArrayLike) -> Features:
        return Features(self.names, self.units, self.version, self.matrix[np.asarray(rows)])


@dataclass(frozen=True)
class FeatureSchema:
    """The columns of a study: the union over its plans, in the order in which plans bring them.

    A column stays where it is whichever rows are asked for, so matrices of different batches can be joined."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    version: str = FEATURE_VERSION

    @staticmethod
    def union(tables: Sequence[Features]) -> FeatureSchema:
        """The schema that holds every column of these tables. Raises FeatureMismatchError for mixed versions."""
        units: dict[str, str] = {}
        for table in tables:
            for name, unit in zip(table.names, table.units, strict=True):
                units.setdefault(name, unit)
        versions = {table.version for table in tables} or {FEATURE_VERSION}
        if len(versions) > 1:
            raise FeatureMismatchError(f"features of different versions cannot be joined: {sorted(versions)}")
        return FeatureSchema(tuple(units), tuple(units.values()), versions.pop())

    def adopt(self, features: Features) -> Features:
        """The same rows in this schema's columns: what it has not is left out, what they have not is NaN, and 0 where
        it marks a plan. For models that were fitted with other columns."""
        place = {name: i for i, name in enumerate(features.names)}
        matrix = np.full((len(features), len(self.names)), np.nan, np.float32)
        for column, name in enumerate(self.names):
            if name in place:
                matrix[:, column] = features.matrix[:, place[name]]
            elif name.startswith("plan."):
                matrix[:, column] = 0.0
        return Features(self.names, self.units, features.version, matrix)

    def stack(self, tables: Sequence[Features]) -> Features:
        """The rows of all tables below each other, in this schema's columns; absent quantities are NaN, and a plan's
        mark (`plan.…`) is 0 in rows of other plans. Raises FeatureMismatchError for a column that is not in it."""
        place = {name: i for i, name in enumerate(self.names)}
        marks = [i for name, i in place.items() if name.startswith("plan.")]
        matrix = np.full((sum(len(t) for t in tables), len(self.names)), np.nan, np.float32)
        matrix[:, marks] = 0.0
        top = 0
        for table in tables:
            unknown = [name for name in table.names if name not in place]
            if unknown or table.version != self.version:
                raise FeatureMismatchError(f"these features are not of this study: {unknown[:5] or table.version}")
            matrix[top : top + len(table), [place[name] for name in table.names]] = table.matrix
            top += len(table)
        return Features(self.names, self.units, self.version, matrix)


def feature_table(plan: Plan, ids: Ids, values: Columns, clock_terms: Columns) -> Features:
    """The features of some rows of one plan.

    `values` and `clock_terms` are what the space and the clock say of these rows (int64 and seconds, shape (rows,)).
    Columns: `plan.NAME` (1) · each decision as it is · `ln.QUANTITY` (signed ln(1 + |x|) of each derived quantity) ·
    `clock.TERM` (ln seconds) · `limit.TERM` (1 where this term is the largest).

    >>> from autosched import api
    >>> from autosched.costmodel.analytic.clock import clock
    >>> from autosched.tiling.planner.plan_program import plan_program
    >>> program, catalogue = api.workload("matmul", m=64, n=64, k=64), api.catalogue()
    >>> plan = plan_program(program, api.target("portable"), catalogue, ()).plans[0]
    >>> ids = np.array([0, 1])
    >>> values = plan.space.values(ids)
    >>> feature_table(plan, ids, values, clock(plan, values)).names
    ('plan.scalar', 'vector', 'unroll', ..., 'clock.compute', ..., 'clock.total', 'limit.compute', ...)
    """
    decisions = {d.name for d in plan.space.decisions}
    constants = getattr(plan.space, "constants", {})
    derived = sorted(name for name in values if name not in decisions and name not in constants)
    terms = sorted(name for name in clock_terms if name != "total")
    columns: list[tuple[str, str]] = [(f"plan.{plan.name}", "0 or 1")]
    columns += [(d.name, "value") for d in plan.space.decisions]
    columns += [(f"ln.{name}", "ln(1 + count)") for name in derived]
    columns += [(f"clock.{name}", "ln s") for name in (*terms, "total")]
    columns += [(f"limit.{name}", "0 or 1") for name in terms]
    matrix = np.empty((len(columns), len(ids)), np.float32).T  # each column lies in one piece
    matrix[:, 0] = 1.0
    at = 1
    for decision in plan.space.decisions:
        matrix[:, at] = values[decision.name]
        at += 1
    for name in derived:
        count = np.asarray(values[name], np.float64)
        matrix[:, at] = np.copysign(np.log(1.0 + np.abs(count)), count)  # counts are whole: nothing is lost near 0
        at += 1
    for name in (*terms, "total"):
        matrix[:, at] = np.log(np.maximum(clock_terms[name], _SHORTEST_S))
        at += 1
    if terms:
        first = at - len(terms) - 1
        most = matrix[:, first : at - 1].max(axis=1)
        unclaimed = np.ones(len(ids), np.bool_)
        for k in range(len(terms)):  # the first of equals
            here = unclaimed & (matrix[:, first + k] == most)
            unclaimed ^= here
            matrix[:, at + k] = here
    names, units = zip(*columns, strict=True)
    return Features(names, units, FEATURE_VERSION, matrix)
