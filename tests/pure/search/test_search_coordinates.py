"""The places of rows for the Gaussian process."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.strategy import trial
from conformance.synthetic import FakePlan

from autosched.search.protocol import Strategy
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.bayesian import Bayesian
from autosched.search.strategy.coordinates import Coordinates, evenness
from autosched.search.strategy.portfolio import Portfolio
from autosched.search.strategy.unclocked import Unclocked
from autosched.store.records import Measurement
from autosched.tiling.space.space import Space
from autosched.tiling.step import Decision, Step


def _space(*plans: tuple[Decision, ...], clock: bool = False) -> SearchSpace:
    def seconds(plan: FakePlan, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        column = next(iter(values.values()))
        return {"total": column * 1e-3 if clock else np.ones(len(column))}

    made = [FakePlan(f"p{n}", Space(f"p{n}", [Step("all", decisions)])) for n, decisions in enumerate(plans)]
    return SearchSpace(made, seconds)


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (Decision("threads", (16, 32, 48, 64)), [0.0, 0.5, 0.0, 1.0]),
        (Decision("tile", (1, 2, 3, 4, 5, 6)), [0.0, 0.5, 0.0, 1.0, 0.0, 0.5]),
        (Decision("threads", (16, 32, 64)), None),  # its place says it
        (Decision("tile", (2, 1)), None),
        (Decision("tile", (1, 3, 5)), None),  # nothing to say
        (Decision("tile", (7,)), None),
        (Decision("block", (0, 1, 2, 3)), None),  # 0 is no size
        (Decision("order", (1, 2, 3, 4), labels=("ij", "ji", "ijk", "kij")), None),
    ],
)
def test_evenness(decision: Decision, expected: list[float] | None) -> None:
    found = evenness(decision)
    assert (None if found is None else found.tolist()) == expected


def test_plans_share_coordinates_by_place() -> None:
    space = _space(
        (Decision("a", (1, 2, 3, 4)), Decision("b", (0, 1))),
        (Decision("a", (2, 4)), Decision("c", (1, 2, 3)), Decision("d", (5,))),
    )
    rows = Rows.join([Rows.of(0, [2 * 2 + 1, 3 * 2]), Rows.of(1, [1 * 3 + 1])])
    plain = Coordinates(space, twos=False)(rows)
    assert plain == pytest.approx(np.array([[1, 0, 2 / 3, 1, 0], [1, 0, 1, 0, 0], [0, 1, 1, 0.5, 0]]))
    evens = Coordinates(space, twos=True)(rows)
    assert evens[:, [0, 1, 4]] == pytest.approx(plain[:, [0, 1, 4]])
    assert evens[:, 2] == pytest.approx([np.log2(3) / 2, 1, 1]), "3 of 1, 2, 3, 4, and the second of two values"
    assert evens[:, 3] == pytest.approx([1, 0, np.log2(2) / np.log2(3)])
    assert evens[:, 5:].tolist() == [[0, 0], [1, 0], [0, 1]]  # of the first decision, then of the second


def _best_of(space: SearchSpace, process: Strategy, trials: int) -> float:
    """Milliseconds of the best row found where multiples of 64 are fast, and 448 of them."""
    best = np.inf
    for number in range(0, trials, 4):
        told = []
        for place, candidate in enumerate(process.propose(4)):
            values = {name: int(column[0]) for name, column in candidate.plan.space.values([candidate.row]).items()}
            threads, tile = values["threads"], values["tile"]
            ms = (1 + 0.6 * (threads % 64 > 0)) * (1 + 0.2 * (tile % 2)) * (1 + abs(threads - 448) / 3000 + tile / 60)
            told.append(trial(number + place + 1, candidate, Measurement("ok", ms / 1e3)))
            best = min(best, ms)
        process.observe(told)
    return float(best)


@pytest.mark.slow
def test_sizes_that_two_divides_are_found_sooner() -> None:
    space = _space((Decision("threads", tuple(range(16, 656, 16))), Decision("tile", tuple(range(1, 21)))))
    plain, ours = (
        [_best_of(space, strategy(space, seed, None), 32) for seed in range(4)] for strategy in (Bayesian, Unclocked)
    )
    assert max(ours) < 1.1
    assert np.mean(ours) < np.mean(plain)


def test_auto_looks_for_them_where_there_is_no_clock() -> None:
    threads = Decision("threads", (16, 32, 48, 64))
    flat, ranked = (_space((threads,), clock=c) for c in (False, True))
    assert _columns(Portfolio(flat, 0, None).members[0]) == 1 + _columns(Portfolio(ranked, 0, None).members[1])


def _columns(process: Strategy) -> int:
    assert isinstance(process, (Bayesian, Unclocked))
    return process._coordinates(Rows.of(0, [0])).shape[1]
