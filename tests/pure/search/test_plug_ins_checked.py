"""Mistakes of plug-ins: a device's are failed trials, a strategy's or a cost model's end the run with their name."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conformance.costmodel import features
from conformance.synthetic import SyntheticDevice, clock, tiny_plan
from support.paths import TESTS
from support.plug_ins import PlugIn
from support.studies import SPACE, tune

import autosched
from autosched.costmodel import registry as models
from autosched.costmodel.protocol import Prediction
from autosched.device import registry as devices
from autosched.device.checked import build_of, description_of
from autosched.device.protocol import Build
from autosched.errors import NoScheduleError, PluginError
from autosched.search import SearchSpace
from autosched.search.space.rows import Rows
from autosched.search.tuning.final import raced_by_device
from autosched.store import Measurement
from autosched.tiling.candidate import Candidate

TIMES: list[Any] = [math.nan, -1.0, math.inf, 0.0, None, "fast", True, -math.inf]
GOOD = Measurement("ok", 1e-9, (1e-9,), 0.0)
ANSWERS: dict[str, Any] = {
    **{f"a time of {time!r}": replace(GOOD, time_s=time) for time in TIMES},
    "no measurement": None,
    "a number": 1e-9,
    "an unknown status": replace(GOOD, status="fine"),
    "no status": replace(GOOD, status=None),  # type: ignore[arg-type]
    "samples of NaN": replace(GOOD, samples_s=(1e-9, math.nan)),
    "a negative cost": replace(GOOD, extra={"cost": -1.0}),
    "a cost of NaN": replace(GOOD, extra={"cost": math.nan}),
    "a spread of NaN": replace(GOOD, spread=math.nan),
    "costs of NaN": replace(GOOD, costs_s={"check": math.nan}),
    "an extra that is no JSON": replace(GOOD, extra={"x": object()}),
    "a message that is no text": replace(GOOD, message=3),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_what_cannot_be_never_wins(answer: Any) -> None:
    class Broken(SyntheticDevice):
        def measure(self, build: Build, repeats: str = "search") -> Measurement:
            return answer if build.candidate.row % 2 else super().measure(build, repeats)

    result, study, _ = tune(16, Broken())
    assert result.best is not None
    assert result.best.candidate.row % 2 == 0
    assert study.failed == {"crash": sum(t.row % 2 for t in study.searched)}
    said = {t.measurement.message for t in study.failures["crash"]}
    assert all("Broken is at fault: measure answered" in message for message in said), said


def test_a_time_that_fails_in_the_final_round_disqualifies() -> None:
    class Fades(SyntheticDevice):
        def measure(self, build: Build, repeats: str = "search") -> Measurement:
            found = super().measure(build, repeats)
            return replace(found, time_s=math.nan) if repeats == "final" else found

    result, study, _ = tune(8, Fades())
    assert result.best is not None
    assert result.best.trial.round == "search"
    assert all("ok with a time of nan" in t.measurement.message for t in study.finals)
    assert result.best.trial.key not in {t.key for t in study.finals}


def test_what_a_device_races_is_checked() -> None:
    class Races:
        def __init__(self, *answers: Any) -> None:
            self.answers = list(answers)

        def measure_interleaved(self, builds: Any, rounds: int) -> list[Measurement]:
            return self.answers

    builds: Any = [None, None]
    found = raced_by_device(Races(GOOD, replace(GOOD, time_s=-1.0)), builds, 3)
    assert [m.status for m in found] == ["ok", "crash"]
    with pytest.raises(PluginError, match="one measurement a build"):
        raced_by_device(Races(GOOD), builds, 3)


def test_telling_by_hand_is_checked() -> None:
    _, study, _ = tune(1)
    (candidate,) = study.ask(1)
    assert study.tell(candidate, replace(GOOD, time_s=math.nan)).measurement.status == "crash"


def test_builds_that_are_none() -> None:
    for answer in (None, 3, Build(SPACE.candidates(Rows.of(0, [3]))[0], payload=1)):

        class Broken(SyntheticDevice):
            given: Any = answer

            def build(self, candidate: Candidate) -> Build:
                return self.given  # type: ignore[no-any-return]

        with pytest.raises(NoScheduleError, match=r"'build'.*Broken is at fault: build answered"):
            tune(4, Broken())


def test_a_build_that_took_no_number_of_seconds() -> None:
    (candidate,) = SPACE.candidates(SPACE.locate(np.array([0])))
    assert build_of(Build(candidate, payload=1, seconds=math.nan), candidate, "d").error
    assert build_of(Build(candidate, payload=1, seconds=1), candidate, "d").error is None


@pytest.mark.parametrize("said", [None, {}, {"name": 3}, {"name": "d", "x": object()}, {"name": "d", "x": math.nan}])
def test_descriptions(said: Any) -> None:
    device: Any = type("Mute", (), {"describe": lambda self: said})()
    with pytest.raises(PluginError, match="Mute is at fault: describe"):
        description_of(device)


def test_a_device_that_does_not_start(plug_in: PlugIn) -> None:
    def broken(*given: Any, **options: Any) -> Any:
        raise ZeroDivisionError("division by zero")

    plug_in("autosched.devices", broken)
    with pytest.raises(PluginError, match="'mine' of package:made does not start: ZeroDivisionError"):
        devices.device("mine")
    plug_in("autosched.devices", lambda *given, **options: object())
    with pytest.raises(PluginError, match="has no method describe"):
        devices.device("mine")


LEGAL = SearchSpace([tiny_plan()], clock)
PLAN = LEGAL.plans[0].plan
ILLEGAL = next(row for row in range(PLAN.space.size) if PLAN.space.why_not(row))
PROPOSALS: dict[str, tuple[Any, str]] = {
    "no list": (None, "answered a NoneType"),
    "no candidates": ([1, 2], "proposed a int"),
    "a row past the end": ([Candidate(PLAN, PLAN.space.size)], "which has rows 0 to 7"),
    "a row before the first": ([Candidate(PLAN, -1)], "which has rows 0 to 7"),
    "half a row": ([Candidate(PLAN, 0.5)], "row 0.5"),  # type: ignore[arg-type]
    "an illegal row": ([Candidate(PLAN, ILLEGAL)], "not legal: 16 registers > 8"),
    "another study's plan": ([Candidate(tiny_plan("other"), 0)], "not one of this study"),  # type: ignore[arg-type]
    "one twice": ([Candidate(PLAN, 0), Candidate(PLAN, 0)], "twice"),
    "too many": ([Candidate(PLAN, 0)] * 100, "100 candidates where"),
}


@pytest.mark.parametrize(("answer", "says"), PROPOSALS.values(), ids=PROPOSALS.keys())
def test_proposals_out_of_the_space(answer: Any, says: str, plug_in: PlugIn) -> None:
    class Wild:
        def __init__(self, *given: Any) -> None:
            pass

        def propose(self, n: int) -> Any:
            return answer

        def observe(self, trials: Any) -> None:
            pass

    plug_in("autosched.strategies", Wild)
    with pytest.raises(PluginError, match=rf"the strategy 'mine' is at fault: .*{says}"):
        tune(4, space=LEGAL, strategy="mine")


def test_a_strategy_that_raises(plug_in: PlugIn) -> None:
    class Broken:
        propose = observe = lambda self, given: 1 / 0

    plug_in("autosched.strategies", lambda *given: Broken())
    with pytest.raises(PluginError, match=r"observe raised ZeroDivisionError: .* \(test_plug_ins_checked.py:\d+\)"):
        tune(4, strategy="mine")
    plug_in("autosched.strategies", lambda *given: object())
    with pytest.raises(PluginError, match="has no method propose"):
        tune(4, strategy="mine")


def test_a_class_that_is_not_made_as_strategies_are() -> None:
    class Bare:
        pass

    recording = TESTS.parent / "benchmarks" / "recorded" / "complete" / "softmax.json.gz"
    with pytest.raises(PluginError, match="'Bare' is at fault: its constructor raised TypeError") as caught:
        autosched.simulate(recording, [Bare], trials=2, repeats=1)
    assert "a space, a seed and a cost model" in str(caught.value.hint)


FINE = np.zeros(5)
PREDICTIONS: dict[str, tuple[Any, str]] = {
    "none": (None, "answered a NoneType"),
    "NaN": (Prediction(np.array([0, np.nan, 0, 0, 0]), FINE, FINE), "log_s of nan for row 1"),
    "infinite": (Prediction(FINE, np.full(5, np.inf), FINE), "sigma of inf for row 0"),
    "too few": (Prediction(np.zeros(3), FINE, FINE), r"log_s of shape \(3,\) for 5 rows"),
    "one for all": (Prediction(FINE, FINE, np.array(1.0)), r"valid of shape \(\) for 5 rows"),
    "negative": (Prediction(FINE, FINE - 1, FINE), "sigma below 0"),
    "no probability": (Prediction(FINE, FINE, FINE + 2), "probability"),
    "texts": (Prediction(np.array(["a"] * 5), FINE, FINE), "no array of numbers"),
}


@pytest.mark.parametrize(("answer", "says"), PREDICTIONS.values(), ids=PREDICTIONS.keys())
def test_predictions(answer: Any, says: str, plug_in: PlugIn) -> None:
    class Wild:
        version = "wild/1"
        fit = predict = lambda self, *given: answer

    plug_in("autosched.cost_models", lambda seed, threads: Wild())
    with pytest.raises(PluginError, match=rf"the cost model 'mine' is at fault: .*{says}"):
        models.cost_model("mine").predict(features(5), np.full(5, 1e-3))


def test_a_row_without_a_clock_may_be_unknown(plug_in: PlugIn) -> None:
    class Mine:
        version = "mine/1"
        fit = predict = lambda self, *given: Prediction(np.array([0.0, np.nan]), np.ones(2), np.ones(2))

    plug_in("autosched.cost_models", lambda seed, threads: Mine())
    found = models.cost_model("mine").predict(features(2), np.array([1e-3, np.nan]))
    assert found.log_s[0] == 0
