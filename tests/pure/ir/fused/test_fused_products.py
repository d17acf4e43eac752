"""Products with scales by groups and with experts compute what numpy computes from weights that were scaled first."""

from __future__ import annotations

from typing import Any

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


@pytest.mark.parametrize("name", ["matmul_int4", "matmul_int8", "matmul_fp8"])
def test_weights_of_few_bits(name: str) -> None:
    data, out = computed(name, m=3, n=5, k=24, g=8)
    zero = by_group(data["Z"], 8, 0) if "Z" in data else 0
    weights = (data["W"] - zero) * by_group(data["S"], 8, 0)
    np.testing.assert_allclose(out, data["X"] @ weights, rtol=1e-4, atol=1e-3)


def test_weights_of_four_bits_span_their_range() -> None:
    data, _ = computed("matmul_int4", m=1, n=32, k=64)
    assert set(data["W"].ravel()) == set(range(16))


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
