"""Results that are changed in place: a tensor for each value, where nothing else could tell."""

from __future__ import annotations

import numpy as np
import pytest
from support.rewritten.oracle import run

import autosched
from autosched import ir
from autosched.ir.rewrites.versions import separate_versions

HEAD = "def f(X: f32[4, 6], O: f32[4], Z: f32[4], B: f32[4], c: f32):\n"
SUM = """
    for i in range(4):
        O[i] = 0
        for j in range(6):
            O[i] += X[i, j]
"""
OTHER = """
    for i in range(4):
        Z[i] = 0
        for j in range(6):
            Z[i] += X[i, j] * X[i, j]
"""
DIVIDED = "\n    for i in range(4):\n        O[i] = O[i] / Z[i]\n"
SHARED = """
    for i in range(4):
        O[i] = 0
        for j in range(6):
            O[i] += X[i, j]
        B[i] = O[BEFORE]
        O[i] *= 2
        Z[i] = O[AFTER]
"""


def after(body: str) -> tuple[dict[str, str], str]:
    """What was separated; both programs compute the same bits."""
    before = ir.parse(HEAD + body)
    found = separate_versions(before)
    assert ir.parse(str(found.program)) == found.program
    data = {n: np.random.default_rng(0).normal(size=before.tensors[n].extents).astype("f4") for n in before.inputs}
    expected, got = (run(p, data, {"c": np.float32(0.5)}) for p in (before, found.program))
    for name in before.written:
        np.testing.assert_array_equal(got[name], expected[name])
    return dict(found.of), str(found.program)


@pytest.mark.parametrize(
    "body",
    [
        SUM + OTHER + DIVIDED,
        SUM + OTHER + DIVIDED.replace("O[i] = O[i] / Z[i]", "O[i] *= Z[i]"),
        SUM + OTHER + DIVIDED.replace("O[i] = O[i] / Z[i]", "O[i] -= Z[i]"),
        SUM + OTHER + DIVIDED.replace("O[i] = O[i] / Z[i]", "O[i] = max(O[i], Z[i])"),
        SUM + OTHER + DIVIDED.replace("O[i] / Z[i]", "exp(O[i]) - O[i] * c"),
        SHARED.replace("BEFORE", "i").replace("AFTER", "i"),
        SUM + "\n    for i in range(4):\n        B[i] = O[3 - i]\n" + OTHER + DIVIDED,
        SUM + OTHER + DIVIDED + "\n    for i in range(4):\n        B[i] = O[3 - i]\n",
    ],
)
def test_what_is_changed_afterwards_has_a_tensor_of_its_own(body: str) -> None:
    of, text = after(body)
    assert of == {"O_first": "O"}
    assert "O_first[i] += X[i, j]" in text


def test_several_changes() -> None:
    of, text = after(SUM + OTHER + DIVIDED + "\n    for i in range(4):\n        O[i] = O[i] + 1\n")
    assert of == {"O_first": "O"}
    assert "O_first[i_3] = O_first[i_3] / Z[i_3]" in text
    assert "O[i_4] = O_first[i_4] + 1.0" in text


@pytest.mark.parametrize(
    "body",
    [
        SUM + OTHER + DIVIDED.replace("range(4)", "range(1, 4)"),  # one element keeps its sum
        SUM + OTHER + DIVIDED.replace("O[i] = O[i] / Z[i]", "O[i] = O[3 - i] / Z[i]"),
        SUM + OTHER + DIVIDED.replace("        O[i]", "        if Z[i] > 1:\n            O[i]"),
        SUM + OTHER + "\n    for i in range(4):\n        if O[i] > 1:\n            B[i] = 0\n" + DIVIDED,
        SHARED.replace("BEFORE", "i").replace("AFTER", "3 - i"),
        SHARED.replace("BEFORE", "3 - i").replace("AFTER", "i"),
        SUM.replace("O[i] = 0", "B[i] = O[i]\n        O[i] = 0") + OTHER + DIVIDED,
        SUM.replace("        O[i] = 0\n", "") + OTHER + DIVIDED,  # the sum starts from what is there
        OTHER + DIVIDED,
        SUM + OTHER,
    ],
)
def test_what_something_else_could_tell_stays(body: str) -> None:
    assert after(body)[0] == {}


def test_verdicts_speak_of_the_program_as_written() -> None:
    text = HEAD + SUM.replace("0\n", "0\n", 1) + OTHER + DIVIDED
    program = ir.parse(text.replace("Z[i] += X[i, j] * X[i, j]", "Z[i] += X[i, j] * tanh(X[i, j] - O[i])"))
    found = [v for v in autosched.rewrites(program) if v.name == "online"]
    assert [(v.stages, v.reason.stage) for v in found if v.reason is not None] == [(("O", "Z"), "Z")]
    assert all(v.reason is None or "O_first" not in v.reason.message for v in found)
    accepted = ir.parse(text.replace("Z[i] += X[i, j] * X[i, j]", "Z[i] += X[i, j] * O[i]"))
    (one,) = (v for v in autosched.rewrites(accepted) if v.name == "online")
    assert one.stages == ("O", "Z")
    assert one.deferred == {"Z": "O[i_2]"}
    assert one.after is not None
    assert one.after.inputs == accepted.inputs
    assert one.after.outputs == accepted.outputs
