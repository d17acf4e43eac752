"""What models learn with is loaded beside other threads, some of which load things of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import run
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from autosched.costmodel import registry as models
from autosched.costmodel.analytic.clock import clock
from autosched.costmodel.learned import learner
from autosched.device import registry as devices
from autosched.search import SearchSpace
from autosched.search import registry as strategies

LEARNER = """
from threading import Thread

try:
    import sklearn
    whole = True
except ImportError:
    whole = False

found = []


def import_it():
    import sklearn
    found.append(sklearn)


other = Thread(target=import_it)
other.start()
other.join(10)
"""


@pytest.fixture(autouse=True)
def stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A learner that says whether it had scikit-learn's classes, and whether another thread could have that meanwhile;
    nothing is loaded yet."""
    (tmp_path / "xgboost.py").write_text(LEARNER)
    (tmp_path / "sklearn.py").write_text("")
    held = {name: sys.modules.pop(name, None) for name in ("xgboost", "sklearn")}
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(learner, "_alone", False)
    yield
    for name, module in held.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


def test_a_process_of_our_own_loads_less() -> None:
    before = list(sys.meta_path)
    learner.alone()
    learner.load("xgboost")
    assert not sys.modules["xgboost"].whole
    assert sys.meta_path == before
    learner.load("sklearn")


def test_other_threads_may_load_what_is_left_out() -> None:
    learner.alone()
    learner.load("xgboost")
    assert sys.modules["xgboost"].found


def test_all_of_it_is_loaded_for_others() -> None:
    learner.load("xgboost")
    assert sys.modules["xgboost"].whole


@pytest.mark.parametrize(
    ("registry", "ask"),
    [
        (models, lambda: models.cost_model("mine")),
        (strategies, lambda: strategies.strategy("mine", SearchSpace([], clock))),
        (devices.metadata, lambda: devices.device("mine")),
    ],
    ids=["model", "strategy", "device"],
)
def test_a_plug_in_is_one_of_the_others(
    registry: object, ask: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    point = SimpleNamespace(name="mine", value="theirs:Mine", load=lambda: MagicMock())
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    learner.alone()
    ask()
    learner.load("xgboost")
    assert sys.modules["xgboost"].whole


@pytest.mark.slow
def test_special_functions_import_nothing_that_imports_them() -> None:
    """So that threads cannot wait for each other: the interpreter of programs imports them without asking."""
    code = "import sys, scipy.special; print(*[m.split('.')[1] for m in sys.modules if m.startswith('scipy.')])"
    found = run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    needed = {name for name in found if not name.startswith("_")} - {"version"}
    assert needed == {"special"}


ALONE = """
import sys
from autosched.costmodel.learned import learner
learner.alone()
learner.load("xgboost")
import numpy, xgboost
there = sys.modules
print("scipy.special" in there, "numpy.f2py.crackfortran" in there, "unittest" in there)
print(xgboost.Booster.__name__, hasattr(xgboost, "XGBModel"))
print(callable(numpy.f2py.get_include), callable(numpy.testing.assert_allclose), "numpy.f2py.crackfortran" in there)
learner.load("sklearn.ensemble")
print(callable(there["sklearn.ensemble"].HistGradientBoostingClassifier))
"""


@pytest.mark.slow
def test_what_nobody_touches_is_put_off() -> None:
    """Loading xgboost took 0.25 s of processor time, of which 0.09 are left."""
    asked = run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)
    assert asked.stdout.splitlines() == ["False False False", "Booster False", "True True True", "True"], asked.stderr


@pytest.mark.slow
def test_what_is_there_already_is_not_put_off() -> None:
    code = "import numpy.f2py, sys; before = numpy.f2py; from autosched.costmodel.learned import learner\n"
    code += "learner.alone(); learner.load('xgboost'); print(sys.modules['numpy.f2py'] is before is numpy.f2py)"
    asked = run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert asked.stdout.split() == ["True"], asked.stderr
