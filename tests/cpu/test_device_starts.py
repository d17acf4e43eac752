"""A search waits for its children to start, and every new worker for what it loads."""

import subprocess
import sys
from pathlib import Path

import pytest

import autosched
from autosched.device import process

HEAVY = {"pydantic", "yaml", "z3", "scipy", "sklearn", "xgboost", "typer", "autosched.ir.program"}
"""A tenth of a second each, or on the way there."""


@pytest.mark.parametrize("module", ["autosched.device.worker", "autosched.device.builder"])
def test_a_child_loads_little(module):
    path = str(Path(autosched.__file__).parent)
    boot = process._BOOT.format(objects=1000, bare=process._BARE, path=path, module=module, arguments="")
    text = f"{boot}\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split()
    assert "llvmlite" in loaded
    assert not HEAVY & set(loaded)
