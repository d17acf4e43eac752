"""Products in one instruction with their additions: where an argument may be rounded, and nowhere else."""

from __future__ import annotations

import pytest

from autosched.codegen.tree.update import contracted_arguments, positive_factor
from autosched.ir import parse
from autosched.ir.value import Call, Value, map_value, walk

APPROXIMATE = "fast_exp"


def value(text: str) -> Value:
    """The value, with exponentials by a function that rounds its argument."""
    program = parse(f"def f(M: f32[4], S: f32[4], Y: f32[4]):\n    for i in range(4):\n        Y[i] = {text}\n")

    def visit(node: Value) -> Value:
        return Call(APPROXIMATE, node.args, node.dtype) if isinstance(node, Call) and node.function == "exp" else node

    return map_value(program.stages[0].assign.value, visit)


@pytest.mark.parametrize(
    ("text", "fused"),
    [
        ("exp(S[i] * 0.25 - M[i])", 1),
        ("exp(M[i] - S[i] * 0.25) + M[i] * S[i]", 1),
        ("sqrt(M[i] - S[i] * 0.3)", 0),  # 0 where M is the rounded product: less with one rounding
        ("sqrt(exp(S[i]) - M[i] * M[i])", 0),
        ("M[i] * S[i] + S[i]", 0),
    ],
)
def test_arguments_alone_are_contracted(text: str, fused: int) -> None:
    made = contracted_arguments(value(text), {APPROXIMATE})
    assert sum(isinstance(n, Call) and n.function == "fma" for n in walk(made)) == fused
    assert contracted_arguments(value(text), ()) == value(text)


@pytest.mark.parametrize(
    ("text", "op", "taken"),
    [
        ("S[i] * 0.25", "max=", True),
        ("0.25 * S[i]", "min=", True),
        ("S[i] * rsqrt(f32(64.0))", "max=", True),
        ("S[i] * -0.25", "max=", False),
        ("S[i] * 0.0", "max=", False),
        ("S[i] * M[i]", "max=", False),
        ("S[i] * 0.25", "+=", False),
        ("S[i] * 0.25 + M[i]", "max=", False),
    ],
)
def test_positive_factors_leave_an_extreme(text: str, op: str, taken: bool) -> None:
    term, factor = positive_factor(op, value(text))
    assert (factor is not None) == taken
    assert taken or term == value(text)
