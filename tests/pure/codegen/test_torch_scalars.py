"""An exported operator refuses a scalar that its kernel cannot take; PyTorch itself is not needed to see it."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from autosched.codegen.operators import Operator, operator_text
from autosched.ir import parse

PROGRAM = parse(
    """
def f(A: f32[4], s: s32, t: u8, u: f32, Y: f32[4]):
    assume(0 <= t <= 9)
    for i in range(4):
        Y[i] = A[i] * u + f32(s) + f32(t)
"""
)


@pytest.fixture
def scalar(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The file's own function that turns a value into what the library takes."""

    def custom_op(*_: Any, **__: Any) -> Any:
        return lambda function: SimpleNamespace(register_fake=lambda fake: fake)

    torch = SimpleNamespace(Tensor=object, library=SimpleNamespace(custom_op=custom_op))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(ctypes, "CDLL", lambda path: None)
    text = operator_text(PROGRAM, Operator("kernel", "cpu", "", {}, "cc"))
    space: dict[str, Any] = {"__file__": "kernel_torch.py"}
    exec(compile(text, "kernel_torch.py", "exec"), space)
    return space["_scalar"]


def test_values_are_passed_as_they_are(scalar: Any) -> None:
    assert [scalar(n, v).value for n, v in (("s", -(2**31)), ("t", 9), ("u", 0.5))] == [-(2**31), 9, 0.5]
    assert scalar("u", float("-inf")).value == float("-inf")


@pytest.mark.parametrize(("name", "value"), [("s", 2**40), ("s", -(2**31) - 1), ("t", -1), ("t", 10), ("u", 1e300)])
def test_others_are_refused(scalar: Any, name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} is .*the kernel takes"):
        scalar(name, value)
