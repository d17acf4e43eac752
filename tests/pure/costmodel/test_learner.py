"""What models learn with is loaded beside other threads, some of which load things of their own."""

from __future__ import annotations

import sys
from subprocess import run

import pytest

from autosched.costmodel.learned import learner

LOADED = """
import sys
from autosched.costmodel.learned import learner
before = list(sys.meta_path)
learner.load("xgboost")
import xgboost
print(xgboost.Booster.__name__, hasattr(xgboost, "XGBModel"), sys.meta_path == before)
"""


def test_a_missing_package_is_an_import_error() -> None:
    with pytest.raises(ImportError):
        learner.load("autosched_no_such_package")


@pytest.mark.slow
def test_xgboost_is_loaded_as_others_import_it() -> None:
    pytest.importorskip("sklearn")
    found = run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout.split()
    assert found == ["Booster", "True", "True"]


@pytest.mark.slow
def test_special_functions_import_nothing_that_imports_them() -> None:
    """So that threads cannot wait for each other: the interpreter of programs imports them without asking."""
    code = "import sys, scipy.special; print(*[m.split('.')[1] for m in sys.modules if m.startswith('scipy.')])"
    found = run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    needed = {name for name in found if not name.startswith("_")} - {"version"}
    assert needed == {"special"}
