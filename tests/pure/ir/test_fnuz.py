"""AMD's fnuz floats: their patterns, what their arithmetic gives, and what they hold. (Compiled code: tests/cpu.)"""

import numpy as np
import pytest

from autosched.ir import parse
from autosched.ir.dtypes import DTYPES
from autosched.ir.oracle.interpreter import run
from autosched.tensorize.body.exact import holds

EVERY = np.arange(256).astype(np.uint8)


def values(name: str) -> np.ndarray:
    """The value of every pattern."""
    return EVERY.view(DTYPES[name].numpy).astype(np.float64)


@pytest.mark.parametrize(("name", "odd"), [("e4m3", {0x7F, 0x80, 0xFF}), ("e5m2", {0x80})])
def test_a_pattern_means_half_of_what_it_does_elsewhere(name, odd):
    ocp, fnuz = values(name), values(f"{name}fnuz")
    infinite = {0x7C, 0x7D, 0x7E, 0x7F, 0xFC, 0xFD, 0xFE, 0xFF} if name == "e5m2" else set()
    differ = {int(n) for n in EVERY if ocp[n] != 2 * fnuz[n]}
    assert differ == (odd | infinite)
    assert np.flatnonzero(np.isnan(fnuz)).tolist() == [0x80]
    assert np.nanmax(fnuz) == {"e4m3": 240.0, "e5m2": 57344.0}[name]


def test_there_is_one_zero_and_overflow_is_nan():
    program = parse(
        "def f(x: e4m3fnuz[n], y: e4m3fnuz[n], z: e4m3fnuz[n], w: f32[n], *, n=6):\n"
        "    for i in range(n):\n        y[i] = -x[i]\n"
        "    for i in range(n):\n        z[i] = x[i] + x[i]\n"
        "    for i in range(n):\n        w[i] = f32(x[i] * e4m3fnuz(-1.0))\n"
    )
    x = np.array([0.0, 240.0, -128.0, 0.0009765625, 120.0, 1.0], np.float32).astype(DTYPES["e4m3fnuz"].numpy)
    found = run(program, {"x": x})
    assert found["y"].view(np.uint8)[0] == 0
    assert not np.signbit(found["w"])[0]
    doubled = found["z"].astype(np.float32)
    assert np.isnan(doubled[[1, 2]]).all()
    assert doubled[[0, 3, 4, 5]].tolist() == [0.0, 0.001953125, 240.0, 2.0]


def test_what_holds_what():
    of = DTYPES
    assert all(holds(of[n], of[w]) for n in ("e4m3fnuz", "e5m2fnuz") for w in ("f16", "bf16", "f32"))
    assert not any(holds(of[n], of["e5m2fnuz"]) for n in ("e5m2", "e4m3fnuz", "f16"))  # no infinity, no minus zero
    assert not holds(of["e4m3fnuz"], of["e4m3"])  # 2^-10 is below
    assert holds(of["u4"], of["e4m3fnuz"])
