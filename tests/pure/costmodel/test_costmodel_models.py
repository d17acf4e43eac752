"""Learned models, features and metrics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xgboost
from conformance.costmodel import CostModelConformance, features, samples
from conformance.synthetic import clock, make_plan, measured, tiny_plan
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from autosched.costmodel import (
    CostModel,
    FeatureMismatchError,
    FeatureSchema,
    Samples,
    cost_model,
    cost_models,
    feature_table,
)
from autosched.costmodel.accuracy.metrics import best_k_regret, pairwise_accuracy, spearman
from autosched.costmodel.learned.learned import ResidualModel
from autosched.errors import UnknownNameError
from autosched.search import SearchSpace
from autosched.search.space.rows import Rows


class TestAnalytic(CostModelConformance):
    def make(self, seed: int = 0) -> CostModel:
        return cost_model("analytic", seed)


class TestXgb(CostModelConformance):
    def make(self, seed: int = 0) -> CostModel:
        return cost_model("xgb", seed)


class TestForest(CostModelConformance):
    def make(self, seed: int = 0) -> CostModel:
        return cost_model("forest", seed)


class TestGaussian(CostModelConformance):
    def make(self, seed: int = 0) -> CostModel:
        return cost_model("gp", seed)


class TestRanking(CostModelConformance):
    def make(self, seed: int = 0) -> CostModel:
        return cost_model("rank", seed)


class TestThroughput(CostModelConformance):
    def make(self, seed: int = 0) -> CostModel:
        return cost_model("throughput", seed)


class TestRandom(CostModelConformance):
    def make(self, seed: int = 0) -> CostModel:
        return cost_model("random", seed)


def test_boosters_without_names_are_as_xgboost_makes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """That columns have no names is said by a method of theirs that is not public."""
    asked = []
    monkeypatch.setattr(xgboost.DMatrix, "feature_names", property(lambda _: asked.append(1)))

    class Public(ResidualModel):
        @staticmethod
        def _booster() -> type[xgboost.Booster]:
            return xgboost.Booster

    known, ours, theirs = samples(40), ResidualModel(3), Public(3)
    ours.fit(known)
    assert not asked
    theirs.fit(known)
    assert asked
    one, other = (model.predict(known.features, known.analytic_s) for model in (ours, theirs))
    assert np.array_equal(one.log_s, other.log_s)


def test_names() -> None:
    assert cost_models() == ["analytic", "forest", "gp", "random", "rank", "throughput", "xgb"]
    with pytest.raises(UnknownNameError, match="did you mean 'xgb'"):
        cost_model("xgbb")


def test_other_columns_are_refused() -> None:
    model = ResidualModel()
    model.fit(samples(10))
    table = features(3)
    other = type(table)(("a", *table.names[1:]), table.units, table.version, table.matrix)
    with pytest.raises(FeatureMismatchError, match="tile"):
        model.predict(other, np.ones(3))


def test_threads_do_not_change_a_prediction() -> None:
    rows = features(30_000, 4)
    guesses = []
    for threads in (1, 2):
        model = ResidualModel(threads=threads)
        model.fit(samples(40, 4))
        guesses.append(model.predict(rows, np.ones(len(rows))).log_s)
    assert np.array_equal(*guesses)


def test_learning_corrects_the_clock() -> None:
    """On rows it has not seen, the residual model ranks better than the clock, and is nearly unbiased."""
    space = SearchSpace([make_plan("a"), make_plan("b", 1.3)], clock)
    rng = np.random.default_rng(0)
    train = measured(space, space.locate(rng.integers(0, space.rows, 96)))
    test = measured(space, space.locate(rng.integers(0, space.rows, 2000)))
    before, after = cost_model("analytic"), cost_model("xgb")
    after.fit(train)
    guesses = [m.predict(test.features, test.analytic_s).seconds for m in (before, after)]
    clock_only, learned = (spearman(g, test.time_s) for g in guesses)
    assert learned > clock_only + 0.05
    lost, least = (best_k_regret(g, test.time_s, 16) for g in guesses)
    assert least <= lost
    assert abs(np.median(np.log(guesses[1] / test.time_s))) < 0.1


def test_failures_are_predicted_where_they_happen_and_do_not_move_times() -> None:
    table = features(80)
    analytic = np.full(80, 1e-3)
    bad = np.nan_to_num(table.column("tile")) > 2
    status = tuple("crash" if b else "ok" for b in bad)
    model, without = ResidualModel(), ResidualModel()
    model.fit(Samples(table, analytic, np.where(bad, np.nan, 2e-3), status))
    without.fit(Samples(table.take(~bad), analytic[~bad], np.full((~bad).sum(), 2e-3), ("ok",) * int((~bad).sum())))
    rows = features(200, 7)
    guess = model.predict(rows, np.full(200, 1e-3))
    tile = rows.column("tile")
    assert guess.valid[tile > 2.5].max() < 0.5 < guess.valid[tile < 1.5].min()
    assert np.allclose(guess.log_s, without.predict(rows, np.full(200, 1e-3)).log_s)
    assert np.allclose(guess.seconds, 2e-3, rtol=0.01)
    assert np.all(guess.lower(0.0)[tile > 2.5] > np.log(2e-3) + 0.6)


def test_refusals_teach_nothing() -> None:
    table = features(20)
    model = ResidualModel()
    model.fit(Samples(table, np.ones(20), np.ones(20), ("ok",) * 10 + ("refused",) * 10))
    assert np.all(model.predict(table, np.ones(20)).valid == 1)


def test_it_is_less_sure_where_measurements_scatter() -> None:
    rng = np.random.default_rng(0)
    table = features(200)
    tile = np.nan_to_num(table.column("tile"))
    noisy = np.exp(np.where(tile > 2, rng.normal(0, 0.5, 200), 0.0))
    model = ResidualModel()
    model.fit(Samples(table, np.full(200, 1e-3), 1e-3 * noisy, ("ok",) * 200))
    sigma = model.predict(table, np.full(200, 1e-3)).sigma
    # 1.94: quiet rows are not taken for surer than the errors of rows left out say they are.
    assert sigma[tile > 2].mean() > 1.8 * sigma[tile < 2].mean()


# Features


def test_features_are_named_with_units() -> None:
    plan = tiny_plan("p")
    ids = np.array([0, 3, 6])
    values = plan.space.values(ids)
    terms = clock(plan, values)
    table = feature_table(plan, ids, values, {n: np.broadcast_to(t, 3) for n, t in terms.items()})
    assert table.names == (
        "plan.p", "tile", "unroll", "ln.registers", "clock.compute", "clock.load", "clock.overhead", "clock.total",
        "limit.compute", "limit.load", "limit.overhead",
    )  # fmt: skip
    assert len(table.units) == len(table.names)
    assert table.column("tile").tolist() == [1, 2, 8]
    assert np.allclose(table.column("ln.registers"), np.log1p([1, 4, 8]))
    assert np.allclose(table.column("clock.total"), np.log(terms["total"]))
    limits = np.stack([table.column(f"limit.{t}") for t in ("compute", "load", "overhead")], axis=1)
    assert np.array_equal(limits.sum(axis=1), [1, 1, 1])
    assert np.array_equal(limits[:, 0] == 1, terms["compute"] >= terms["load"])


def test_columns_of_a_union_stay_in_place() -> None:
    space = SearchSpace([make_plan("a", tiles=2), tiny_plan("t")], clock)
    rows = Rows(np.array([1, 0, 1, 0], np.int32), np.array([3, 7, 0, 11]))
    table = space.features(rows)
    assert table.names == space.schema.names
    assert table.column("plan.a").tolist() == [0, 1, 0, 1]
    assert np.isnan(table.column("tile_m")).tolist() == [True, False, True, False]
    assert np.isnan(table.column("tile")).tolist() == [False, True, False, True]
    for i in range(4):
        alone = space.features(rows.take([i]))
        assert np.array_equal(alone.matrix[0], table.matrix[i], equal_nan=True)


def test_features_of_other_studies_cannot_be_joined() -> None:
    a, b = (SearchSpace([make_plan(n, tiles=2)], clock) for n in "ab")
    some = b.features(Rows.of(0, [0]))
    with pytest.raises(FeatureMismatchError):
        a.schema.stack([some])
    old = type(some)(some.names, some.units, "0", some.matrix)
    with pytest.raises(FeatureMismatchError):
        FeatureSchema.union([some, old])


# Metrics

values = st.lists(st.integers(0, 9), min_size=2, max_size=30)


@given(data=st.data(), a=values)
def test_spearman_is_scipys(data: st.DataObject, a: list[int]) -> None:
    b = data.draw(st.lists(st.integers(0, 9), min_size=len(a), max_size=len(a)))
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert np.isnan(spearman(a, b))
    else:
        assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)


@given(measured=st.lists(st.floats(1e-6, 1), min_size=2, max_size=20, unique=True))
def test_a_perfect_and_a_reversed_model(measured: list[float]) -> None:
    wrong = [-m for m in measured]
    assert (spearman(measured, measured), pairwise_accuracy(measured, measured)) == (1, 1)
    assert (spearman(wrong, measured), pairwise_accuracy(wrong, measured)) == (-1, 0)
    assert best_k_regret(measured, measured, 1) == 0
    assert best_k_regret(wrong, measured, 1) == pytest.approx(1 - min(measured) / max(measured))


def test_ties_count_half_and_equal_times_not_at_all() -> None:
    assert pairwise_accuracy([1, 1], [1, 2]) == 0.5
    assert np.isnan(pairwise_accuracy([1, 2], [3, 3]))
    assert best_k_regret([1, 1, 1], [4, 2, 1], 2) == pytest.approx(0.5 / 3)  # 4 and 2 in one choice of three


def test_failures_are_learnt_beside_a_quantity_that_no_row_has() -> None:
    space = SearchSpace([make_plan("a", tiles=4)], clock)
    known = measured(space, space.locate(np.arange(0, space.rows, 7)[:40]))
    matrix = known.features.matrix.copy()
    matrix[:, 1] = np.nan
    status = tuple("wrong" if i % 3 == 0 else "ok" for i in range(40))
    lacking = replace(known, features=replace(known.features, matrix=matrix), status=status)
    model = ResidualModel()
    model.fit(lacking)
    assert np.isfinite(model.predict(lacking.features, lacking.analytic_s).valid).all()
