"""Warm starts: measured rows of earlier studies, as samples that a cost model learns from before the first trial.

This version plans the study again and computes the features of its rows. It refuses a study of other spaces, another
clock or other features, whose rows would mean something else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autosched.costmodel.analytic import clock as clocks
from autosched.costmodel.features import FEATURE_VERSION, FeatureMismatchError, Features, FeatureSchema, feature_table
from autosched.costmodel.learned.pretrained import Earlier
from autosched.costmodel.protocol import Samples
from autosched.errors import StoreError
from autosched.search.request import TuneRequest
from autosched.search.space.recorded import RecordedClock, plans_of
from autosched.search.tuning.identity import versions_of
from autosched.search.tuning.tune import plans_of as plans_again
from autosched.store.recorded_space import RecordedSpace
from autosched.store.records import STATUSES, StudyRecord, Trial
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.listed import ListedSpace

Clock = Callable[[Plan, Any], Any]


def earlier_study(record: StudyRecord, trials: Sequence[Trial], request: TuneRequest) -> Earlier:
    """The search's trials of a stored study; `request` is the one that it came from (`tune.reopen`).

    Raises FeatureMismatchError where it was made with other features, spaces or another clock, StoreError where no
    trial succeeded or it did not minimise the time.
    """
    if record.settings.get("objective", "latency") != "latency":
        raise StoreError(f"{record.name} minimised {record.settings['objective']}, and models learn times")
    _check(record, "features", record.settings.get("features", FEATURE_VERSION), FEATURE_VERSION)
    _check(record, "clock", record.key.get("clock"), clocks.version(request.target))
    _, plans = plans_again(request)
    for field, now in versions_of(plans).items():
        _check(record, field, record.key.get(field), now)
    known = {plan.name: plan for plan in plans}
    searched = [t for t in trials if t.round == "search" and t.plan in known]
    parts = []
    for name in dict.fromkeys(t.plan for t in searched):
        mine = [t for t in searched if t.plan == name]
        ids = np.array([t.row for t in mine], np.int64)
        times = np.array([t.measurement.time_s or np.nan for t in mine], np.float64)
        statuses = tuple(t.measurement.status for t in mine)
        parts.append((_described(known[name], ids, clocks.clock), times, statuses))
    return _joined(record.name, parts)


def earlier_recording(recording: RecordedSpace) -> Earlier:
    """All rows of a recording. Raises StoreError for one without a clock (of others), or without a time."""
    if not all(p.terms for p in recording.plans if len(p)):
        raise StoreError(
            f"{recording.name} was recorded without a clock, whose seconds our models learn to correct",
            hint="learn from recordings that autosched made; imported ones have times alone",
        )
    clock, parts = RecordedClock(recording), []
    for plan, rows in zip(plans_of(recording), recording.plans, strict=True):
        if len(rows):
            assert isinstance(plan.space, ListedSpace)
            statuses = tuple(STATUSES[s] for s in rows.status)
            parts.append((_described(plan, plan.space.listed, clock), rows.time_s, statuses))
    return _joined(recording.name, parts)


def _described(plan: Plan, ids: Any, clock: Clock) -> tuple[Features, Any]:
    values = plan.space.values(ids)
    terms = {name: np.broadcast_to(s, (len(ids),)) for name, s in clock(plan, values).items()}
    return feature_table(plan, ids, values, terms), terms["total"].astype(np.float32)


def _joined(name: str, parts: Sequence[tuple[tuple[Features, Any], Any, tuple[str, ...]]]) -> Earlier:
    times = np.concatenate([times for _, times, _ in parts]) if parts else np.zeros(0)
    if not np.isfinite(times).any():
        raise StoreError(f"{name} has no successful trial, so there is nothing to learn from")
    tables = [features for (features, _), _, _ in parts]
    samples = Samples(
        FeatureSchema.union(tables).stack(tables),
        np.concatenate([analytic for (_, analytic), _, _ in parts]),
        times,
        tuple(status for _, _, statuses in parts for status in statuses),
    )
    fastest = np.nanmin(times)
    return Earlier((name,), replace(samples, analytic_s=samples.analytic_s / fastest, time_s=times / fastest))


def _check(record: StudyRecord, what: str, stored: object, now: object) -> None:
    if stored != now:
        raise FeatureMismatchError(
            f"{record.name} was made with another version of {what} ({stored}; this is {now})",
            hint="tune it again with this version",
        )
