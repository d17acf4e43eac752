"""Schedules that name some decisions: the clock chooses the others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.plans import machine, plans_of

from autosched.errors import StoreError, UnknownNameError, UsageError
from autosched.ir import workload
from autosched.search.space.rows import Rows
from autosched.search.space.scored_space import space_of
from autosched.search.space.space import SearchSpace
from autosched.search.tuning.user_schedules import candidate_of, without_effect
from autosched.store.exchange import read_schedule
from autosched.store.records import Trial
from autosched.tiling.candidate import Candidate


@pytest.fixture(scope="module")
def space() -> SearchSpace:
    plans = [p for p in plans_of(workload("matmul", m=32, n=64, k=64), machine()) if p.tensor_parts][:3]
    return space_of(plans)


def partial(folder: Path, **given: object) -> Trial:
    (folder / "part.json").write_text(json.dumps(given))
    return read_schedule(folder / "part.json")[1]


def test_the_clock_chooses_what_is_left_open(space: SearchSpace, tmp_path: Path) -> None:
    schedule = partial(tmp_path, schedule={"reg_i": 3, "reg_j": 1})
    found = candidate_of(schedule, space)
    assert (found.schedule.values["reg_i"], found.schedule.values["reg_j"]) == (3, 1)
    assert without_effect(schedule, found) == ()
    least = np.inf
    for number, entry in enumerate(space.plans):
        values = entry.plan.space.values(entry.ids)
        here = (values["reg_i"] == 3) & (values["reg_j"] == 1)
        least = min(least, float(space.analytic_of_plan(number)[here].min(initial=np.inf)))
    (seconds,) = space.analytic(_rows(space, found)).tolist()
    assert seconds == pytest.approx(least)


def _rows(space: SearchSpace, candidate: Candidate) -> Rows:
    return Rows.of(space.number[candidate.plan.name], np.array([candidate.row]))


def test_a_plan_may_be_named(space: SearchSpace, tmp_path: Path) -> None:
    plan = space.plans[1].plan
    assert candidate_of(partial(tmp_path, plan=plan.name, schedule={"reg_i": 2}), space).plan is plan
    with pytest.raises(UsageError, match="no plan here is called 'none'"):
        candidate_of(partial(tmp_path, plan="none", schedule={"reg_i": 2}), space)


def test_what_no_row_has(space: SearchSpace, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown decision 'reg_q'"):
        candidate_of(partial(tmp_path, schedule={"reg_q": 2}), space)
    domains = {n: space.plans[0].plan.space.decision(n).domain[-1] for n in ("reg_i", "reg_j")}
    with pytest.raises(UsageError, match=r"no schedule of .* has all that was asked for: .* > .*reg_i = .* is wanted"):
        candidate_of(partial(tmp_path, plan=space.plans[0].plan.name, schedule=domains), space)


def test_other_files_say_how_one_is_written(tmp_path: Path) -> None:
    for given in ({}, {"schedule": {}}):
        with pytest.raises(StoreError) as error:
            partial(tmp_path, **given)
        assert '{"schedule": {"reg_i": 8}}' in (error.value.hint or "")
