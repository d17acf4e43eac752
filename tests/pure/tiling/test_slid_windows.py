"""Windows that slide along the keys, down to CPU kernels: random ones, and each kind at the edges of tiles."""

from __future__ import annotations

from collections import Counter

import pytest
from fuzz import slid
from support.plans import machine
from support.programs.one_pass import one_pass_plans

from autosched import ir
from autosched.ir.program import Program
from autosched.tiling.plans.plan import Plan, TensorPart, TileLoopsPart

SIZES = {"h": 1, "n": 33, "l": 64, "d": 4}
WINDOWS = {
    "narrower than a vector": "i + 31 - 5 < j <= i + 31",
    "of no key": "i < j and j <= i",
    "beyond both ends": "i - 200 <= j < i + 200",
    "a lower bound alone": "j >= i + 2",
    "rows behind the last key": "2 * i <= j <= 2 * i + 17",
    "several bounds on a side": "max(0, i - 9, 2 * i - 25) <= j < min(i + 3, 40)",
}


def windowed(condition: str, **sizes: int) -> Program:
    _, head, text = slid.EXAMPLE.read_text().partition("def attention_window")
    return ir.parse((head + text).replace(slid.WINDOW, condition), sizes={**SIZES, **sizes})


@pytest.mark.sampled("narrower than a vector", "several bounds on a side")
@pytest.mark.parametrize("kind", WINDOWS)
def test_kernels_of_windows(kind: str) -> None:
    count = Counter[str]()
    assert not list(slid.wrong_kernels(5, count, windowed(WINDOWS[kind])))
    assert count["plans"] >= 1


@pytest.mark.slow
@pytest.mark.parametrize("keys", [1, 17])
def test_kernels_of_one_row(keys: int) -> None:
    assert not list(slid.wrong_kernels(2, Counter(), windowed("i + l - n - 7 < j <= i + l - n", n=1, l=keys)))


def test_blocks_that_all_rows_have_whole_have_no_mask() -> None:
    """Of both edges; a window in which no whole block fits has small ones alone."""
    (plan,) = one_pass_plans(windowed("i + 100 - 97 < j <= i + 100", l=133), machine(), sizes=((16, 32),))
    guarded = [bool(p.nest.accumulate_sums) for p in _scores(plan)]
    assert sorted(guarded) == [False, True, True]
    (plan,) = one_pass_plans(windowed("i + 100 - 20 < j <= i + 100", l=133), machine(), sizes=((16, 32),))
    assert all(p.nest.accumulate_sums for p in _scores(plan))


def _scores(plan: Plan) -> list[TensorPart]:
    """The products of the first loop over tiles that compute scores."""
    outer = next(p for p in plan.parts if isinstance(p, TileLoopsPart))
    inner = [p for p in outer.member.parts if isinstance(p, TileLoopsPart)]
    return [q for p in inner for q in p.member.parts if isinstance(q, TensorPart) and q.nest.stage.name == "S_block"]


@pytest.mark.slow
def test_a_choice_keeps_what_nobody_wrote() -> None:
    """Scores of a row as written, of which no block computed any: `x = v if c else x` reads nothing there."""
    assert not list(slid.wrong_kernels(19, Counter()))


@pytest.mark.slow
def test_random_windows() -> None:
    """`python -m tests.fuzz.slid --programs 500` looks at more of them."""
    count, wrong = slid.search(0, 6)
    assert not wrong, wrong
    assert count["plans"] >= 6
