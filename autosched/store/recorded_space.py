"""`RecordedSpace`: rows of a search space with a device's measurement of each, for replay and for studying strategies.

It is self-contained, for spaces of ours and of others: it holds the decisions with their domains, the rows, the
measurements, and (of our spaces) the clock's terms and the derived quantities. So strategies and cost models can be
studied on it after the space itself has changed. Columns are arrays, one entry a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.errors import StoreError
from autosched.extras import needed
from autosched.store.columns import PlanPart, decision_columns
from autosched.store.records import STATUSES, Measurement
from autosched.tiling.space.listed import ListedSpace
from autosched.tiling.step import Decision

Floats = npt.NDArray[np.float64]
LEAST_S, MOST_S = 1e-12, 1e9
"""What a time may be: below lies no clock's tick, above are thirty years."""
MOST_SPREAD = 1e6


@dataclass(frozen=True)
class RecordedPlan:
    """The rows of one plan (an imported space has one plan).

    `indices` (rows, decisions) are places in the decisions' domains; `status` places in `STATUSES`; `time_s` median
    seconds, NaN unless ok; `spread` (q75 - q25) / median, `cost_s` the seconds of building, checking and timing, both
    NaN where unknown; `repeats` how many samples `time_s` is the median of, 0 where unknown (no column: of all rows).
    `terms` are the clock's seconds by name with `total` among them, none without a clock; `derived`
    are integer quantities of the rows. `version` is that of the space from which rows were drawn, `messages` those of
    failed rows, by place. Raises StoreError where the columns do not fit together.
    """

    name: str
    decisions: tuple[Decision, ...]
    indices: npt.NDArray[np.int32]
    status: npt.NDArray[np.uint8]
    time_s: Floats
    spread: Floats
    cost_s: Floats
    terms: Mapping[str, Floats] = field(default_factory=dict)
    derived: Mapping[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    version: str = ""
    messages: Mapping[int, str] = field(default_factory=dict)
    repeats: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))

    def __post_init__(self) -> None:
        rows = len(self.indices)
        floats: dict[str, Floats] = {"time_s": self.time_s, "spread": self.spread, "cost_s": self.cost_s, **self.terms}
        integers: dict[str, npt.NDArray[Any]] = {"status": self.status, "repeats": self.repeats, **self.derived}
        self._check_types({"indices": self.indices, **integers}, "iu", "integers")
        self._check_types(floats, "f", "floats")
        columns = floats | {name: c for name, c in integers.items() if name != "repeats" or len(c)}
        short = next((name for name, column in columns.items() if len(column) != rows), None)
        if short is not None:
            raise StoreError(f"the column {short} of {self.name!r} has {len(columns[short])} of {rows} rows")
        if self.indices.shape != (rows, len(self.decisions)):
            raise StoreError(f"the indices of {self.name!r} are not {len(self.decisions)} for each of {rows} rows")
        for place, decision in enumerate(self.decisions):
            column = self.indices[:, place]
            bad = np.flatnonzero((column < 0) | (column >= len(decision.domain)))
            if len(bad):
                said = f"row {bad[0]} of {self.name!r} has index {column[bad[0]]} for {decision.name}"
                raise StoreError(f"{said}, which has {len(decision.domain)} values")
        if rows and int(self.status.max()) >= len(STATUSES):
            raise StoreError(f"a row of {self.name!r} has an unknown status")
        timed = np.isfinite(self.time_s) & (self.time_s > 0)
        if (timed != self.ok).any():
            at = int(np.flatnonzero(timed != self.ok)[0])
            time_s = float(self.time_s[at])
            has = "has no time" if np.isnan(time_s) else f"has a time of {time_s:g} s"
            said = f"row {at} of {self.name!r} is {STATUSES[int(self.status[at])]} and {has}"
            raise StoreError(f"{said}: rows that are ok have a time above 0, others have none")
        self._check_figures()
        if self.terms and "total" not in self.terms:
            raise StoreError(f"the clock's terms of {self.name!r} have no total")

    def _check_types(self, columns: Mapping[str, npt.NDArray[Any]], kinds: str, what: str) -> None:
        """Raise StoreError for a column that is no array of these numbers."""
        for name, column in columns.items():
            if not isinstance(column, np.ndarray) or column.dtype.kind not in kinds:
                raise StoreError(f"the column {name} of {self.name!r} is no numpy array of {what}")

    def _check_figures(self) -> None:
        """Raise StoreError for a figure that no measurement can have."""
        _one_line(self.name)
        bounds = {"time_s": (LEAST_S, MOST_S, " s"), "cost_s": (0.0, MOST_S, " s"), "spread": (0.0, MOST_SPREAD, "")}
        columns = [(name, getattr(self, name), *bound) for name, bound in bounds.items()]
        columns += [(f"term {name}", column, 0.0, MOST_S, " s") for name, column in self.terms.items()]
        for name, column, least, most, unit in columns:
            bad = np.flatnonzero((column < least) | (column > most))
            if len(bad):
                said = f"row {bad[0]} of {self.name!r} has a {name} of {column[bad[0]]:g}{unit}"
                raise StoreError(f"{said}, which is not from {least:g} to {most:g}")

    def __len__(self) -> int:
        return len(self.time_s)

    @property
    def ok(self) -> npt.NDArray[np.bool_]:
        """Rows that succeeded and have a time."""
        return np.asarray(self.status == STATUSES.index("ok"), np.bool_)

    def measurement(self, place: int) -> Measurement:
        """The measurement of the row at this place."""
        status, cost, spread = STATUSES[int(self.status[place])], float(self.cost_s[place]), float(self.spread[place])
        return Measurement(
            status,
            time_s=float(self.time_s[place]) if status == "ok" else None,
            spread=spread if spread == spread else None,
            message=self.messages.get(place, "" if status == "ok" else f"recorded as {status}"),
            costs_s={"recorded": cost} if cost == cost else {},
        )

    def space(self) -> ListedSpace:
        """The rows as a space. Raises StoreError for rows that occur twice or indices outside a domain."""
        try:
            return ListedSpace(self.name, self.decisions, self.indices, self.derived)
        except ValueError as error:
            raise StoreError(f"not a recorded space: {self._twice() or error}") from None

    def _twice(self) -> str:
        """Which rows are one schedule, in words; empty where none are."""
        _, first, counts = np.unique(self.indices, axis=0, return_index=True, return_counts=True)
        if not (counts > 1).any():
            return ""
        at = int(first[counts > 1].min())
        again = int(np.flatnonzero((self.indices == self.indices[at]).all(axis=1))[1])
        more = int((counts - 1).sum())
        all_of = f" ({more} such rows in all)" if more > 1 else ""
        return f"rows {at} and {again} of {self.name!r} are one schedule{all_of}; each may be there once"


@dataclass(frozen=True)
class RecordedSpace:
    """A recorded space. `program` (text with sizes) and `target` (YAML) are empty where the space is somebody else's.

    `device`: the device's own description. `legal`: the number of legal rows from which these were drawn, 0 where
    unknown (`complete`: all of them are here). `settings`: how they were drawn. `source`: where an imported space comes
    from.
    """

    name: str
    plans: tuple[RecordedPlan, ...]
    program: str = ""
    target: str = ""
    device: Mapping[str, Any] = field(default_factory=dict)
    legal: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    created: str = ""

    def __post_init__(self) -> None:
        _one_line(self.name)
        names = [p.name for p in self.plans]
        if 0 < self.legal < len(self) or self.legal < 0:
            said = f"the recording {self.name!r} has {len(self)} rows, and legal says that there are {self.legal}"
            raise StoreError(said, hint="legal is of how many legal rows these are, 0 where that is unknown")
        if not any(len(p) for p in self.plans):
            raise StoreError(f"the recording {self.name!r} has no rows")
        if len(set(names)) != len(names):
            raise StoreError(f"two plans of the recording {self.name!r} have one name")

    def __len__(self) -> int:
        return sum(len(p) for p in self.plans)

    @property
    def complete(self) -> bool:
        """Whether every legal row is here."""
        return len(self) == self.legal

    @property
    def best_s(self) -> float:
        """The optimum: the fastest time of all rows; NaN where all failed."""
        times = np.concatenate([p.time_s[p.ok] for p in self.plans])
        return float(times.min()) if len(times) else float("nan")

    @property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """All rows, plan by plan, as numpy arrays of shape (rows,): `plan`; `status`; `time_s`, `spread`, `cost_s` in
        seconds (`spread` as a share), NaN where unknown or failed; `repeats`; `clock_s`, the analytic clock's seconds
        when the space was recorded, NaN without one; then a column for each decision (`store.columns`)."""
        plans = self.plans
        ends = np.cumsum([len(p) for p in plans])

        def joined(name: str) -> npt.NDArray[Any]:
            return np.concatenate([getattr(p, name) for p in plans])

        known = [p.repeats if len(p.repeats) else np.zeros(len(p), np.int32) for p in plans]
        clock = [p.terms["total"] if p.terms else np.full(len(p), np.nan) for p in plans]
        found: dict[str, npt.NDArray[Any]] = {
            "plan": np.repeat(np.array([p.name for p in plans], object), [len(p) for p in plans]),
            "status": np.array(STATUSES, object)[joined("status")],
            **{name: joined(name) for name in ("time_s", "spread", "cost_s")},
            "repeats": np.concatenate(known),
            "clock_s": np.concatenate(clock),
        }
        parts = [PlanPart(p.decisions, p.indices, np.arange(e - len(p), e)) for p, e in zip(plans, ends, strict=True)]
        return found | decision_columns(len(self), parts, found)

    @property
    def frame(self) -> Any:
        """`columns` as a pandas DataFrame. Raises MissingError without pandas (the extra `plots`)."""
        return needed("pandas", "plots", "recording.frame").DataFrame(self.columns)


def _one_line(name: str) -> None:
    """Raise StoreError for a name that headlines and tables cannot hold."""
    if len(name.splitlines()) > 1:
        raise StoreError(f"the name {name!r} is not one line", hint="rename it: tables and headlines hold it")
