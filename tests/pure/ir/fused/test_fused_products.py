"""Products with scales by groups and with experts compute what numpy computes from weights that were scaled first."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import autosched.ir as ir

Arrays = dict[str, Any]


def computed(name: str, **defines: Any) -> tuple[Arrays, Any]:
    program = ir.workload(name, **defines)
    data = ir.random_inputs(program, np.random.default_rng(0))
    (output,) = program.outputs
    return {n: a.astype(np.float64) for n, a in data.items()}, ir.run(program, data)[output].astype(np.float64)


def by_group(scales: Any, g: int, *axes: int) -> Any:
    for axis in axes:
        scales = np.repeat(scales, g, axis=axis)
    return scales


@pytest.mark.parametrize("name", ["matmul_int4", "matmul_int8", "matmul_fp8", "matmul_fp4"])
def test_weights_of_few_bits(name: str) -> None:
    data, out = computed(name, m=3, n=5, k=24, g=8)
    zero = by_group(data["Z"], 8, 0) if "Z" in data else 0
    weights = (data["W"] - zero) * by_group(data["S"], 8, 0)
    np.testing.assert_allclose(out, data["X"] @ weights, rtol=1e-4, atol=1e-3)


def test_weights_of_four_bits_span_their_range() -> None:
    data, _ = computed("matmul_int4", m=1, n=32, k=64)
    assert set(data["W"].ravel()) == set(range(16))


@pytest.mark.parametrize("scales", ["f32", "bf16"])
def test_floats_of_four_bits_two_to_a_byte(scales: str) -> None:
    """The answer is numpy's, of what ml_dtypes makes of each half of a byte."""
    program = ir.workload("matmul_fp4_packed", m=3, n=5, k=24, g=8, s=scales)
    data = ir.random_inputs(program, np.random.default_rng(0))
    halves = np.stack([data["W"] & 15, data["W"] >> 4], axis=1).reshape(24, 5)
    assert set(halves.ravel()) == set(range(16))
    weights = halves.view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    expected = data["X"].astype(np.float64) @ (weights * by_group(data["S"].astype(np.float64), 8, 0))
    np.testing.assert_allclose(ir.run(program, data)["Y"], expected, rtol=1e-4, atol=1e-3)
    plain = ir.workload("matmul_fp4", m=3, n=5, k=24, g=8, s=scales)
    own = {**data, "W": halves.view(ml_dtypes.float4_e2m1fn)}
    np.testing.assert_array_equal(ir.run(program, data)["Y"], ir.run(plain, own)["Y"])


def test_blocks_with_scales() -> None:
    data, out = computed("matmul_fp8_blocks", m=3, n=16, k=24, g=8)
    left = data["A"] * by_group(data["R"], 8, 1)
    right = data["B"] * by_group(data["S"], 8, 0, 1)
    assert len(np.unique(data["A"])) > 20
    np.testing.assert_allclose(out, left @ right, rtol=1e-4, atol=1e-5)


def test_blocks_of_rows_name_their_expert() -> None:
    data, out = computed("matmul_experts", m=24, n=5, k=8, experts=3, block=4)
    assert len(set(data["E"])) > 1
    expected = [x @ data["W"][int(data["E"][i // 4])] for i, x in enumerate(data["X"])]
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


def test_experts_with_fewer_rows() -> None:
    data, out = computed("matmul_experts", rows="masked", m=6, n=5, k=8, experts=4)
    assert len(set(data["R"])) > 1
    expected = np.einsum("xik,xkj->xij", data["X"], data["W"])
    expected[np.arange(6) >= data["R"][:, None]] = 0
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
