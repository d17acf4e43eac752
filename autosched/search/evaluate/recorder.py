"""What becomes of a recording later: `again` measures the fastest rows once more, or all; `rescored` says of measured
rows what the engine of today says, which is how a change of the clock or of the features is judged without measuring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autosched.costmodel.analytic import clock as clocks
from autosched.device.checked import measurement_of
from autosched.device.protocol import Device
from autosched.errors import StoreError
from autosched.search.request import TuneRequest
from autosched.search.space.recorded import program_of, target_of
from autosched.search.tuning.final import pooled
from autosched.search.tuning.remeasure import raced
from autosched.search.tuning.tune import plans_of, prepare
from autosched.store.recorded_space import RecordedPlan, RecordedSpace
from autosched.store.records import STATUSES, Measurement
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.candidate import Candidate
from autosched.tiling.plans.plan import Plan


@dataclass(frozen=True)
class RowDone:
    """`done` of `total` measurements are made; `best_s` is the fastest so far."""

    done: int
    total: int
    best_s: float | None


def again(
    recording: RecordedSpace,
    catalogue: Catalogue | None = None,
    *,
    visits: int = 0,
    on_row: Callable[[RowDone], None] | None = None,
) -> RecordedSpace:
    """The recording in today's words, its fastest rows measured anew in turn, on this machine; before that every row
    in so many `visits`, of which the median counts. Raises what `rescored` and `prepare` raise."""
    found, _ = rescored(recording, catalogue)
    tuning = prepare(request_of(found, catalogue))
    space, device = tuning.study.space, tuning.device
    try:
        numbers = [next(n for n, e in enumerate(space.plans) if e.plan.name == p.name) for p in found.plans]
        candidates, measured = [], []
        for number, recorded in zip(numbers, found.plans, strict=True):
            plan = space.plans[number].plan
            ids = plan.space.ids({d.name: recorded.indices[:, i] for i, d in enumerate(recorded.decisions)})
            candidates += [Candidate(plan, int(i)) for i in ids]
            measured += [recorded.measurement(i) for i in range(len(recorded))]
        rng = np.random.default_rng(int(found.settings.get("seed", 0)))
        if visits:
            measured = _visited(device, candidates, visits, rng, on_row or (lambda done: None))
        new = raced(device, candidates, measured, rng)
    finally:
        device.close()
    plans, first = [], 0
    for recorded in found.plans:
        mine = new[first : first + len(recorded)]
        first += len(recorded)
        columns = columns_of(mine)
        if len(recorded.repeats):  # of rows that were not measured anew it says what it said
            columns["repeats"] = np.where(columns["repeats"] > 0, columns["repeats"], recorded.repeats)
        plans.append(replace(recorded, **columns))
    return replace(found, plans=tuple(plans))


def _visited(
    device: Device,
    candidates: Sequence[Candidate],
    visits: int,
    rng: np.random.Generator,
    tell: Callable[[RowDone], None],
) -> list[Measurement]:
    """Each row's measurements of several passes over all rows, pooled: a measurement is over in two milliseconds, and
    what disturbs one (a neighbour in the last cache, say) lasts longer."""
    builds = [device.build(candidate) for candidate in candidates]
    found: list[list[Measurement]] = [[] for _ in builds]
    best: float | None = None
    for visit in range(visits):
        for done, row in enumerate(rng.permutation(len(builds)).tolist(), visit * len(builds) + 1):
            found[row].append(measurement_of(device.measure(builds[row], "search"), device))
            best = min((t for t in (best, found[row][-1].time_s) if t is not None), default=None)
            tell(RowDone(done, visits * len(builds), best))
    return [pooled(several) for several in found]


def columns_of(measured: Sequence[Measurement]) -> dict[str, Any]:
    """What a recorded plan holds of its measurements."""
    return {
        "status": np.array([STATUSES.index(m.status) for m in measured], np.uint8),
        "time_s": np.array([m.time_s if m.ok and m.time_s else np.nan for m in measured], np.float64),
        "spread": np.array([np.nan if m.spread is None else m.spread for m in measured], np.float64),
        "messages": {i: m.message[:200] for i, m in enumerate(measured) if not m.ok},
        "repeats": np.array([len(m.samples_s) for m in measured], np.int32),
    }


def said_of(plan: Plan, ids: np.ndarray[Any, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The clock's terms and the derived quantities of these rows."""
    values = plan.space.values(ids)
    terms = {k: np.broadcast_to(np.asarray(s, np.float64), (len(ids),)) for k, s in clocks.clock(plan, values).items()}
    return terms, {name: values[name] for name in plan.space.derived}


def rescored(recording: RecordedSpace, catalogue: Catalogue | None = None) -> tuple[RecordedSpace, int]:
    """The recording with decisions, clock and derived quantities of today's engine, and how many rows have no place in
    today's spaces. A decision that is new is at its first value. Raises StoreError where none has a place."""
    today = {p.name: p for p in plans_of(request_of(recording, catalogue))[1]}
    plans = [_today(p, today[p.name]) for p in recording.plans if p.name in today]
    plans = [p for p in plans if len(p)]
    if not plans:
        raise StoreError(f"no row of {recording.name!r} has a place in today's spaces", hint="record it again")
    found = replace(recording, plans=tuple(plans))
    return found, len(recording) - len(found)


def request_of(recording: RecordedSpace, catalogue: Catalogue | None = None) -> TuneRequest:
    """What was asked for when it was recorded."""
    settings = recording.settings
    return TuneRequest(
        program_of(recording),
        target_of(recording),
        device=str(recording.device.get("name", "cpu")),
        seed=int(settings.get("seed", 0)),
        strategy="random",
        cost_model="analytic",
        threads=int(settings.get("threads", 1)),
        cache=str(recording.device.get("cache", "warm")),
        only=tuple(settings.get("only", ())),
        families=tuple(settings.get("families", ())),
        numerics=str(settings.get("numerics", "reassociated")),
        conditions=str(settings.get("conditions", "guard")),
        catalogue=catalogue or Catalogue.builtin(),
    )


def _today(recorded: RecordedPlan, plan: Plan) -> RecordedPlan:
    """The rows of a recorded plan that today's space can name, with what is said of them today."""
    space = plan.space
    rows = np.zeros((len(recorded), len(space.decisions)), np.int32)
    kept = np.ones(len(recorded), np.bool_)
    theirs = {d.name: (d, recorded.indices[:, i]) for i, d in enumerate(recorded.decisions)}
    for name, (old, index) in theirs.items():
        if name not in space.position:
            kept &= index == 0  # what is no longer decided was without effect at its first value
            continue
        new = space.decision(name)
        places = {label: i for i, label in enumerate(map(new.label, new.domain))}
        moved = np.array([places.get(old.label(value), -1) for value in old.domain], np.int32)
        rows[:, space.position[name]] = np.maximum(moved[index], 0)
        kept &= moved[index] >= 0
    ids = space.ids({d.name: rows[kept, i] for i, d in enumerate(space.decisions)})
    _, first = np.unique(ids, return_index=True)  # decisions that are gone may leave two rows one
    chosen = np.flatnonzero(kept)[np.sort(first)]
    terms, derived = said_of(plan, ids[np.sort(first)])
    return replace(
        recorded,
        decisions=space.decisions,
        indices=rows[chosen],
        status=recorded.status[chosen],
        time_s=recorded.time_s[chosen],
        spread=recorded.spread[chosen],
        cost_s=recorded.cost_s[chosen],
        repeats=recorded.repeats[chosen] if len(recorded.repeats) else recorded.repeats,
        terms=terms,
        derived=derived,
        version=space.version,
        messages={new: recorded.messages[old] for new, old in enumerate(chosen.tolist()) if old in recorded.messages},
    )
