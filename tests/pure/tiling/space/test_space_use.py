"""Spaces as their users meet them: numbers in sentences, refusals with a fix, uniform samples, sparse large spaces."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from autosched.errors import UnknownNameError, UsageError
from autosched.logic import Var, any_of, ceil_div
from autosched.tiling.space import sample as sampling
from autosched.tiling.space.space import Space
from autosched.tiling.step import Decision, Rule, Step

MR, NR, KC, UNROLL, MODE = (Var(n) for n in ("mr", "nr", "kc", "unroll", "mode"))


def micro(registers: int = 32, **constants: int) -> Space:
    tile = Step(
        "tile",
        (Decision("mr", (1, 2, 4, 6, 8, 14)), Decision("nr", (1, 2, 3, 4))),
        (Rule("registers", Var("registers") <= Var("limit"), "{registers} vector registers > {limit}"),),
        {"registers": MR * NR + NR + 1},
    )
    depth = Step(
        "depth",
        (
            Decision("kc", (64, 128, 262144)),
            Decision("unroll", (1, 2, 4)),
            Decision("mode", (0, 1), ("plain", "ahead")),
        ),
        (Rule("cache", Var("bytes") <= 1 << 20, "{bytes} bytes of a panel > 1,048,576 in mode {mode}"),),
        {"bytes": KC * NR * 64},
        {"unroll": MODE.eq(1)},
    )
    return Space("micro", [tile, depth], {"limit": registers, **constants})


def test_columns_are_named_in_order_and_rows_count_from_the_first_decision() -> None:
    space = micro()
    assert [d.name for d in space.decisions] == ["mr", "nr", "kc", "unroll", "mode"]
    assert [r.name for r in space.rules] == ["registers", "cache", "canonical"]
    assert space.size == 6 * 4 * 3 * 3 * 2
    assert space.schedule(0).values == {"mr": 1, "nr": 1, "kc": 64, "unroll": 1, "mode": 0}
    assert str(space.schedule(1)) == "mr=1  nr=1  kc=64  unroll=1  mode=ahead"
    assert space.schedule(space.size // 6).values["mr"] == 2


def test_sentences_carry_the_numbers_of_the_row() -> None:
    space = micro()
    row = space.row_of({"mr": 14, "nr": 4, "kc": 262144, "unroll": 4, "mode": "ahead"})
    assert space.why_not(row) == [
        "61 vector registers > 32",
        "67,108,864 bytes of a panel > 1,048,576 in mode ahead",
        "unroll 4 changes nothing (mode 1 = 1): only 1 is kept",
    ]
    assert space.why_not(space.row_of({"mr": 8, "nr": 3})) == []


def test_an_empty_space_says_which_rules_contradict_with_the_nearest_numbers() -> None:
    space = micro(registers=2)
    explanation = space.explain()
    assert explanation is not None
    assert explanation.rules == ("registers",)
    assert str(explanation) == "no schedule: 3 vector registers > 2"  # mr=1, nr=1 comes nearest
    wide = Step("wide", rules=(Rule("reuse", MR * NR >= 36, "a tile of {mr} x {nr} reuses too little"),))
    both = Space("both", [*micro().steps, wide], {"limit": 32}).explain()
    assert both is not None
    assert both.rules == ("registers", "reuse")
    assert str(both) == "no schedule: 46 vector registers > 32 and a tile of 14 x 2 reuses too little"
    assert micro().explain() is None


def test_unknown_names_and_values_name_the_nearest() -> None:
    space = micro()
    with pytest.raises(UnknownNameError, match="did you mean 'unroll'"):
        space.row_of({"unrol": 2})
    with pytest.raises(UsageError, match="kc cannot be 100\nhelp: nearest is 128"):
        space.row_of({"kc": 100})
    with pytest.raises(UnknownNameError, match="did you mean 'ahead'"):
        space.row_of({"mode": "ahed"})
    with pytest.raises(UsageError, match="not in the space"):
        space.schedule(space.size)
    for text in ("{", "[1]", '{"schedule": {"mr": [1]}}'):
        with pytest.raises(UsageError, match="not a schedule"):
            space.from_json(text)
    assert space.from_json('{"mr": 2}').values["mr"] == 2
    assert json.loads(space.to_json(1))["schedule"]["mode"] == "ahead"


def test_mistakes_in_steps_are_found_when_the_space_is_made() -> None:
    a = Decision("a", (1, 2))
    for steps in (
        [Step("s", (a, a))],
        [Step("s", (Decision("a", ()),))],
        [Step("s", (Decision("a", (1, 1)),))],
        [Step("s", (a,), derived={"q": Var("r"), "r": Var("a")})],
        [Step("s", (a,), (Rule("x", Var("b") < 1, ""),))],
        [Step("s", (a,), (Rule("x", Var("a") < 1, "{b}"),))],
        [Step("s", (a,), (Rule("x", Var("a") < 1, ""), Rule("x", Var("a") < 2, "")))],
    ):
        with pytest.raises(ValueError, match=r"domain|name|refers|rule"):
            Space("wrong", steps)
    with pytest.raises(UsageError, match="more than an id can number"):
        Space("huge", [Step("s", tuple(Decision(f"d{i}", tuple(range(256))) for i in range(8)))])


def test_the_version_follows_what_rows_mean() -> None:
    assert micro().version == micro().version
    assert micro(registers=16).version != micro().version
    wider = Space("micro", [*micro().steps, Step("more", (Decision("z", (0, 1)),))], {"limit": 32})
    assert wider.version != micro().version


def test_a_space_without_decisions_has_one_row() -> None:
    space = Space("empty", [])
    assert (space.size, space.enumerate().ids.tolist(), space.schedule(0).values) == (1, [0], {})
    assert space.sample(3, np.random.default_rng(0)).tolist() == [0]
    never = Space("never", [Step("s", rules=(Rule("no", Var("k") > 5, "{k} <= 5"),))], {"k": 5})
    assert (never.enumerate().ids.tolist(), never.enumerate().rejected) == ([], {"no": 1})
    assert str(never.explain()) == "no schedule: 5 <= 5"


def test_a_limit_ends_early_and_says_so() -> None:
    some = micro().enumerate(block=4, limit=5)
    assert (len(some), some.complete) == (5, False)
    assert micro().legal(some.ids).all()
    assert micro().enumerate(limit=10**6).complete


def _chi_square(space: Space, draws: int, seed: int, sample: Callable[..., Any] = sampling.sample) -> float:
    legal = space.enumerate().ids
    rng = np.random.default_rng(seed)
    counts = np.zeros(len(legal))
    for _ in range(draws):
        counts[np.searchsorted(legal, sample(space, 1, rng))] += 1
    expected = draws / len(legal)
    return float(((counts - expected) ** 2 / expected).sum() / (len(legal) - 1))


def test_samples_are_uniform() -> None:
    assert 0.7 < _chi_square(micro(registers=8), 3000, seed=1) < 1.35


@pytest.mark.parametrize("most", [1 << 21, 3])
def test_samples_of_what_is_not_counted_are_uniform_too(most: int) -> None:
    """With room for 3 prefixes only, completions are drawn and rejected; the distribution is the same."""
    space = micro(registers=8)
    frame = sampling.frame(space, most)
    assert frame.exact == (most > 3)
    assert 0.7 < _chi_square(space, 3000, 1, partial(sampling.drawn_from, frame, draws=64)) < 1.35


def test_a_rule_over_all_decisions_is_no_obstacle() -> None:
    """One row in 10^7 is legal, and only the last decision tells; sums that agree are one state."""
    names = "abcdefgh"
    ties = sum((Var(n) * (11 + 2 * k) for k, n in enumerate(names)), start=Var("a") * 3) % 1_000
    steps = [Step(n, (Decision(n, tuple(range(20))),)) for n in names]
    rules = (Rule("all", ties.eq(7), "no"), Rule("two", (Var("a") * Var("h") * Var("c")).eq(1_000), "no"))
    space = Space("tied", [*steps, Step("rules", (), rules)])
    counted = space.count
    assert counted is not None
    ids = space.sample(1_000, np.random.default_rng(0))
    assert len(np.unique(ids)) == 1_000
    assert space.legal(ids).all()
    assert counted.legal / space.size < 1e-7


def test_sparse_spaces_of_trillions_are_sampled() -> None:
    """About one row in 10^9 is legal; drawing ids and rejecting would never end."""
    names = [f"t{i}" for i in range(8)]
    decisions = tuple(Decision(n, tuple(range(1, 33))) for n in names)
    pairs = zip(names[::2], names[1::2], strict=True)
    rules = tuple(Rule(f"{a} {b}", (Var(a) * Var(b)).eq(36), "not 36") for a, b in pairs)
    space = Space("sparse", [Step("s", decisions, rules)])
    assert space.size == 32**8
    ids = space.sample(500, np.random.default_rng(0))
    assert len(set(ids.tolist())) == 500
    assert space.legal(ids).all()
    legal = space.enumerate()
    assert len(legal) == 7**4
    assert len(legal) + sum(legal.rejected.values()) == space.size


def test_nonlinear_empty_spaces_are_explained_where_z3_gives_up() -> None:
    """A limit of no time leaves every question to the staged joins; the answer is the same."""
    decisions = tuple(Decision(n, tuple(range(2, 40))) for n in "abc")
    product = Var("a") * Var("b") * Var("c")
    size = Rule("size", product.eq(7919), "{a} x {b} x {c} is not 7,919")
    odd = Rule("odd", (Var("a") % 2).eq(1), "{a} is even")
    explanation = Space("prime", [Step("s", decisions, (size, odd))]).explain(timeout_s=0.001)
    assert explanation is not None
    assert explanation.rules == ("size",)
    assert "is not 7,919" in str(explanation)


def test_values_are_lazy_columns_of_whole_blocks() -> None:
    space = micro()
    values = space.values(np.arange(space.size))
    assert values["registers"].dtype == np.int64
    assert np.array_equal(values["registers"], values["mr"] * values["nr"] + values["nr"] + 1)
    assert values["limit"].tolist() == [32] * space.size
    assert set(values) == set(space.names)


def test_wide_numbers_do_not_wrap() -> None:
    """2^31 is passed in an intermediate product only; narrow arithmetic would call these rows legal."""
    sides = tuple(Decision(n, (1, 65536, 100_000)) for n in "ab")
    rule = Rule("few", ceil_div(Var("a") * Var("b"), 1000) <= 1_000_000, "{a} x {b}")
    space = Space("wide", [Step("s", sides, (rule,))])
    assert len(space.enumerate()) == 5
    assert space.enumerate().rejected == {"few": 4}


def test_inert_alternatives_are_given_by_those_that_hold() -> None:
    order = Decision("order", (0, 1))
    blocks = tuple(Decision(n, (1, 2)) for n in "ab")
    one = any_of(Var("a").eq(1), Var("b").eq(1))
    space = Space("inert", [Step("s", (*blocks, order), inert={"order": one})])
    assert space.why_not(space.row_of({"b": 2, "order": 1})) == ["order 1 changes nothing (a 1 = 1): only 0 is kept"]
    assert space.canonical(np.arange(8)).tolist() == [0, 0, 2, 2, 4, 4, 6, 7]


def test_names_with_dots_are_names() -> None:
    """Plans of several parts prefix the names of each with its stage, as `C.2.rows`."""
    rows = Decision("C.2.rows", (1, 5000))
    rule = Rule("C.2.tall", Var("C.2.rows") < 10, "{C.2.rows} rows, twice {C.2.double:d}")
    space = Space("dots", [Step("s", (rows,), (rule,), {"C.2.double": Var("C.2.rows") * 2})])
    assert space.why_not(1) == ["5,000 rows, twice 10000"]
    assert space.from_json(space.to_json(1)).row == 1
