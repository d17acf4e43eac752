"""A busy neighbour, scripted: it is seen, reported, and does not choose the winner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from conformance.synthetic import SyntheticDevice, clock, make_plan, record
from hypothesis import given
from hypothesis import strategies as st

from autosched.device.protocol import Build
from autosched.search import Event, Result, SearchSpace, Stopwatch, open_study, run
from autosched.search.events import MeasuredAgain, Noisy
from autosched.search.tuning.measuring import Measuring
from autosched.search.tuning.noise import AGAIN, Noise, doubtful, joined, levels, noise_of, quiet_rounds, settled
from autosched.store import Measurement
from autosched.tiling.candidate import Candidate

SPACE = SearchSpace([make_plan("a", tiles=4)], clock)


def raced(*rounds: Sequence[float]) -> list[Measurement]:
    """One measurement for each candidate's times by round."""
    return [Measurement("ok", float(np.median(r)), tuple(r), extra={"rounds_s": list(r)}) for r in rounds]


def under(machine: Sequence[float], *candidates: float) -> list[Measurement]:
    """Candidates of constant speed on a machine that is slower by a factor in each round."""
    return raced(*([c * m for m in machine] for c in candidates))


def test_what_all_share_is_the_machine_and_what_one_has_is_its_own() -> None:
    np.testing.assert_allclose(levels(under([1, 1, 2, 1, 1], 1.0, 1.1, 3.0)), [1, 1, 2, 1, 1])
    own = raced([1, 1, 5, 1, 1], [2, 2, 2, 2, 2], [3, 3, 3, 3, 3])
    np.testing.assert_allclose(levels(own), 1)
    assert levels([Measurement("crash")]).size == 0


def test_the_noise_of_a_race() -> None:
    noise = noise_of(under([1, 1.5, 1, 1, 1.5], 1.0, 2.0), [1.0, 2.0])
    assert (noise.disturbed, noise.rounds, noise.quiet, noise.drift) == (2, 5, 3, 0.0)
    assert noise.slowdown == pytest.approx(0.5)
    assert noise_of(under([1.2] * 5, 1.0, 2.0), [1.0, 2.0]).drift == pytest.approx(0.2)
    assert noise_of([Measurement("crash")]) == Noise()


def test_quiet_rounds_decide_where_there_are_enough() -> None:
    found = quiet_rounds(under([3, 1, 1, 1, 3], 1.0, 2.0))
    assert [m.time_s for m in found] == [1.0, 2.0]
    assert found[0].extra["rounds_s"] == [1, 1, 1]
    few = under([3, 1, 3, 1, 3], 1.0)
    assert quiet_rounds(few) == few


@dataclass
class Races:
    """Answers one race after the other, and notes what is said of them."""

    results: list[list[Measurement]]
    said: list[tuple[int, bool]] = field(default_factory=list)

    def __call__(self) -> list[Measurement]:
        return self.results.pop(0)

    def say(self, noise: Noise, again: bool) -> None:
        self.said.append((noise.disturbed, again))


def test_a_quiet_race_is_run_once() -> None:
    races = Races([under([1, 1, 1.04, 1, 1.5], 1.0, 1.1)])
    found, noise = settled(races, races.say)
    assert races.said == []
    assert noise.disturbed == 1
    assert found[0].extra["rounds_s"] == [1, 1, 1.04, 1]


def test_a_disturbed_race_is_run_again_and_the_winner_stays() -> None:
    # The neighbour comes when the faster one is measured, so that alone the first race would choose the other.
    first = raced([1.0, 1.4, 1.4, 1.4, 1.0], [1.1, 1.45, 1.2, 1.2, 1.1], [1.3, 1.8, 1.8, 1.8, 1.3])
    assert min(first, key=lambda m: m.time_s or 0) is first[1]
    races = Races([first, under([1] * 5, 1.0, 1.1, 1.3)])
    found, _ = settled(races, races.say)
    assert races.said == [(3, True)]
    assert min(found, key=lambda m: m.time_s or 0) is found[0]
    assert found[0].time_s == 1.0


def test_a_neighbour_that_stays_is_reported_and_not_waited_for() -> None:
    shaken = [1, 2, 1, 2, 2, 2, 1, 2, 2, 2]
    races = Races([under(shaken, 1.0, 1.2) for _ in range(AGAIN + 3)])
    found, noise = settled(races, races.say)
    assert races.said == [(7, True), (14, True)]
    assert (noise.disturbed, noise.rounds) == (21, 30)
    assert [m.time_s for m in found] == [1.0, 1.2]
    races = Races([under(shaken, 1.0, 1.2)])
    settled(races, races.say, late=lambda: True)
    assert races.said == [(7, False)]


def test_a_failure_in_a_further_race_is_the_result() -> None:
    failed = Measurement("wrong")
    assert joined(under([1, 1], 1.0, 2.0), [failed, *under([1, 1], 2.0)])[0] is failed
    assert joined([failed], under([1, 1], 1.0)) == [failed]


@given(machine=st.lists(st.floats(1, 3), min_size=5, max_size=9), gap=st.floats(1.001, 2))
def test_what_slows_all_alike_never_changes_the_winner(machine: list[float], gap: float) -> None:
    first, second = quiet_rounds(under(machine, 1.0, gap))
    assert (first.time_s or 0) < (second.time_s or 0)


def test_a_trial_is_in_doubt_only_where_it_might_have_won() -> None:
    wide = Measurement("ok", 2.0, (0.9, 2.0, 2.1), 0.6)
    assert doubtful(wide, 1.0)
    assert not doubtful(wide, None)
    assert doubtful(wide, 0.8)  # its least is not the best, and belongs among the best
    assert not doubtful(wide, 0.6)
    assert not doubtful(wide, 3.0)
    assert not doubtful(replace(wide, spread=0.01), 1.0)
    assert not doubtful(Measurement("crash"), 1.0)


# In the loop


@dataclass
class Neighboured(SyntheticDevice):
    """`busy(number of the measurement, repeats)` is the factor by which the machine is slower."""

    busy: Callable[[int, str], float] = lambda number, repeats: 1.0
    finals: int = 0

    def measure(self, build: Build, repeats: str = "search") -> Measurement:
        number = len(self.measured) if repeats == "search" else self.finals
        self.finals += repeats == "final"
        factor = self.busy(number, repeats)
        found = super().measure(build, repeats)
        assert found.time_s is not None
        slow = found.time_s * factor
        samples = (found.time_s, slow, slow) if factor > 1 else (found.time_s,) * 3
        return replace(found, time_s=slow, samples_s=samples, spread=factor - 1)


def tuned(device: Neighboured, seed: int = 0) -> tuple[Result, list[Event]]:
    events: list[Event] = []
    study = open_study(record(seed=seed), SPACE, strategy_name="random", watch=Stopwatch(device.clock))
    return run(study, device, 20, listener=events.append), events


def test_a_neighbour_in_the_final_round_is_told_and_changes_nothing() -> None:
    quiet, events = tuned(Neighboured(noise=0.0))
    assert not [e for e in events if isinstance(e, Noisy)]
    assert quiet.noise == Noise(0, 5, 0.0, 0.0)
    # Five candidates a round: the second to the fourth round of the first race are slow.
    disturbed, events = tuned(Neighboured(noise=0.0, busy=lambda n, r: 1.5 if r == "final" and 5 <= n < 20 else 1.0))
    told = [e for e in events if isinstance(e, Noisy)]
    assert [(e.disturbed, e.rounds, e.again) for e in told] == [(3, 5, True)]
    assert told[0].slowdown == pytest.approx(0.5)
    assert disturbed.noise is not None
    assert (disturbed.noise.disturbed, disturbed.noise.rounds) == (3, 10)
    assert quiet.best is not None
    assert disturbed.best is not None
    assert disturbed.best.trial.key == quiet.best.trial.key
    assert disturbed.best.time_s == pytest.approx(quiet.best.time_s)


def test_a_neighbour_in_the_search_does_not_hide_the_winner() -> None:
    quiet, _ = tuned(Neighboured(noise=0.0), seed=1)
    assert quiet.best is not None
    place = quiet.best.trial.number - 1
    assert place > 0
    hiding = Neighboured(noise=0.0, busy=lambda n, r: 3.0 if (n, r) == (place, "search") else 1.0)
    hidden, events = tuned(hiding, seed=1)
    again = [e for e in events if isinstance(e, MeasuredAgain)]
    assert [(e.first_s, e.again_s) for e in again] == [
        (pytest.approx(3 * quiet.best.time_s), pytest.approx(quiet.best.time_s))
    ]
    assert hidden.best is not None
    assert hidden.best.trial.key == quiet.best.trial.key


@pytest.mark.parametrize(("disturbed", "measured"), [(0, 1), (1, 2), (2, 3), (9, 3)])
def test_a_trial_in_doubt_is_measured_again_a_few_times(disturbed: int, measured: int) -> None:
    device = Neighboured(noise=0.0, busy=lambda n, r: 3.0 if n < disturbed else 1.0)
    candidate = Candidate(SPACE.plans[0].plan, int(SPACE.best(1)[0].ids[0]))
    alone = SyntheticDevice(noise=0.0)
    quiet_s = alone.measure(alone.build(candidate)).time_s
    assert quiet_s is not None
    found = Measuring(device, quiet_s / 1.2, device.clock).searched(device.build(candidate))
    assert len(found.made) == measured
    assert found.counts.time_s == pytest.approx(3 * quiet_s if disturbed > measured else quiet_s)


def test_a_slower_machine_in_the_final_round_is_told_as_drift() -> None:
    result, events = tuned(Neighboured(noise=0.0, busy=lambda n, r: 1.3 if r == "final" else 1.0))
    assert not [e for e in events if isinstance(e, Noisy)]
    assert result.noise is not None
    assert result.noise.drift == pytest.approx(0.3)
