"""What every cost model must do; subclass and provide `make`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autosched.costmodel import FeatureMismatchError, Features, Samples
from autosched.costmodel.features import FEATURE_VERSION
from autosched.costmodel.protocol import CostModel

NAMES = ("tile", "bytes", "clock.total")


def features(rows: int, seed: int = 0) -> Features:
    rng = np.random.default_rng(seed)
    matrix = rng.uniform(0, 4, (rows, len(NAMES))).astype(np.float32)
    matrix[rng.random((rows, len(NAMES))) < 0.1] = np.nan
    return Features(NAMES, ("value", "ln(1 + count)", "ln s"), FEATURE_VERSION, matrix)


def samples(rows: int, failed: int = 0, seed: int = 0) -> Samples:
    table = features(rows, seed)
    analytic = np.random.default_rng(seed + 1).uniform(1e-4, 1e-3, rows)
    time_s = analytic * (1 + np.nan_to_num(table.column("tile")))
    status = ["crash"] * failed + ["ok"] * (rows - failed)
    time_s[:failed] = np.nan
    return Samples(table, analytic, time_s, tuple(status))


class CostModelConformance:
    def make(self, seed: int = 0) -> CostModel:
        raise NotImplementedError

    def test_predicts_before_any_fit(self) -> None:
        guess = self.make().predict(features(5), np.full(5, 1e-3))
        assert np.all(np.isfinite(guess.log_s))
        assert np.all(guess.sigma >= 0)
        assert guess.seconds.shape == guess.sigma.shape == guess.valid.shape == (5,)

    @pytest.mark.parametrize(("rows", "failed"), [(0, 0), (1, 0), (1, 1), (3, 1), (8, 8), (40, 10)])
    def test_fits_to_any_number_of_rows(self, rows: int, failed: int) -> None:
        model = self.make()
        model.fit(samples(rows, failed))
        guess = model.predict(features(30, 5), np.full(30, 1e-3))
        for values in (guess.log_s, guess.sigma, guess.valid, guess.lower(1.0)):
            assert values.shape == (30,)
            assert np.all(np.isfinite(values))
        assert np.all((guess.valid >= 0) & (guess.valid <= 1))

    def test_no_rows_to_predict(self) -> None:
        model = self.make()
        model.fit(samples(20))
        assert model.predict(features(0), np.zeros(0)).seconds.shape == (0,)

    def test_the_same_seed_predicts_the_same(self) -> None:
        guesses = []
        for _ in range(2):
            model = self.make(seed=3)
            model.fit(samples(40, 5))
            guesses.append(model.predict(features(50, 9), np.full(50, 1e-3)))
        assert np.array_equal(guesses[0].log_s, guesses[1].log_s)
        assert np.array_equal(guesses[0].sigma, guesses[1].sigma)

    def test_an_earlier_fit_is_forgotten(self) -> None:
        once, twice = self.make(), self.make()
        twice.fit(samples(30, 3, seed=8))
        for model in (once, twice):
            model.fit(samples(40))
        rows = features(50, 9)
        assert np.array_equal(once.predict(rows, np.ones(50)).log_s, twice.predict(rows, np.ones(50)).log_s)

    def test_what_a_clock_gets_wrong_ends_no_study(self) -> None:
        wrong = samples(30, 3)
        wrong.features.matrix[[3, 20], [1, 0]] = np.inf, -np.inf
        wrong.analytic_s[[5, 6]] = np.inf, np.nan
        rows = features(20, 5)
        rows.matrix[2] = np.inf
        model = self.make()
        model.fit(wrong)
        guess = model.predict(rows, np.full(20, 1e-3))
        assert np.all(np.isfinite(guess.log_s))
        assert np.all(np.isfinite(guess.sigma))

    def test_features_of_another_version_are_refused(self) -> None:
        model = self.make()
        with pytest.raises(FeatureMismatchError, match="version old"):
            model.predict(replace(features(3), version="old"), np.ones(3))
        with pytest.raises(FeatureMismatchError, match="version old"):
            model.fit(replace(samples(3), features=replace(features(3), version="old")))

    def test_its_version_names_the_features(self) -> None:
        assert f"features/{FEATURE_VERSION}" in self.make().version
