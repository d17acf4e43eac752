"""What is rewritten of each workload of a fused chain, and that the program after computes what the one before does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autosched
from autosched import ir
from autosched.ir.rewrites.listing import accepted

Sizes = dict[str, Any]
ATTENTION: Sizes = {"h": 2, "n": 5, "l": 11, "d": 3}
CACHE: Sizes = {"b": 2, "h": 2, "l": 11}
WEIGHTS: Sizes = {"m": 2, "n": 4, "k": 8, "g": 4}
IMAGE: Sizes = {"h": 4, "w": 3, "c": 2, "co": 3}
PASS = {"online": ("M", "Z", "A")}
CASES: list[tuple[str, Sizes, dict[str, tuple[str, ...]]]] = [
    ("attention", ATTENTION, PASS),
    ("attention", {**ATTENTION, "mask": "causal", "group": 2}, PASS),
    ("attention", {**ATTENTION, "mask": "window", "window": 4}, PASS),
    ("attention", {**ATTENTION, "mask": "causal", "t": "bf16"}, PASS),
    ("attention_alibi", ATTENTION, PASS),
    ("attention_softcap", ATTENTION, PASS),
    ("attention_offsets", {"h": 2, "n": 11, "d": 3}, PASS),
    ("attention_decode", {**CACHE, "d": 3, "group": 2}, PASS),
    ("mla_decode", {**CACHE, "c": 3, "r": 2}, PASS),
    ("rms_norm_product", {"m": 2, "k": 11, "n": 3}, {"online": ("Q", "Y")}),
    ("layer_norm_product", {"m": 2, "k": 11, "n": 3}, {"online": ("M", "Q", "Y")}),
    ("matmul_int4", WEIGHTS, {"defer": ("Y",)}),
    ("matmul_int8", WEIGHTS, {"defer": ("Y",)}),
    ("matmul_fp8", WEIGHTS, {"defer": ("Y",)}),
    ("matmul_fp4", WEIGHTS, {"defer": ("Y",)}),
    ("matmul_fp8_blocks", WEIGHTS, {"defer": ("C",)}),
    ("cross_entropy", {"m": 3, "k": 3, "v": 11}, {"online": ("M", "Z")}),
    ("log_softmax", {"m": 3, "n": 11}, {"online": ("M", "Z")}),
    ("mean_variance", {"m": 3, "n": 11}, {"online": ("S", "Q")}),
    ("depthwise_pointwise", IMAGE, {"mask to bounds": ("A",)}),
    ("conv2d_pointwise", {**IMAGE, "ci": 2}, {"mask to bounds": ("A",)}),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("name", "sizes", "expected"), CASES, ids=lambda x: x if isinstance(x, str) else "")
def test_what_is_rewritten_computes_the_same(name: str, sizes: Sizes, expected: dict[str, tuple[str, ...]]) -> None:
    program = ir.workload(name, **sizes)
    data = ir.split_inputs(program, ir.random_inputs(program, np.random.default_rng(0)))
    before = ir.run(program, *data)
    for shape in ({}, {"parts": 2}, {"tile": 2}):
        found = [v for v in autosched.rewrites(program, numerics="real", block=3, **shape) if accepted(v, "real")]
        assert expected.items() <= {v.name: v.stages for v in found}.items()
        for verdict in found if not shape else found[:1]:
            assert verdict.after is not None
            after = ir.run(verdict.after, *data)
            for tensor, values in before.items():
                close = {"rtol": 1e-2, "atol": 1e-2} if sizes.get("t") == "bf16" else {"rtol": 1e-4, "atol": 1e-3}
                np.testing.assert_allclose(after[tensor].astype(float), values.astype(float), **close)


@pytest.mark.parametrize(
    ("name", "kept"),
    [("attention", "S"), ("attention_decode", "S"), ("mla_decode", "S"), ("mla_decode", "U"), ("cross_entropy", "C")],
)
def test_scores_are_in_memory_a_block_at_a_time(name: str, kept: str) -> None:
    (found,) = (v for v in autosched.rewrites(ir.workload(name), block=16, tile=8) if v.name == "online")
    assert found.after is not None
    assert kept not in found.after.tensors
    assert found.after.tensors[f"{kept}_block"].extents[-1] == 16


STAGES = """
def stages(S: f32[n, n], V: f32[n, d], O: f32[n, d], *, n=24, d=3):
    X: f32[n, n]
    P: f32[n, n]
    M: f32[n]
    Z: f32[n]
    for i, j in grid(n, n):
        X[i, j] = S[i, j] * 0.5 if j <= i else -inf
    for i in range(n):
        M[i] = -inf
        for j in range(n):
            M[i] = max(M[i], X[i, j])
    for i, j in grid(n, n):
        P[i, j] = exp(X[i, j] - M[i])
    for i in range(n):
        Z[i] = 0
        for j in range(n):
            Z[i] += P[i, j]
    for i, e in grid(n, d):
        O[i, e] = 0
        for j in range(n):
            O[i, e] += P[i, j] / Z[i] * V[j, e]
"""


def test_a_mask_in_a_stage_of_its_own_bounds_the_pass() -> None:
    program = ir.parse(STAGES)
    (found,) = (v for v in autosched.rewrites(program, block=8) if v.name == "online")
    assert found.after is not None
    assert found.stages == ("M", "Z", "O")
    assert any("bounds" in o.name for o in found.obligations)
    assert not {"X", "P"} & set(found.after.tensors)
    data = ir.random_inputs(program, np.random.default_rng(0))
    np.testing.assert_allclose(ir.run(found.after, data)["O"], ir.run(program, data)["O"], rtol=1e-5, atol=1e-6)
    data["S"] = np.where(np.tri(24, dtype=bool), data["S"], np.float32(np.nan))
    assert np.isfinite(ir.run(found.after, data)["O"]).all(), "elements behind the mask are not read"


def test_scores_below_a_mask_from_data_stay_in_blocks() -> None:
    text = STAGES.replace("S: f32[n, n], V", "Q: f32[n, d], K: f32[n, d], L: s32[n], V")
    text = text.replace("j <= i", "s32(j) < L[i]")
    product = """
    S: f32[n, n]
    for i, j in grid(n, n):
        S[i, j] = 0
        for p in range(d):
            S[i, j] += Q[i, p] * K[j, p]
"""
    program = ir.parse(text.replace("    X: f32[n, n]\n", "    assume(1 <= L <= n)\n    X: f32[n, n]" + product))
    (found,) = (v for v in autosched.rewrites(program, block=8, tile=4) if v.name == "online")
    assert found.after is not None
    assert not {"S", "X", "P"} & set(found.after.tensors)
    data = ir.random_inputs(program, np.random.default_rng(0))
    np.testing.assert_allclose(ir.run(found.after, data)["O"], ir.run(program, data)["O"], rtol=1e-5, atol=1e-6)
