# ruff: noqa: E501  (programs stand on one line)
"""Tolerances: kernels that reassociate stay inside them, nothing else is forgiven, and they are not slack."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples
from support.programs.ir_programs import program_texts, reduction_texts

import autosched.ir as ir
from autosched.ir.nodes import Assign, Axis, Guard, Loop, Statement
from autosched.ir.oracle.slack import Slack
from autosched.ir.program import Program
from autosched.ir.value import map_value
from autosched.logic import Bool, Const, Int, Var
from autosched.logic.walk import substitute_bool, substitute_int

QUICK = examples(80)


def reversed_reductions(program: Program, names: set[str]) -> Program:
    """The program with the reduction loops of some stages run backwards: the same terms in another order."""
    axes = {a.name: a for s in program.stages if s.name in names for a in s.reduction}

    def mirrored(env: dict[str, Axis]) -> dict[str, Any]:
        return {n: Const(a.lower.value + a.upper.value - 1) - Var(n) for n, a in env.items()}  # type: ignore[union-attr]

    def block(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        found: list[Statement] = []
        for node in body:
            match node:
                case Loop(axis, inner):
                    found.append(Loop(axis, block(inner)))
                case Guard(test, inner):
                    assert isinstance(test, Bool)
                    found.append(Guard(substitute_bool(test, mirrored(axes)), block(inner)))
                case Assign():
                    m = mirrored(axes)

                    def integer(e: Int, m: dict[str, Any] = m) -> Int:
                        return substitute_int(e, m)

                    def truth(e: Bool, m: dict[str, Any] = m) -> Bool:
                        return substitute_bool(e, m)

                    value = map_value(node.value, on_int=integer, on_bool=truth)
                    found.append(replace(node, value=value))
        return tuple(found)

    return replace(program, body=block(program.body))


def assert_within(got: Any, oracle: Any, tolerance: Any) -> None:
    got, oracle = got.astype(np.float64), oracle.astype(np.float64)
    with np.errstate(invalid="ignore"):
        gap = np.abs(got - oracle)
    bad = ~(gap <= tolerance) & ~((got == oracle) | (np.isnan(got) & np.isnan(oracle)))
    assert not bad.any(), (got[bad], oracle[bad], tolerance[bad])


@pytest.mark.parametrize("acc", ["f32", "f16", "bf16", "f64"])
@pytest.mark.parametrize("k", [1, 2, 3, 17, 200])
def test_every_order_of_a_matrix_product_is_inside(acc: str, k: int) -> None:
    program = ir.workload("matmul", m=8, n=8, k=k, a="f16", b="f16", acc=acc)
    data = ir.random_inputs(program, np.random.default_rng(k))
    out, tolerance = ir.run_with_error(program, data, fused_stages={"C"})
    np.testing.assert_array_equal(out["C"], ir.run(program, data)["C"])
    a, b = data["A"].astype(np.float64), data["B"].astype(np.float64)
    assert_within(a @ b, out["C"], tolerance["C"])
    assert_within(ir.run(reversed_reductions(program, {"C"}), data)["C"], out["C"], tolerance["C"])
    fused = ir.parse(str(program).replace("C[i, j] += ", "C[i, j] = fma(").replace(" * ", ", ").replace("[p, j])", "[p, j]), C[i, j])") if acc != "f16" else
                     str(program).replace("C[i, j] += A[i, p] * B[p, j]", "C[i, j] = fma(A[i, p], B[p, j], C[i, j])"))  # fmt: skip
    assert "fma" in str(fused)
    assert_within(ir.run(fused, data)["C"], out["C"], tolerance["C"])
    u = program.tensors["C"].dtype.unit_roundoff
    scale = np.abs(a) @ np.abs(b)
    if (k + 1) * u < 0.5:
        assert (tolerance["C"] <= 2.1 * (k + 1) * u / (1 - (k + 1) * u) * scale + k * 1e-7).all()


def test_nothing_reassociated_means_no_tolerance() -> None:
    for name, defines in [
        ("matmul", {}),
        ("matmul", {"t": "u8"}),
        ("matmul_bias_relu", {}),
        ("matmul_requant", {}),
        ("conv2d", {"h": 6, "w": 6}),
    ]:
        program = ir.workload(name, **{**dict.fromkeys([s for s in "mnk" if name.startswith("matmul")], 8), **defines})
        data = ir.random_inputs(program, np.random.default_rng(0))
        integer = [s.name for s in program.stages if not s.assign.value.dtype.is_float]
        _, tolerance = ir.run_with_error(program, data, fused_stages=integer)
        assert all((t == 0).all() for t in tolerance.values())
        assert all(tolerance[n].shape == program.tensors[n].extents for n in program.outputs)


CHAINS = {
    "bias and ramp": "S[i] + 0.5 if S[i] > 0 else 0.0",
    "quotient": "S[i] / (abs(S[i]) + 1)",
    "exp": "exp(S[i] * 0.5)",
    "tanh": "tanh(S[i]) * S[i]",
    "root": "sqrt(abs(S[i]) + 1)",
    "inverse root": "rsqrt(abs(S[i]) + 1)",
    "logarithm": "log(abs(S[i]) + 2)",
    "gelu": "S[i] * 0.5 * (1 + erf(S[i] * 0.70710678))",
    "silu": "S[i] * sigmoid(S[i])",
    "narrow": "f32(bf16(S[i]))",
    "quantise": "f32(sat_s8(S[i] * 20)) * 0.05",
    "floor": "floor(S[i] * 4)",
    "extrema": "min(max(S[i], -0.5), 0.5)",
    "difference": "S[i] - S[(i + 1) % 64]",
    "fused": "fma(S[i], S[i], S[(i + 3) % 64])",
}
STEPS = ("quantise", "floor", "narrow")
"""Results that a small error moves only where it crosses a step."""


@pytest.mark.parametrize("name", CHAINS)
def test_errors_propagate_through_what_follows_a_sum(name: str) -> None:
    text = CHAINS[name]
    program = ir.parse(
        "def f(A: f32[64, 48], B: f32[48], C: f32[64], D: f32[64]):\n    S: f32[64]\n    for i in range(64):\n        S[i] = 0\n"
        "        for p in range(48):\n            S[i] += A[i, p] * B[p]\n    for i in range(64):\n"
        f"        C[i] = {text}\n    for i in range(64):\n        D[i] = C[i] + C[63 - i] * 2\n"
    )
    for seed in range(4):
        data = ir.random_inputs(program, np.random.default_rng(seed))
        out, tolerance = ir.run_with_error(program, data, fused_stages={"S"})
        other = ir.run(reversed_reductions(program, {"S"}), data)
        for n in "CD":
            assert_within(other[n], out[n], tolerance[n])
        assert tolerance["C"].max() > 0 or name in STEPS
        assert np.median(tolerance["C"]) < 1e-3


def test_softmax_is_inside_and_tight() -> None:
    program = ir.workload("softmax", m=20, n=50)
    data = ir.random_inputs(program, np.random.default_rng(0))
    out, tolerance = ir.run_with_error(program, data, fused_stages={"M", "S", "Y"})
    x = data["X"].astype(np.float64)
    e = np.exp(x - x.max(1, keepdims=True))
    assert_within(e / e.sum(1, keepdims=True), out["Y"], tolerance["Y"])
    assert (tolerance["Y"] < 1e-4 * out["Y"]).all()


def test_a_choice_may_flip_only_where_the_error_reaches() -> None:
    program = ir.parse(
        "def f(A: f32[3, 2], C: f32[3]):\n    S: f32[3]\n    for i in range(3):\n        S[i] = 0\n        for p in range(2):\n"
        "            S[i] += A[i, p]\n    for i in range(3):\n        C[i] = 1.0 if S[i] > 0.5 else 0.0\n"
    )
    a = np.array([[0.25, 0.25], [0.3, 0.3], [0.1, 0.1]], np.float32)
    _, tolerance = ir.run_with_error(program, {"A": a}, fused_stages={"S"})
    assert tolerance["C"][0] >= 1
    assert tolerance["C"][1] == tolerance["C"][2] == 0


def test_sums_over_channels_of_a_guarded_convolution() -> None:
    program = ir.workload("conv2d", n=1, h=7, w=7, ci=8, co=4, groups=2)
    data = ir.random_inputs(program, np.random.default_rng(0))
    out, tolerance = ir.run_with_error(program, data, fused_stages={"Y"})
    assert_within(ir.run(reversed_reductions(program, {"Y"}), data)["Y"], out["Y"], tolerance["Y"])
    assert 0 < tolerance["Y"].max() < 1e-4


@QUICK
@given(reduction_texts(), st.integers(0, 3))
def test_random_reductions_backwards_are_inside(text: str, seed: int) -> None:
    program = ir.parse(text)
    stage = program.stages[-1]
    if "A[0, 0] != 0" in text or not {"p", "r"} <= {a.name for a in stage.reduction} or stage.init is None:
        return
    data = ir.random_inputs(program, np.random.default_rng(seed))
    out, tolerance = ir.run_with_error(program, data, fused_stages={stage.name})
    other = ir.run(reversed_reductions(program, {stage.name}), data)
    # Bounds are those of sums that do not overflow in any order.
    inside = np.isfinite(out["C"].astype(np.float64)) & np.isfinite(other["C"].astype(np.float64))
    assert_within(other["C"][inside], out["C"][inside], tolerance["C"][inside])


def test_a_term_of_single_numbers() -> None:
    """Whose product is no array."""
    text = "def f(A: f32[1], Y: f32[1]):\n    for i in range(1):\n        Y[0] = A[0]\n"
    program = ir.parse(text + "        for j in range(1):\n            Y[0] += A[0] * 0.5\n")
    out, tolerance = ir.run_with_error(program, {"A": np.array([3], np.float32)}, fused_stages={"Y"})
    assert out["Y"][0] == 4.5
    assert tolerance["Y"][0] < 1e-5


@pytest.mark.slow
@QUICK
@given(program_texts(), st.integers(0, 3))
def test_any_program_runs_with_errors_and_gives_the_oracles_outputs(text: str, seed: int) -> None:
    program = ir.parse(text)
    data = ir.random_inputs(program, np.random.default_rng(seed))
    plain = ir.run(program, data)
    out, tolerance = ir.run_with_error(program, data, fused_stages={s.name for s in program.stages})
    for n in program.outputs:
        np.testing.assert_array_equal(out[n].astype(np.float64), plain[n].astype(np.float64))
        assert (tolerance[n] >= 0).all()


def in_thirteen_bits(terms: Any) -> Any:
    """Sums along the last axis, 32 terms at a time, each rounded toward zero at 13 bits below the largest of them."""
    total = np.zeros(terms.shape[:-1])
    for at in range(0, terms.shape[-1], 32):
        parts = np.concatenate([terms[..., at : at + 32], total[..., None]], -1)
        last = np.ldexp(1.0, np.frexp(np.abs(parts).max(-1))[1] - 13)
        total = (np.trunc(parts / last[..., None])).sum(-1) * last
    return total


@pytest.mark.parametrize("depth", [32, 256, 4096])
def test_few_bits_excuse_their_own_rounding_alone(depth: int) -> None:
    """An instruction that keeps 13 of 23 bits passes; no sum at all, or one without its last quarter, does not."""
    program = ir.workload("matmul_nt", m=12, n=12, k=depth, a="e4m3", b="e4m3", acc="f32")
    arrays = ir.random_inputs(program, np.random.default_rng(0))
    wants, bounds = ir.run_with_error(program, arrays, fused_stages={"C"}, slack=Slack(2.0**12))
    a, b = (np.asarray(arrays[name]).astype(np.float64) for name in ("A", "B"))
    terms = a[:, None, :] * b[None, :, :]
    assert_within(in_thirteen_bits(terms), wants["C"], bounds["C"])
    for wrong in (0 * wants["C"], terms[..., : depth * 3 // 4].sum(-1)):
        assert (np.abs(wrong - wants["C"]) > bounds["C"]).mean() > 0.25


@pytest.mark.parametrize("masked", ["x if j <= i else -inf", "x + (0 if j <= i else -inf)", "(x if j <= i else -inf) * 0.5"])
def test_masked_scores_have_no_error_and_so_their_rows_have_a_bound(masked: str) -> None:
    program = ir.parse(f"""
def f(Q: f32[n, d], K: f32[n, d], P: f32[n, n], *, n=9, d=16):
    S: f32[n, n]
    M: f32[n]
    for i, j in grid(n, n):
        S[i, j] = 0
        for p in range(d):
            S[i, j] += Q[i, p] * K[j, p]
    for i in range(n):
        M[i] = -inf
        for j in range(n):
            x = S[i, j]
            M[i] = max(M[i], {masked})
    for i, j in grid(n, n):
        x = S[i, j]
        P[i, j] = exp({masked} - M[i])
""")
    data = ir.random_inputs(program, np.random.default_rng(0))
    out, tolerance = ir.run_with_error(program, data, fused_stages={"S"})
    assert 1e-7 < tolerance["P"].max() < 1e-3
    assert_within(ir.run(reversed_reductions(program, {"S"}), data)["P"], out["P"], tolerance["P"])


def test_infinity_times_what_may_be_zero_has_no_bound() -> None:
    program = ir.parse("""
def f(A: f32[k], B: f32[2], C: f32[2], *, k=4):
    S: f32[1]
    S[0] = 0
    for p in range(k):
        S[0] += A[p]
    for i in range(2):
        C[i] = S[0] * B[i]
""")
    data = {"A": np.array([1, 2**-24, 2**-24, -1], np.float32), "B": np.array([np.inf, 1], np.float32)}
    _, tolerance = ir.run_with_error(program, data, fused_stages={"S"})
    assert tolerance["C"][0] == np.inf, "the sum is 0 or not, by its order, so infinity times it is NaN or not"
    assert tolerance["C"][1] < 1e-5
