"""The three readings agree, on random spaces: numpy masks, z3 formulas, sentences; and every way to the legal rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples

from autosched.logic import Bool, Const, Int, Var, all_of, any_of, ceil_div, evaluate, maximum, minimum, to_z3, where
from autosched.tiling.space.explain import z3_reading
from autosched.tiling.space.request import request
from autosched.tiling.space.space import Space
from autosched.tiling.step import Decision, Rule, Step

NAMES = ("a", "b", "c", "d")


@st.composite
def ints(draw: st.DrawFn, names: tuple[str, ...], depth: int = 1) -> Int:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([*map(Var, names), Const(draw(st.integers(-3, 40)))]))
    x, y = draw(ints(names, depth - 1)), draw(ints(names, depth - 1))
    positive = maximum(y, 1)
    return draw(
        st.sampled_from(
            [x + y, x - y, x * y, x // positive, x % positive, ceil_div(x, positive), minimum(x, y), maximum(x, y),
             where(x < y, x, y * 2)]
        )
    )  # fmt: skip


@st.composite
def bools(draw: st.DrawFn, names: tuple[str, ...]) -> Bool:
    def comparison() -> Bool:
        x, y = draw(ints(names)), draw(ints(names))
        return draw(st.sampled_from([x < y, x <= y, x.eq(y), x.ne(y), x > y, x >= y]))

    shape = draw(st.sampled_from(["one", "and", "or", "not"]))
    match shape:
        case "and":
            return all_of(comparison(), comparison())
        case "or":
            return any_of(comparison(), comparison())
        case "not":
            return ~any_of(comparison(), comparison())
        case _:
            return comparison()


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    names = NAMES[: draw(st.integers(1, 4))]
    values = st.integers(0, 150)  # products of derived products stay below 2^63, some pass 2^31
    decisions = tuple(Decision(n, tuple(draw(st.lists(values, min_size=1, max_size=5, unique=True)))) for n in names)
    known: tuple[str, ...] = (*names, "k")
    derived: dict[str, Int] = {}
    for q in ("p", "q")[: draw(st.integers(0, 2))]:
        derived[q] = draw(ints(known))
        known = (*known, q)
    rules = tuple(Rule(f"r{i}", draw(bools(known)), "a is {a} and k is {k}") for i in range(draw(st.integers(0, 3))))
    inert = {n: draw(bools(known)) for n in names[1:] if draw(st.booleans())}
    return Space("random", [Step("s", decisions, rules, derived, inert)], {"k": draw(st.integers(1, 50))})


def brute(space: Space) -> dict[int, set[str]]:
    """The broken rules of each row, by Python's own arithmetic, one row at a time."""
    found = {}
    for row, values in enumerate(itertools.product(*(d.domain for d in space.decisions))):
        env = dict(space.constants) | dict(zip((d.name for d in space.decisions), values, strict=True))
        for name, expression in space.derived.items():
            env[name] = evaluate(expression, env)
        found[row] = {r.name for r in space.rules if not evaluate(r.holds, env)}
    return found


@pytest.mark.slow
@examples(120)
@given(spaces(), st.sampled_from([1, 3, 64, 1 << 18]))
def test_enumeration_mask_and_why_not_agree_with_plain_python(space: Space, block: int) -> None:
    broken = brute(space)
    expected = [row for row, rules in broken.items() if not rules]
    legal = space.enumerate(block=block)
    assert legal.ids.tolist() == expected
    assert legal.ids.dtype == np.int64
    assert len(legal) + sum(legal.rejected.values()) == legal.total == space.size
    for name, count in legal.rejected.items():  # a rule removes no row that it does not forbid
        assert count <= sum(name in rules for rules in broken.values())
    assert np.flatnonzero(space.legal(np.arange(space.size))).tolist() == expected
    row = len(broken) // 2
    assert {r.name for r in space.violated(row)} == broken[row]
    assert bool(space.why_not(row)) == bool(broken[row])


@pytest.mark.slow
@examples(200)
@given(spaces())
def test_counting_without_listing_finds_the_same_rows(space: Space) -> None:
    legal, counted = space.enumerate(), space.count
    assert counted is not None
    assert counted.legal == len(legal)
    assert np.sort(counted.rows(np.arange(counted.legal))).tolist() == legal.ids.tolist()
    assert counted.legal + sum(counted.rejected.values()) == space.size


@pytest.mark.slow
@examples(60)
@given(spaces(), st.integers(0, 10**6))
def test_z3_agrees_with_the_mask(space: Space, pick: int) -> None:
    row = pick % space.size
    env, domains = z3_reading(space)
    solver = z3.Solver()
    solver.add(*domains, *(env[n] == v for n, v in space.schedule(row).values.items()))
    assert solver.check() == z3.sat
    model = solver.model()
    mask = space.legal([row])[0]
    values = space.values([row])
    for name in space.derived:
        assert model.eval(env[name], model_completion=True).as_long() == values[name][0]
    truths = [z3.is_true(model.eval(to_z3(r.holds, env), model_completion=True)) for r in space.rules]
    assert all(truths) == mask
    assert [r.name for r, t in zip(space.rules, truths, strict=True) if not t] == [r.name for r in space.violated(row)]


@pytest.mark.slow
@examples(60)
@given(spaces())
def test_an_empty_space_is_explained_by_a_minimal_core(space: Space) -> None:
    broken = brute(space)
    explanation = space.explain()
    if any(not rules for rules in broken.values()):
        assert explanation is None
        return
    assert explanation is not None
    core = set(explanation.rules)
    assert all(rules & core for rules in broken.values())
    for rule in core:
        assert any(not rules & (core - {rule}) for rules in broken.values()), "a rule of the core is not needed"
    assert len(explanation.sentences) == len(core)


@pytest.mark.slow
@examples(60)
@given(spaces(), st.integers(0, 2**32))
def test_drawn_rows_are_legal_and_different(space: Space, seed: int) -> None:
    rng = np.random.default_rng(seed)
    legal = space.enumerate().ids
    drawn = space.sample(len(legal) + 3, rng)
    assert sorted(drawn.tolist()) == legal.tolist()
    few = space.sample(2, rng)
    assert len(set(few.tolist())) == min(2, len(legal))
    if len(legal):
        parents = rng.choice(legal, 20)
        for children in (space.mutate(parents, rng), space.crossover(parents, parents[::-1], rng)):
            assert space.legal(children).all()
        row = int(legal[0])
        near = space.neighbours(row)
        mine = space.rows([row])
        apart = sum((space.rows(near)[n] != mine[n]).astype(int) for n in mine) if len(near) else np.zeros(0)
        assert space.legal(near).all()
        assert np.all(apart == 1)
        every = sum((space.rows(legal)[n] != mine[n]).astype(int) for n in mine)
        assert near.tolist() == legal[every == 1].tolist()


@examples(60)
@given(spaces(), st.data())
def test_ids_rows_and_json_are_inverse(space: Space, data: st.DataObject) -> None:
    ids = np.array(data.draw(st.lists(st.integers(0, space.size - 1), min_size=1, max_size=8)), np.int64)
    rows = space.rows(ids)
    assert np.array_equal(space.ids(rows), ids)
    assert all(column.dtype == np.uint8 and column.flags.c_contiguous for column in rows.values())
    for row in ids.tolist():
        schedule = space.schedule(row)
        assert space.row_of(schedule.values) == row
        assert space.from_json(space.to_json(row)) == schedule
        assert [int(space.values([row])[n][0]) for n in schedule.values] == list(schedule.values.values())


@pytest.mark.slow
@examples(60)
@given(spaces(), st.data())
def test_nearest_rows_give_up_the_fewest_wishes_and_move_least(space: Space, data: st.DataObject) -> None:
    """Against all legal rows of the space, for wishes of some decisions and of all."""
    ids = [row for row, broken in brute(space).items() if not broken]
    names = data.draw(st.lists(st.sampled_from([d.name for d in space.decisions]), min_size=1, unique=True))
    wanted = {name: data.draw(st.sampled_from(space.decision(name).domain)) for name in names}

    def distance(values: dict[str, int]) -> tuple[int, int]:
        domains = {name: space.decision(name).domain for name in wanted}
        steps = [abs(d.index(values[name]) - d.index(wanted[name])) for name, d in domains.items()]
        return sum(s > 0 for s in steps), sum(steps)

    answer = request(space, wanted, most=2)
    distances = sorted(distance(space.schedule(row).values) for row in ids)
    if answer.row is None:
        assert [distance(s.values) for s in answer.nearest] == distances[:2]
        assert len({s.row for s in answer.nearest} & set(ids)) == len(answer.nearest)
    else:
        assert distances[0] == (0, 0)
        assert answer.row in ids
