"""What a candidate, a device or a store does wrong, and what a study makes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conformance.synthetic import SyntheticDevice, clock, make_plan
from support.studies import tune

from autosched.device.protocol import Build
from autosched.errors import MissingError, NoScheduleError, StoreError, WrongResultError
from autosched.search import SearchSpace
from autosched.search.events import PlanGivenUp, WorkerDied
from autosched.search.strategy.failing import GIVE_UP, failing
from autosched.store import Measurement, SqliteStore, Trial
from autosched.tiling.candidate import Candidate


def test_failures_are_trials_of_their_kind() -> None:
    ways = {0: None, 1: "build", 2: "crash", 3: "timeout", 4: "raise"}
    result, study, events = tune(40, SyntheticDevice(fail=lambda c: ways[c.row % 5]))
    assert result.done == 40
    assert sum(result.failed.values()) == sum(t.row % 5 != 0 for t in study.searched)
    assert set(result.failed) == {"build", "crash", "timeout"}
    assert study.failures["build"][0].measurement.message == "no such instruction\nin line 3"
    assert any(t.measurement.message == "RuntimeError: the device broke" for t in study.failures["crash"])
    died = [e for e in events if isinstance(e, WorkerDied)]
    assert len(died) == result.failed["crash"] + result.failed["timeout"]
    assert (result.wrong, result.exit_code) == (False, 0)


def test_a_wrong_answer_never_wins_and_is_said() -> None:
    result, study, _ = tune(30, SyntheticDevice(fail=lambda c: "wrong" if c.row % 2 else None))
    assert (result.wrong, result.exit_code) == (True, 4)
    assert result.best is not None
    assert result.best.candidate.row % 2 == 0
    assert study.failed == {"wrong": sum(t.row % 2 for t in study.searched)}


def test_a_wrong_answer_in_the_final_round_disqualifies() -> None:
    class Flaky(SyntheticDevice):
        def measure(self, build: Build, repeats: str = "search") -> Measurement:
            found = super().measure(build, repeats)
            return found if repeats == "search" or build.candidate.key != first else replace(found, status="wrong")

    study = tune(20, final_rounds=0)[1]
    first = study.ranking[0].key
    result, study, _ = tune(20, Flaky())
    assert result.wrong
    assert result.best is not None
    assert result.best.trial.key != first
    assert study.failed == {}  # of the search


def test_nothing_survives() -> None:
    says = r"none of 20 candidates survived; 20 failed with 'build'.*no such instr"
    with pytest.raises(NoScheduleError, match=says) as e:
        tune(20, SyntheticDevice(fail=lambda c: "build"))
    assert e.value.exit_code == 1


def test_nothing_survives_and_some_were_wrong() -> None:
    with pytest.raises(WrongResultError) as e:
        tune(20, SyntheticDevice(fail=lambda c: "wrong" if c.row % 4 == 0 else "crash"))
    assert e.value.exit_code == 4


def test_an_empty_space_is_no_schedule() -> None:
    with pytest.raises(NoScheduleError, match="no trials"):
        tune(5, space=SearchSpace([], clock))


def test_a_missing_device_ends_the_run() -> None:
    class Gone(SyntheticDevice):
        def build(self, candidate: Candidate) -> Build:
            raise MissingError("no compiler")

    with pytest.raises(MissingError):
        tune(5, Gone())


def test_a_store_that_fails_says_what_is_safe(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")

    class Full:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def append(self, study: str, trial: Trial) -> None:
            if trial.number > 6:
                raise StoreError("cannot keep it: disk is full", hint="free some space")
            store.append(study, trial)

    device = SyntheticDevice()
    says = r"disk is full \(6 trials are safe in the store, 1 could not be kept\)"
    with pytest.raises(StoreError, match=says) as error:
        tune(20, device, store=Full())
    assert error.value.hint == "free some space"
    assert error.value.exit_code == 2
    assert len(device.measured) == 7
    result, _, _ = tune(20, store=store)
    assert result.done == 20


@pytest.mark.parametrize("strategy", ["auto", "clock", "draft", "evolutionary", "random", "bayesian"])
def test_a_plan_that_only_fails_is_given_up_and_that_is_said(strategy: str) -> None:
    """The clock thinks plan `a` the faster one; trials that were asked for before it was given up may still come."""
    result, study, events = tune(32, SyntheticDevice(fail=lambda c: "wrong" if c.plan.name == "a" else None),
                                 strategy=strategy)  # fmt: skip
    of_plan = [t.plan for t in study.searched]
    assert result.best is not None
    assert result.best.candidate.plan.name == "b"
    said = [e for e in events if isinstance(e, PlanGivenUp)]
    assert [(e.plan, e.failed) for e in said] == [("a", GIVE_UP)]
    fourth = [n for n, plan in enumerate(of_plan) if plan == "a"][GIVE_UP - 1]
    assert "a" not in of_plan[fourth + 16 :]
    assert len(of_plan) == 32


@pytest.mark.parametrize("strategy", ["auto", "clock", "random"])
def test_no_trial_goes_to_a_plan_after_it_is_given_up(strategy: str) -> None:
    """Not even one that was asked for before."""
    fail = SyntheticDevice(fail=lambda c: "failed" if c.plan.name == "a" else None)
    _, study, _ = tune(24, fail, strategy=strategy, batch=8)
    assert [t.plan for t in study.searched].count("a") <= GIVE_UP
    assert len(study.searched) == 24


@pytest.mark.parametrize("strategy", ["auto", "clock", "random"])
@pytest.mark.parametrize("trials", [2, 4, 9])
def test_the_last_trial_is_a_plain_plans_where_all_others_fail(trials: int, strategy: str) -> None:
    """As long as tile loops only fail, a plan without them has a trial left."""
    plans = [replace(made, in_tile_loops=n < 3) for n, made in enumerate(make_plan(c, tiles=4) for c in "abcd")]
    plans[3] = replace(plans[3], speed=1e3)
    device = SyntheticDevice(fail=lambda c: None if c.plan.name == "d" else "build")
    result, study, _ = tune(trials, device, strategy=strategy, space=SearchSpace(plans, clock))
    assert result.best is not None
    assert result.best.candidate.plan.name == "d"
    assert len(study.searched) == trials


def test_plans_that_all_fail_are_all_tried_on() -> None:
    with pytest.raises(NoScheduleError, match="none of 30 candidates survived") as raised:
        tune(30, SyntheticDevice(fail=lambda c: "crash"), strategy="auto")
    assert "a fault of autosched" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("trials", "found"),
    [
        ([("a", False)] * 3, set()),
        ([("a", False)] * 4, {"a"}),
        ([("a", False)] * 9 + [("a", True)], set()),
        ([("a", False), ("b", False)] * 4 + [("b", True)], {"a"}),
    ],
)
def test_four_failures_and_no_success(trials: list[tuple[str, bool]], found: set[str]) -> None:
    assert failing(trials) == found
