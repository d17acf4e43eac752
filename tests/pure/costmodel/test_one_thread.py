"""Learners use the calling thread alone, and leave the process's libraries as they were."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
import threadpoolctl
from conformance.synthetic import clock, make_plan

from autosched.costmodel.learned.one_thread import one_thread
from autosched.costmodel.protocol import Samples
from autosched.costmodel.registry import cost_model
from autosched.search import SearchSpace


@pytest.fixture(autouse=True)
def libraries() -> None:
    """All that have threads are loaded."""
    import_module("sklearn.gaussian_process")
    import_module("sklearn.ensemble")


LEARNERS = ("numpy", "scipy", "scikit_learn", "sklearn")
"""Whose libraries count: a kernel exported with OpenMP may have brought the compiler's own into this process."""


def threads(api: str) -> set[int]:
    found = [library for library in threadpoolctl.threadpool_info() if library["user_api"] == api]
    folders = [{folder.partition(".")[0] for folder in Path(library["filepath"]).parts} for library in found]
    return {
        library["num_threads"] for library, own in zip(found, folders, strict=True) if not own.isdisjoint(LEARNERS)
    }


def test_within_and_afterwards() -> None:
    with threadpoolctl.threadpool_limits(3):
        with one_thread(), one_thread():
            assert threads("blas") == threads("openmp") == {1}
        assert threads("blas") == threads("openmp") == {3}


def test_threads_that_overlap() -> None:
    """The one that came first leaves first, and afterwards all is as before."""
    both, left = Barrier(2), Barrier(2)

    def first() -> None:
        with one_thread():
            both.wait(10)
        left.wait(10)

    def second() -> None:
        with one_thread():
            both.wait(10)
            left.wait(10)

    before = threads("blas"), threads("openmp")
    for _ in range(4):
        with ThreadPoolExecutor(2) as pool:
            for waiting in [pool.submit(second), pool.submit(first)]:
                waiting.result()
        assert (threads("blas"), threads("openmp")) == before


@pytest.mark.parametrize(
    ("name", "learner", "step"),
    [
        ("gp", "gaussian_process.GaussianProcessRegressor", "fit"),
        ("gp", "gaussian_process.GaussianProcessRegressor", "predict"),
        ("xgb", "ensemble.HistGradientBoostingClassifier", "fit"),
        ("xgb", "ensemble.HistGradientBoostingClassifier", "predict_proba"),
    ],
)
def test_fits_and_predictions(name: str, learner: str, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes a model's time, of times and of which rows fail, is within it."""
    module, _, kind = learner.partition(".")
    made = getattr(import_module(f"sklearn.{module}"), kind)
    inner, seen = getattr(made, step), []

    def watched(*arguments: Any, **more: Any) -> Any:
        seen.append(threads("blas") | threads("openmp"))
        return inner(*arguments, **more)

    monkeypatch.setattr(made, step, watched)
    space = SearchSpace([make_plan("a", 1.0, tiles=4)], clock)
    features, seconds = space.described(space.locate(np.random.default_rng(0).integers(0, space.rows, 40)))
    status = tuple("ok" if n % 4 else "wrong" for n in range(40))
    with threadpoolctl.threadpool_limits(3):
        model = cost_model(name)
        model.fit(Samples(features, seconds, np.asarray(seconds, np.float64) * 1.5, status))
        model.predict(features, seconds)
    assert seen
    assert all(found == {1} for found in seen)
