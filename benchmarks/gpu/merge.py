"""Adds what a GPU measured elsewhere to the studies here: each outcome becomes a trial."""

from __future__ import annotations

from collections.abc import Sequence

from autosched.device.cpu.rounds import measurement
from autosched.device.protocol import Build
from autosched.search.tuning.study import Study
from autosched.store.protocol import Store
from autosched.tiling.candidate import Candidate
from benchmarks.gpu.bundle import Bundle, Entry, Problem, Recorded
from benchmarks.gpu.cases import Case
from benchmarks.gpu.prepare import study_of


def merge(bundle: Bundle, recorded: Sequence[Recorded], cases: Sequence[Case], store: Store) -> dict[str, int]:
    """New trials by case. Candidates that a study has already seen are left out: merging twice changes nothing."""
    by_name = {c.name: c for c in cases}
    problems = {p.name: p for p in bundle.problems}
    added = {}
    for one in recorded:
        if one.name in by_name:
            added[one.name] = _told(study_of(by_name[one.name], store), problems[one.name], one)
    return added


def _told(study: Study, problem: Problem, recorded: Recorded) -> int:
    seen = {trial.key for trial in study.trials}
    count = 0
    for entry, outcome in zip(problem.entries, recorded.outcomes, strict=True):
        candidate = _candidate(study, entry)
        if candidate is None or f"{entry.plan}#{entry.row}" in seen:
            continue
        study.tell(candidate, measurement(Build(candidate, error=outcome.message or None), outcome, 0.0))
        count += 1
    return count


def _candidate(study: Study, entry: Entry) -> Candidate | None:
    """The study's own candidate; None where its spaces are no longer those that the bundle was made from."""
    number = study.space.number.get(entry.plan)
    return None if number is None else Candidate(study.space.plans[number].plan, entry.row, entry.analytic_s)
