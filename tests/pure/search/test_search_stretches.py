"""A machine that was slowed for a part of the search: the final round races trials of all stretches."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conformance.synthetic import SyntheticDevice, hidden_s
from hypothesis import given
from hypothesis import strategies as st
from support.studies import PLANS, tune

from autosched.device.protocol import Build
from autosched.search.events import FinalRound
from autosched.search.tuning.final import FINALISTS, finalists, passed_over, stretches
from autosched.store import Measurement, Trial


def trial(number: int, time_s: float, level: float = 1.0) -> Trial:
    extra = {} if level == 1.0 else {"level": level}
    return Trial(number, "p", number, {}, Measurement("ok", time_s, extra=extra))


def measured(*times: float) -> list[Measurement]:
    return [Measurement("ok", t) for t in times]


def test_stretches_end_where_the_machine_is_found_to_be_faster() -> None:
    ranking = [trial(5, 1.0), trial(2, 2.0), trial(4, 2.1, 0.5), trial(1, 3.0), trial(3, 4.0)]
    assert stretches(ranking) == ["as measured", "before", "corrected", "before", "before"]
    assert [t.number for t in finalists(ranking)] == [5, 2, 4, 1]
    slowed = [trial(3, 0.9, 1.9), trial(1, 1.7), trial(2, 1.8), trial(4, 1.9)]
    assert stretches(slowed) == ["corrected", *["as measured"] * 3]
    assert [t.number for t in finalists(slowed)] == [3, 1, 2]


def test_a_race_says_who_else_belongs_into_it() -> None:
    ranking = [trial(3, 0.9, 1.9), trial(1, 1.7), trial(2, 1.75), trial(5, 1.8), trial(4, 1.9)]
    chosen = finalists(ranking)
    assert [t.number for t in chosen] == [3, 1, 2]
    assert [t.number for t in passed_over(ranking, chosen, measured(1.8, 1.7, 1.78))] == []
    assert [t.number for t in passed_over(ranking, chosen, measured(1.8, 1.76, 1.76))] == [5]
    assert [t.number for t in passed_over(ranking, chosen, measured(0.9, 1.8, 1.8))] == []
    failed = [Measurement("crash"), *measured(1.7, 1.7)]
    assert passed_over(ranking, chosen, failed) == []


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=12), st.data())
def test_one_stretch_is_raced_once(times: list[float], data: st.DataObject) -> None:
    ranking = [trial(n, t) for n, t in enumerate(sorted(times), 1)]
    chosen = finalists(ranking)
    assert chosen == ranking[: len(chosen)]
    assert len(chosen) <= FINALISTS
    raced = measured(*(data.draw(st.floats(0.5, 4.0)) for _ in chosen))
    assert passed_over(ranking, chosen, raced) == []


class Slowed(SyntheticDevice):
    """Slow until the 16th trial, and does not tell. Half of the others are compared with a kernel from before, and told
    as that machine would have run them."""

    def measure(self, build: Build, repeats: str = "search") -> Measurement:
        found = super().measure(build, repeats)
        assert found.time_s is not None
        if repeats != "search":
            return found
        count = len(self.measured)
        if count > 16 and count % 2:
            return found
        extra = found.extra | ({"level": 0.5} if count > 16 else {})
        return replace(found, time_s=found.time_s * 2, samples_s=(), extra=extra)


class Overcorrected(SyntheticDevice):
    """Every eighth trial is divided by a level that the machine had a moment later."""

    def measure(self, build: Build, repeats: str = "search") -> Measurement:
        found = super().measure(build, repeats)
        assert found.time_s is not None
        if repeats != "search" or len(self.measured) % 8:
            return found
        return replace(found, time_s=found.time_s / 2, samples_s=(), extra=found.extra | {"level": 2.0})


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("device", [Slowed, Overcorrected])
def test_the_best_is_found_on_a_machine_that_changes(device: type[SyntheticDevice], seed: int) -> None:
    result, study, events = tune(40, device(noise=0.0), seed=seed)
    plans = {p.name: p for p in PLANS}
    hidden = {t.key: float(hidden_s(plans[t.plan], plans[t.plan].space.values([t.row]))[0]) for t in study.searched}
    assert result.best is not None
    assert result.best.trial.measurement.time_s == pytest.approx(hidden[result.best.trial.key])
    assert hidden[result.best.trial.key] == min(hidden.values())
    races = [e for e in events if isinstance(e, FinalRound)]
    assert len(study.finals) == races[-1].candidates
    assert [bool(e.more) for e in races] == [False, True][: len(races)]
