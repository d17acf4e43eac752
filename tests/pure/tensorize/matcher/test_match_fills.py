"""What is staged where the program has no element: zeros of a sum, the least value of a maximum, one of a product; and
a kernel that stages it computes the program."""

from __future__ import annotations

import numpy as np
import pytest
from support.match.agreement import disagreement, expect
from support.match.computes import check, made_up
from support.plans import machine

from autosched.ir import parse
from autosched.tensorize import explain, match
from autosched.tiling.planner.make_plans import make_plans

ROWS = "def m(a: {t}[4, 3], c: {acc}[4]):\n for i, k in grid(4, 3):\n  c[i] = {op}(c[i], {acc}(a[i, k]))"
FLOATS = ROWS.format(t="f32", acc="f32", op="{op}")
PRODUCT = "def m(a: {t}[4, 3], c: {acc}[4]):\n for i, k in grid(4, 3):\n  c[i] *= {acc}(a[i, k])"
SAD = (
    "def m(a: u8[4, 3], b: u8[4, 3], c: s32[4]):\n for i, k in grid(4, 3):\n  c[i] += abs(s32(a[i, k]) - s32(b[i, k]))"
)
PLUS = "def m(a: f32[4, 3], b: f32[4, 3], c: f32[4]):\n for i, k in grid(4, 3):\n  c[i] = max(c[i], a[i, k] + b[i, k])"
XNOR = (
    "def m(a: u8[4, 3], b: u8[4, 3], c: s32[4]):\n for i, k in grid(4, 3):\n"
    "  c[i] += s32(popcount(~(a[i, k] ^ b[i, k])))"
)
PROGRAM = """
def f(A: {t}[5, 7], B: {t}[5, 7], C: {acc}[5]):
    for i in range(5):
        {init}
        for k in range(7):
            {guard}{update}
"""
MAX, MIN = "C[i] = max(C[i], {})", "C[i] = min(C[i], {})"
PLAIN, WIDE, NOT_TWO = "A[i, k]", "s32(A[i, k])", "if k != 2: "
CASES = {
    # instruction, element, accumulator, initial value, guard, update, fills
    "max of floats": (FLOATS.format(op="max"), "f32", "f32", None, "", MAX.format(PLAIN), {"a": -np.inf}),
    "min of floats": (FLOATS.format(op="min"), "f32", "f32", None, "", MIN.format(PLAIN), {"a": np.inf}),
    "max, started": (ROWS.format(t="s8", acc="s32", op="max"), "s8", "s32", "-500", "", MAX.format(WIDE), {"a": -128}),
    "max, from zero": (ROWS.format(t="s8", acc="s32", op="max"), "s8", "s32", "0", NOT_TWO, MAX.format(WIDE), {}),
    "max, guarded": (
        ROWS.format(t="s32", acc="s32", op="max"), "s32", "s32", None, NOT_TWO, MAX.format(PLAIN), {"a": -(2**31)},
    ),
    "product": (PRODUCT.format(t="s8", acc="s32"), "s8", "s32", "1", "", f"C[i] *= {WIDE}", {"a": 1}),
    "product of floats": (
        PRODUCT.format(t="f32", acc="f32"), "f32", "f32", None, "if k > 1: ", f"C[i] *= {PLAIN}", {"a": 1.0},
    ),
    "differences": (SAD, "u8", "s32", "0", NOT_TWO, "C[i] += abs(s32(A[i, k]) - s32(B[i, k]))", {}),
    "differences along": (SAD, "u8", "s32", "0", "", "C[i] += abs(s32(A[i, k]) - s32(B[i, 0]))", {}),
    "sums' maximum": (PLUS, "f32", "f32", None, NOT_TWO, MAX.format("A[i, k] + B[i, k]"), {"a": -np.inf}),
    "equal bits": (XNOR, "u8", "s32", "0", "", "C[i] += s32(popcount(~(A[i, k] ^ B[i, k])))", {"b": 255}),
}  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", CASES)
def test_fills_and_kernels(name: str) -> None:
    semantics, t, acc, init, guard, update, fills = CASES[name]
    start = f"C[i] = {init}" if init else "# live"
    unused = "" if "B" in update else "            # B unused"
    text = PROGRAM.format(t=t, acc=acc, init=start, guard=guard, update=update) + unused
    numerics = "{accumulate: unordered}" if acc == "f32" else "{accumulate: exact}"
    program, intrinsic = parse(text), made_up(semantics, numerics)
    (found,) = match(program, [intrinsic])
    assert found.verdict == "match", explain(found)
    stated = {o: v.value for m in found.mappings for o, v in m.fills.items()}
    assert fills.items() <= stated.items(), stated
    if not fills:
        assert not stated
    assert check(program, intrinsic, seed=2).mappings
    expected = expect(program, 3)
    plans = [p for p in make_plans(program, machine(), {"C": found.mappings}) if p.tensor_parts]
    assert plans, "the mapping was dropped"
    for plan in plans[:2]:
        ids = plan.space.enumerate().ids
        rows = np.random.default_rng(0).choice(ids, size=min(4, len(ids)), replace=False).tolist()
        assert disagreement(plan, rows, expected) is None


def test_what_no_value_leaves_unchanged_is_refused() -> None:
    semantics = (
        "def m(a: s8[4], b: s8[4, 3], c: s32[4]):\n for i, k in grid(4, 3):\n"
        "  c[i] = max(c[i], s32(a[i]) * s32(b[i, k]))"
    )
    program = parse(
        "def f(A: s8[5], B: s8[5, 7], C: s32[5]):\n    for i, k in grid(5, 7):\n"
        "        C[i] = max(C[i], s32(A[i]) * s32(B[i, k]))\n"
    )
    (found,) = match(program, [made_up(semantics)])
    assert found.reason is not None
    assert found.reason.code == "BODY_DIFFERS"
    assert "no value of b does" in found.reason.message
    assert found.reason.counterexample is not None
