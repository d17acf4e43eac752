"""`Measured`: configurations that someone measured, by names and values: what the formats of other tools exchange.

A `RecordedSpace` is the same for the search: decisions with domains, and columns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias

import numpy as np

from autosched.errors import StoreError
from autosched.store.numbers import floats
from autosched.store.recorded_space import RecordedPlan, RecordedSpace
from autosched.store.records import STATUSES, Measurement, StudyRecord, Trial
from autosched.tiling.step import Decision

Value: TypeAlias = int | float | str | bool
Configuration: TypeAlias = Mapping[str, Value]
ABSENT = "-"
"""The value of a parameter that a configuration does not have: a decision of another plan."""
PLAN = "plan"
"""The parameter that says which plan a trial belongs to, in studies of several."""
REPLACED = "replaced"
"""The setting of a recording that counts measurements which later ones of the same configuration replaced."""
LEFT_OUT = "left_out"
"""The setting of a recording that says what else of its file was left out: a list of texts."""
_COLUMN_END = 2**63  # larger integers do not fit a column, and become labels


@dataclass(frozen=True)
class Measured:
    """`configurations[i]` took what `measurements[i]` says; all have all `parameters`, and none is there twice.

    `name` is the kernel's, `device` the hardware's, both empty where a file does not say.
    """

    name: str
    device: str
    parameters: tuple[str, ...]
    configurations: tuple[Configuration, ...]
    measurements: tuple[Measurement, ...]
    replaced: int = 0
    """Earlier measurements of configurations that were measured again: not there any more."""

    @staticmethod
    def of(name: str, device: str, pairs: Sequence[tuple[Configuration, Measurement]]) -> Measured:
        """From pairs; the parameters are those of the first, and a later pair replaces an earlier one of the same
        configuration. Raises ValueError for none at all, other parameters, or values that are no plain ones."""
        if not pairs:
            raise ValueError("it holds no configurations")
        names = tuple(pairs[0][0])
        for strange in (n for c, _ in pairs for n in c if not _is_text(n)):
            raise ValueError(f"{strange!r} names no parameter")
        last: dict[tuple[tuple[type, Value], ...], tuple[Configuration, Measurement]] = {}
        for number, (configuration, measurement) in enumerate(pairs, start=1):
            odd = sorted(set(names) ^ set(configuration))
            if odd:
                raise ValueError(f"configuration {number} differs from the first in its parameters: {', '.join(odd)}")
            odd_value = next((n for n in names if not _plain(configuration[n])), None)
            if odd_value is not None:
                said = f"{odd_value} is {str(configuration[odd_value])[:80]}, no finite number and no text"
                raise ValueError(f"configuration {number}: {said}")
            key = tuple((type(configuration[n]), configuration[n]) for n in names)  # True is 1 to Python
            last[key] = configuration, measurement
        configurations, measurements = zip(*last.values(), strict=True)
        return Measured(name, device, names, configurations, measurements, len(pairs) - len(last))

    def __len__(self) -> int:
        return len(self.configurations)

    def values(self, parameter: str) -> tuple[Value, ...]:
        """The values of a parameter that occur, each once: numbers ascending, then texts."""
        found = {(type(c[parameter]), c[parameter]): c[parameter] for c in self.configurations}
        return tuple(sorted(found.values(), key=_order))

    def recording(self, source: str = "") -> RecordedSpace:
        """The same as one recorded plan without a clock (`plan`). Raises StoreError where none came out right."""
        if not any(m.ok for m in self.measurements):
            raise StoreError(f"none of the {len(self)} configurations of {self.name!r} came out right")
        name = self.name or "kernel"
        settings = {REPLACED: self.replaced} if self.replaced else {}
        device = {"name": self.device}
        return RecordedSpace(name, (self.plan(),), device=device, legal=len(self), settings=settings, source=source)

    def plan(self) -> RecordedPlan:
        """The rows as a recorded plan. Parameters with one value alone decide nothing and are left out; values that are
        not all integers become labels."""
        kept = {p: values for p in self.parameters if len(values := self.values(p)) > 1}
        indices = np.zeros((len(self), len(kept)), np.int32)
        for column, (parameter, values) in enumerate(kept.items()):
            place = {(type(v), v): i for i, v in enumerate(values)}
            indices[:, column] = [place[type(v), v] for v in (c[parameter] for c in self.configurations)]
        return RecordedPlan(
            name=self.name or "kernel",
            decisions=tuple(_decision(parameter, values) for parameter, values in kept.items()),
            indices=indices,
            status=np.array([STATUSES.index(m.status) for m in self.measurements], np.uint8),
            time_s=floats([m.time_s if m.ok else None for m in self.measurements]),
            spread=floats([m.spread for m in self.measurements]),
            cost_s=floats([sum(m.costs_s.values()) if m.costs_s else None for m in self.measurements]),
            messages={i: m.message for i, m in enumerate(self.measurements) if m.message},
            repeats=np.array([len(m.samples_s) for m in self.measurements], np.int32),
        )


def of_study(record: StudyRecord, trials: Sequence[Trial]) -> Measured:
    """The search of a study. With several plans their name is a parameter, and decisions of others are ABSENT.

    Raises StoreError for a study without trials."""
    searched = [t for t in trials if t.round == "search"]
    if not searched:
        raise StoreError(f"study {record.name!r} has no trials to write", hint="`autosched tune` makes some")
    return _joined(record.program_name, record.target, [(t.plan, t.schedule, t.measurement) for t in searched])


def of_recording(recording: RecordedSpace) -> Measured:
    """The rows of a recording, plans and decisions as `of_study` has them."""
    found: list[tuple[str, Configuration, Measurement]] = []
    for plan in recording.plans:
        for place, row in enumerate(plan.indices.tolist()):
            values = {d.name: d.label(d.domain[i]) for d, i in zip(plan.decisions, row, strict=True)}
            found.append((plan.name, values, plan.measurement(place)))
    return _joined(recording.name, str(recording.device.get("name", "")), found)


def spent_s(measurement: Measurement, words: Collection[str], but: float = 0.0) -> dict[str, float]:
    """Seconds that the measurement cost, under each of the `words` that a format has (`framework` is one of them).
    What it has no word for counts there too, so that the sum stays, less the seconds `but` that it tells otherwise."""
    known = {word: measurement.costs_s.get(word, 0.0) for word in words}
    rest = sum(cost for word, cost in measurement.costs_s.items() if word not in known)
    return known | {"framework": known["framework"] + max(0.0, rest - but)}


def _joined(name: str, device: str, rows: Sequence[tuple[str, Configuration, Measurement]]) -> Measured:
    """Rows of (plan, decisions, measurement) with the same parameters in all of them."""
    several = len({plan for plan, _, _ in rows}) > 1
    names = list(dict.fromkeys(name for _, values, _ in rows for name in values))
    pairs: list[tuple[Configuration, Measurement]] = []
    for plan, values, measurement in rows:
        own = {n: values.get(n, ABSENT) for n in names}
        pairs.append(({PLAN: plan, **own} if several else own, measurement))
    return Measured.of(name, device, pairs)


def _decision(name: str, values: tuple[Value, ...]) -> Decision:
    if all(type(v) is int and abs(v) < _COLUMN_END for v in values):
        return Decision(name, tuple(int(v) for v in values))
    labels = tuple(str(v) for v in values)
    alike = len(set(labels)) < len(labels)  # the number 1 and the text "1"
    return Decision(name, tuple(range(len(values))), tuple(repr(v) for v in values) if alike else labels)


def _is_text(name: object) -> bool:
    """Whether something is text that a file can have: no half of a surrogate pair."""
    return isinstance(name, str) and name.encode(errors="replace").decode() == name


def _plain(value: object) -> bool:
    return isinstance(value, int | str) or (isinstance(value, float) and isfinite(value))


def _order(value: Value) -> tuple[bool, float, str]:
    return (False, value, str(value)) if not isinstance(value, str) else (True, 0.0, value)
