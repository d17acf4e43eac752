"""Recording a space: legal rows of it, built, checked and timed, as a `RecordedSpace` and as a file.

Rows are drawn in an order of their own, so what a shorter recording has measured is part of a longer one of the same
seed, and what was measured when a run ended is a sample like any other. `record_to` keeps each row as soon as it is
measured (`search.evaluate.unfinished`), and goes on from there.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from autosched.costmodel.analytic import clock as clocks
from autosched.costmodel.features import FEATURE_VERSION
from autosched.device.checked import description_of
from autosched.device.protocol import Device
from autosched.errors import StoreError, UsageError
from autosched.machine.catalogue import target_yaml
from autosched.search.defer_signals import defer_signals
from autosched.search.evaluate.recorder import RowDone, columns_of, said_of
from autosched.search.evaluate.row_answer import RowAnswer, answers
from autosched.search.evaluate.shared_rows import shared
from autosched.search.evaluate.unfinished import Key, Unfinished, answers_of, refuse_other
from autosched.search.request import TuneRequest
from autosched.search.space.plan_rows import PlanEntry
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.stopwatch import Stopwatch
from autosched.search.tuning.building import Building
from autosched.search.tuning.deadline import Deadline, OutOfTime, briefly
from autosched.search.tuning.final import Interleaves
from autosched.search.tuning.identity import versions_of
from autosched.search.tuning.measuring import Measuring
from autosched.search.tuning.remeasure import RACES, ROUNDS, raced
from autosched.search.tuning.tune import prepare
from autosched.store.recorded_space import RecordedPlan, RecordedSpace
from autosched.store.records import Measurement
from autosched.store.replay_file import read_replay, write_replay
from autosched.tiling.candidate import Candidate
from autosched.version import __version__

TWICE = 24
"""Rows that are measured once more at the end, to say how well measurements repeat."""
Listener: TypeAlias = Callable[[RowDone], None]


@dataclass(frozen=True)
class Recorded:
    """How `record_to` ended: the file's recording, the rows measured in this run, why it ended (`done`, `timeout` or
    `interrupted`), the rows that were asked for, and the file's bytes."""

    recording: RecordedSpace
    measured: int
    ended: str
    wanted: int
    bytes: int


def record(
    request: TuneRequest,
    rows: int | None,
    *,
    even: bool = False,
    jobs: int = 1,
    created: str = "",
    on_row: Listener | None = None,
) -> RecordedSpace:
    """Measure `rows` different rows of the space that `tune` would search (None: every legal one), drawn uniformly with
    the request's seed over the legal rows of all plans, or (`even`) as many of each plan; all where there are no more.
    `jobs` processes share the rows of a simulator, whose answers do not depend on who asks.

    Raises what `prepare` raises, UsageError for no rows, for every row of a plan that has too many to list, and for
    several jobs on a device that times.
    """
    run = _Session.opened(request, rows, even, jobs)
    try:
        for _ in run.measured(on_row or (lambda done: None)):
            pass
        run.finish()
        return run.recording(created)
    finally:
        run.device.close()


def record_to(
    path: Path,
    request: TuneRequest,
    rows: int | None,
    *,
    even: bool = False,
    jobs: int = 1,
    created: str = "",
    fresh: bool = False,
    on_row: Listener | None = None,
    deadline: Deadline | None = None,
) -> Recorded:
    """As `record`, into a file: what the file has already is not measured again, and every row is kept as soon as it is
    measured. At the `deadline`, which the caller has entered, and at Ctrl-C the file is written with what there is.

    Raises StoreError where the file is no recording, is one of another program, target, device, space or version (each
    is named), or is being recorded by another process; NoScheduleError where the time is over before the first row.
    With `fresh` what is there is measured anew.
    """
    if not path.absolute().parent.is_dir():
        raise UsageError(f"-o {path}: there is no such folder")
    if path.exists() and not path.is_file():  # a pipe without a writer would wait for ever
        raise StoreError(f"cannot write {path}: it is no file", hint="give another path with -o")
    deadline = deadline or Deadline(None)
    before = read_replay(path) if path.exists() else None  # what is no recording is not overwritten
    before = None if fresh else before
    with Unfinished(path) as unfinished:
        deadline.doing = "matching and laying out the spaces"
        run = _Session.opened(request, rows, even, jobs)
        try:
            if before is not None:
                refuse_other(str(path), _key_of(before), run.key)
                run.take(answers_of(before, run.plans))
            there, raced_rows = len(run.found), before.settings.get("raced", {}) if before is not None else {}
            run.take(unfinished.open(run.key, fresh))
            deadline.doing = "building and measuring the first row"
            ended, kept = "done", len(run.found)
            try:
                for key, answer in run.measured(on_row or (lambda done: None)):
                    unfinished.add(key, answer)
                if len(run.found) > there or raced_rows != run.racing:
                    run.finish()
                deadline.met()
            except OutOfTime:
                deadline.met()
                ended = "timeout"
            except KeyboardInterrupt:
                ended = "interrupted"
            with defer_signals():
                if not run.found:
                    unfinished.drop()
                    raise KeyboardInterrupt if ended == "interrupted" else deadline.failed()
                if before is not None and len(run.found) == there and not run.finished:
                    unfinished.drop()
                    return Recorded(before, 0, ended, len(run.drawn), path.stat().st_size)
                made = run.recording(created if before is None else before.created, before)
                size = write_replay(path, made)
                unfinished.drop()
            return Recorded(made, len(run.found) - kept, ended, len(run.drawn), size)
        finally:
            with briefly(when=deadline.end is not None):
                run.device.close()


@dataclass
class _Session:
    """Rows of a space, as far as they are measured. `drawn`: those wanted, in the order in which they are measured."""

    request: TuneRequest
    space: SearchSpace
    device: Device
    described: dict[str, Any]
    drawn: Rows
    even: bool
    jobs: int
    found: dict[Key, RowAnswer]
    again: tuple[float, ...] = ()
    """Of rows measured twice: by what share the second time is off."""
    finished: bool = False
    load: tuple[float, ...] = ()

    @staticmethod
    def opened(request: TuneRequest, rows: int | None, even: bool, jobs: int) -> _Session:
        if rows is not None and rows < 1:
            raise UsageError(f"{rows} rows leave nothing to record", hint="give 1 or more")
        if jobs < 1:
            raise UsageError(f"{jobs} jobs record nothing", hint="give 1 or more")
        if jobs > 1 and request.device != "simulator":
            said = f"{jobs} jobs on the device {request.device} would disturb each other"
            raise UsageError(said, hint="record in one, or on the simulator")
        plain = replace(request, store=None, strategy="random", cost_model="analytic")
        tuning = prepare(plain)
        try:
            space = tuning.study.space
            if rows is None and space.rows < space.legal:
                said = f"the space has {space.legal:,} legal rows, too many for all of them"
                raise UsageError(said, hint="record some: --rows 2048")
            drawn = _drawn(space, space.rows if rows is None else min(rows, space.rows), request.seed, even)
            described = description_of(tuning.device)
        except BaseException:
            tuning.device.close()
            raise
        return _Session(plain, space, tuning.device, described, drawn, even, jobs, {}, load=_load())

    @property
    def plans(self) -> dict[str, PlanEntry]:
        return {entry.plan.name: entry for entry in self.space.plans}

    @cached_property
    def key(self) -> dict[str, Any]:
        """What rows of one recording have in common: with another value of any of these they do not compare."""
        asked = self.request
        return {
            "program": str(asked.program),
            "device": self.described,
            "seed": asked.seed,
            "threads": asked.threads,
            "only": list(asked.only),
            "families": list(asked.families),
            "numerics": asked.numerics,
            "conditions": asked.conditions,
            "even": self.even,
            "target": f"{asked.target.name} {asked.target.version}",
            **versions_of([entry.plan for entry in self.space.plans]),
            "autosched": __version__,
        }

    @property
    def racing(self) -> dict[str, Any]:
        """How the fastest rows are measured once more; nothing where the device repeats itself."""
        return {"races": RACES, "rounds": ROUNDS} if isinstance(self.device, Interleaves) else {}

    def take(self, answers: Mapping[Key, RowAnswer]) -> None:
        """Rows that were measured before."""
        self.found |= answers

    def measured(self, tell: Listener) -> Iterator[tuple[Key, RowAnswer]]:
        """Measure the rows that are wanted and not there yet, each told as soon as it is measured."""
        keys = [self._key(self.drawn, place) for place in range(len(self.drawn))]
        left = np.array([place for place, key in enumerate(keys) if key not in self.found], np.int64)
        best = min((a.measurement.time_s for a in self.found.values() if a.measurement.time_s), default=None)
        done, total = len(keys) - len(left), len(keys)
        tell(RowDone(done, total, best))
        for place, answer in self._answers(self.drawn.take(left)):
            key = keys[int(left[place])]
            with defer_signals():
                self.found[key] = answer
                yield key, answer
            best = min((t for t in (best, answer.measurement.time_s) if t is not None), default=None)
            done += 1
            tell(RowDone(done, total, best))

    def _answers(self, rows: Rows) -> Iterator[tuple[int, RowAnswer]]:
        if self.jobs > 1:
            yield from shared(self.request, rows, self.jobs)
        else:
            yield from answers(self.space, self.device, rows)

    def finish(self) -> None:
        """Measure the fastest rows once more, in turn, and some rows a second time."""
        if isinstance(self.device, Interleaves):
            rng = np.random.default_rng(self.request.seed)
            keys = sorted(self.found)
            plans = self.plans
            candidates = [Candidate(plans[name].plan, row) for name, row in keys]
            self.again = _repeated(self.device, candidates, [self.found[k].measurement for k in keys], rng)
            new = raced(self.device, candidates, [self.found[k].measurement for k in keys], rng)
            for key, measurement in zip(keys, new, strict=True):
                if measurement is not self.found[key].measurement:
                    self.found[key] = RowAnswer.of(measurement, self.found[key].cost_s)
        self.finished = True

    def recording(self, created: str, before: RecordedSpace | None = None) -> RecordedSpace:
        """What was measured so far."""
        plans = []
        for entry in self.space.plans:
            rows = sorted(row for name, row in self.found if name == entry.plan.name)
            if rows:
                answered = [self.found[entry.plan.name, row] for row in rows]
                plans.append(_recorded_plan(entry, np.array(rows, np.int64), answered))
        asked = {name: value for name, value in self.key.items() if name not in ("program", "device")}
        asked["target_version"] = asked.pop("target")
        versions = {"clock": clocks.version(self.request.target), "features": FEATURE_VERSION}
        return RecordedSpace(
            name=self.request.program.name,
            plans=tuple(plans),
            program=str(self.request.program),
            target=target_yaml(self.request.target),
            device=self.described,
            legal=self.space.legal,
            settings={
                **asked,
                **versions,
                "python": platform.python_version(),
                "numpy": np.__version__,
                "raced": self.racing if self.finished else {},
                "noise": self._noise(plans, before),
            },
            created=created,
        )

    def _noise(self, plans: Sequence[RecordedPlan], before: RecordedSpace | None) -> dict[str, Any]:
        """How steady the machine was: quartiles of the rows' spreads and numbers of samples; by what share rows were
        off that were measured twice; how many processes were ready to run (a mean over a minute) at the beginning and
        end of each run."""
        if not isinstance(self.device, Interleaves):
            return {}
        earlier: Mapping[str, Any] = before.settings.get("noise", {}) if before is not None else {}
        spread = np.concatenate([p.spread[np.isfinite(p.spread)] for p in plans])
        repeats = np.concatenate([p.repeats[p.ok] for p in plans])
        load = [*earlier.get("load", ()), [*self.load, *_load()]]
        found = {"runs": int(earlier.get("runs", 0)) + 1, "load": load}
        found |= {"spread": _quartiles(spread), "repeats": _quartiles(repeats)}
        return found | ({"again": {"rows": len(self.again), "off": _quartiles(self.again)}} if self.again else {})

    def _key(self, rows: Rows, place: int) -> Key:
        return self.space.plans[int(rows.plan[place])].plan.name, int(rows.ids[place])


def _key_of(recording: RecordedSpace) -> dict[str, Any]:
    """What `_Session.key` was when the recording was made, as far as it says so."""
    said = dict(recording.settings)
    target = said.pop("target_version", None)
    return {**said, "target": target, "program": recording.program, "device": dict(recording.device)}


def _drawn(space: SearchSpace, rows: int, seed: int, even: bool) -> Rows:
    """Rows in the order in which they are measured. With the same seed fewer rows are among more, without `even` the
    first of them."""
    rng = np.random.default_rng(seed)
    if not even:
        return space.locate(rng.permutation(space.rows)[:rows])
    found = drawn_evenly(space, rows, seed)
    return found.take(rng.permutation(len(found)))


def drawn_evenly(space: SearchSpace, rows: int, seed: int) -> Rows:
    """`rows` different legal rows, as many of each plan as of any other: what a plan has less, the larger ones have
    more. Fewer where the space has no more."""
    parts, left = [], rows
    for place, number in enumerate(np.argsort(space.counts, kind="stable").tolist()):
        ids = space.plans[number].ids
        share = min(len(ids), left // (len(space.plans) - place))
        parts.append(Rows.of(number, np.random.default_rng((seed, number)).permutation(ids)[:share]))
        left -= share
    return Rows.join(parts)


def _repeated(
    device: Device, candidates: Sequence[Candidate], measured: Sequence[Measurement], rng: np.random.Generator
) -> tuple[float, ...]:
    """By what share the times of some rows, drawn at random, are off when they are measured a second time."""
    right = [place for place, m in enumerate(measured) if m.ok]
    chosen = rng.permutation(right)[:TWICE].tolist()
    building, measuring = Building(device, Stopwatch(time.monotonic)), Measuring(device, None, time.monotonic)
    found = []
    for place, build in zip(chosen, building.all([candidates[p] for p in chosen], together=True), strict=True):
        again, once = measuring.measured(build, "search").time_s, measured[place].time_s
        if again is not None and once is not None:
            found.append(abs(again / once - 1))
    return tuple(found)


def _recorded_plan(entry: PlanEntry, ids: npt.NDArray[np.int64], answered: Sequence[RowAnswer]) -> RecordedPlan:
    space = entry.plan.space
    index = space.rows(ids)
    terms, derived = said_of(entry.plan, ids)
    found = columns_of([a.measurement for a in answered])
    return RecordedPlan(
        name=entry.plan.name,
        version=space.version,
        decisions=space.decisions,
        indices=np.stack([np.asarray(index[d.name], np.int32) for d in space.decisions], axis=1),
        cost_s=np.array([a.cost_s for a in answered], np.float64),
        terms=terms,
        derived=derived,
        **found | {"repeats": np.array([a.repeats for a in answered], np.int32)},
    )


def _quartiles(values: Sequence[float] | npt.NDArray[Any]) -> list[float]:
    """To three digits; none of nothing."""
    return [float(f"{q:.3g}") for q in np.percentile(values, [25, 50, 75])] if len(values) else []


def _load() -> tuple[float, ...]:
    """Processes that were ready to run in the last minute, where the system says so."""
    with suppress(OSError, AttributeError):
        return (round(os.getloadavg()[0], 2),)
    return ()
