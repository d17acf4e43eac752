"""`auto` with a clock: how it opens, who leads, whose the places are, and that a study which is continued goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from conformance.strategy import space, trial
from hypothesis import given, settings
from hypothesis import strategies as st
from support.paths import ROOT

from autosched.device.replay import ReplayDevice
from autosched.search.protocol import Strategy
from autosched.search.space.recorded import space_of
from autosched.search.space.rows import Rows
from autosched.search.strategy.coordinates import Coordinates
from autosched.search.strategy.memory import TrialHistory
from autosched.search.strategy.opening import Doubting, Opening, drawn
from autosched.search.strategy.portfolio import Portfolio
from autosched.store.exchanged import read_any
from autosched.store.records import Measurement, Trial
from autosched.tiling.candidate import Candidate

RECORDED = ROOT / "benchmarks" / "recorded"


class _Noting:
    """Writes down who is asked."""

    def __init__(self, member: Strategy, asked: list[str]) -> None:
        self.member, self.asked = member, asked

    def propose(self, n: int) -> list[Candidate]:
        if n:
            self.asked.append(type(self.member).__name__)
        return self.member.propose(n)

    def observe(self, trials: Sequence[Trial]) -> None:
        self.member.observe(trials)


def played(
    seconds: Callable[[float, int], float], *, trials: int = 40, split: int = 0, seed: int = 0
) -> tuple[list[str], list[str]]:
    """Who was asked and what was proposed in batches of four, where a row that the clock gives so many seconds takes so
    many; `split`: as a study that is continued after so many trials."""
    asked: list[str] = []

    def noted() -> Portfolio:
        portfolio = Portfolio(space(), seed, None)
        portfolio.members = tuple(_Noting(member, asked) for member in portfolio.members)
        return portfolio

    rows, portfolio, done = space(), noted(), list[Trial]()
    while len(done) < trials:
        if len(done) == split > 0:
            portfolio = noted()
            portfolio.observe(done)
        for c in portfolio.propose(4):
            said = float(rows.analytic(Rows.of(rows.number[c.plan.name], [c.row]))[0])
            done.append(trial(len(done) + 1, c, Measurement("ok", seconds(said, len(done)))))
        portfolio.observe(done[-4:])
    return asked, [t.key for t in done]


def test_favourites_and_rows_drawn_come_first_in_turn() -> None:
    portfolio, rows = Portfolio(space(), 3, None), space()
    batch = portfolio.propose(4)
    said = [float(rows.analytic(Rows.of(rows.number[c.plan.name], [c.row]))[0]) for c in batch]
    assert [c.key for c in batch] == [c.key for c in Opening(space(), 3).candidates]
    assert said[0] == rows.best(1)[1][0]
    assert not portfolio.ahead, "who leads is not known yet"
    portfolio.observe([trial(n, c, Measurement("ok", s)) for n, (c, s) in enumerate(zip(batch, said, strict=True), 1)])
    assert portfolio.ahead
    one_by_one = Portfolio(space(), 3, None)
    assert [one_by_one.propose(1)[0].key for _ in range(4)] == [c.key for c in batch]


def test_a_clock_that_is_right_leads_and_shares_places() -> None:
    """From the 17th row on, one of four is of the search that asks the clock least."""
    asked, _ = played(lambda clock, n: clock, trials=32)
    assert asked == ["Auto"] * 3 + ["Auto", "Doubting"] * 4


def test_a_clock_whose_favourites_are_slow_is_left_at_once() -> None:
    asked, _ = played(lambda clock, n: 1 / clock, trials=32)
    assert asked == ["Doubting"] * 3 + ["Doubting", "Auto"] * 4


def test_a_clock_that_misleads_later_is_left_then() -> None:
    """Its favourites are faster than rows drawn; the rows that it says are next come out the slower the faster it says
    they are, and once that is beyond chance it does not lead."""
    asked, _ = played(lambda clock, n: clock if n < 4 else 1e3 / clock, trials=36)
    assert asked[:3] == ["Auto"] * 3
    assert asked[-2:] == ["Doubting", "Auto"]


def test_what_fails_says_nothing_of_the_clock() -> None:
    opening = Opening(space(), 0)
    first, second, third, fourth = (c.key for c in opening.candidates)
    assert not opening.misled({first: np.inf, third: np.inf, second: 1.0, fourth: 1.0})
    assert not opening.misled({first: 2.0, third: np.inf, second: 3.0, fourth: np.inf})
    assert opening.misled({first: 2.0, third: np.inf, second: 1.0, fourth: np.inf})
    assert not opening.misled({first: 2.0, third: 2.0, second: 1.0}), "one is missing"


def test_the_portfolio_takes_turns_while_it_stands_still() -> None:
    """Trials that never get better: after 32 of them another leads every fourth batch, nothing is proposed twice."""
    asked, keys = played(lambda clock, n: 1.0, trials=68)
    leaders = [name for name in asked if name != "Doubting"]
    assert leaders == ["Auto"] * 8 + [*["Auto"] * 3, "Bayesian"] * 2
    assert len(set(keys)) == 68


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 2**16), st.sampled_from([(-1.0, 1), (-1.0, 2), (0.0, 1), (0.0, 2), (1.0, 1), (1.0, 4)]))
def test_a_study_that_is_continued_goes_on_as_if_it_had_not_stopped(seed: int, case: tuple[float, int]) -> None:
    """Whether the clock is right, wrong or says nothing: up to the first fit of `Unclocked`, which is after two batches
    where it leads, and where it does not, once places are shared."""
    power, batches = case

    def seconds(clock: float, n: int) -> float:
        return float(clock**power) * (1 + (n * 7 + seed) % 5 / 10)

    whole = played(seconds, trials=24, seed=seed)
    assert played(seconds, trials=24, seed=seed, split=4 * batches) == whole


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("complete/layer_norm_cold", 0.8, 1.0),
        ("complete/row_norms_200x77", 0.0, 0.1),
        ("complete/byte_dots_64x150", 0.0, 0.1),
        ("gemm_u8s8_384x768x640", 0.0, 0.1),
        ("depthwise_f32_56x56x144_s2", 0.0, 0.2),
    ],
)
def test_on_recordings_the_opening_tells_whose_favourites_are_slow(name: str, least: float, most: float) -> None:
    """Whatever the clock's rank over all rows, 0.42, 0.05, 0.49, 0.94 and 0.79: in the first recording its favourites
    are slower than half of the rows, in the others they are fast. Shares of 25 seeds."""
    recording = read_any(RECORDED / f"{name}.json.gz")
    rows, device = space_of(recording), ReplayDevice(recording=recording)
    found = []
    for seed in range(25):
        opening = Opening(rows, seed)
        measured = {c.key: device.measure(device.build(c)).cost for c in opening.candidates}
        found.append(opening.misled({key: np.inf if cost is None else cost for key, cost in measured.items()}))
    assert least <= np.mean(found) <= most


def test_rows_are_drawn_from_the_half_that_the_clock_thinks_faster() -> None:
    recording = read_any(RECORDED / "complete" / "softmax.json.gz")
    rows = space_of(recording)
    chosen = drawn(rows, TrialHistory(rows), 100, np.random.default_rng(0))
    middle = np.median(np.concatenate([rows.analytic_of_plan(n) for n in range(len(rows.plans))]))
    assert len(chosen.distinct()) == 100
    assert (rows.analytic(chosen) <= middle).all()


def test_a_doubted_clock_still_says_where_first_rows_are_spread() -> None:
    """Over the half that it thinks faster, farther from each other than rows drawn from it. Shares of ten seeds."""
    recording = read_any(RECORDED / "complete" / "layer_norm_cold.json.gz")
    rows = space_of(recording)
    middle = np.median(np.concatenate([rows.analytic_of_plan(n) for n in range(len(rows.plans))]))

    def nearest(chosen: Rows) -> float:
        z = Coordinates(rows, twos=True)(chosen)
        between = np.linalg.norm(z[:, None] - z[None], axis=-1)
        return float(between[np.triu_indices(len(z), 1)].min())

    farther = []
    for seed in range(10):
        proposed = Doubting(rows, seed, None).propose(6)
        spread = Rows.join([Rows.of(rows.number[c.plan.name], [c.row]) for c in proposed])
        assert (rows.analytic(spread) <= middle).all()
        farther.append(nearest(spread) > nearest(drawn(rows, TrialHistory(rows), 6, np.random.default_rng(seed))))
    assert np.mean(farther) > 0.9
