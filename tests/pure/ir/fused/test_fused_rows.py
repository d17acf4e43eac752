"""Losses, moments, convolutions in a row and scans compute what numpy, and torch where it is installed, compute."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
import pytest

import autosched.ir as ir

Arrays = dict[str, Any]


def computed(name: str, **defines: Any) -> tuple[Arrays, Arrays]:
    program = ir.workload(name, **defines)
    data = ir.random_inputs(program, np.random.default_rng(0))
    return {n: a.astype(np.float64) for n, a in data.items()}, ir.run(program, data)


def log_softmax(x: Any) -> Any:
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def test_cross_entropy() -> None:
    data, out = computed("cross_entropy", m=7, k=6, v=20)
    target = data["T"].astype(int)
    assert len(set(target)) > 3
    expected = -log_softmax(data["X"] @ data["W"])[np.arange(7), target]
    np.testing.assert_allclose(out["Y"], expected, rtol=1e-5, atol=1e-6)


def test_cross_entropy_is_that_of_torch() -> None:
    torch = pytest.importorskip("torch")
    data, out = computed("cross_entropy", m=7, k=6, v=20)
    logits = torch.from_numpy(data["X"] @ data["W"])
    expected = torch.nn.functional.cross_entropy(logits, torch.from_numpy(data["T"]).long(), reduction="none")
    np.testing.assert_allclose(out["Y"], expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("t", ["f32", "f16"])
def test_log_softmax(t: str) -> None:
    data, out = computed("log_softmax", m=3, n=20, t=t)
    expected = log_softmax(data["X"])
    np.testing.assert_allclose(out["Y"].astype(np.float64), expected, rtol=1e-5 if t == "f32" else 2e-3, atol=1e-5)


def test_log_softmax_of_large_numbers() -> None:
    program = ir.workload("log_softmax", m=1, n=2)
    out = ir.run(program, {"X": np.array([[1000, 999]], np.float32)})["Y"]
    np.testing.assert_allclose(out, [log_softmax(np.array([0.0, -1.0]))], rtol=1e-5)


def test_mean_and_variance() -> None:
    data, out = computed("mean_variance", m=3, n=20)
    np.testing.assert_allclose(out["M"], data["X"].mean(1), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(out["V"], data["X"].var(1), rtol=1e-4)


def convolved(x: Any, d: Any) -> Any:
    """3 by 3 of [n, h, w, ci] with [3, 3, ci, c], zero outside."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.einsum("nhwirs,rsic->nhwc", windows, d)


@pytest.mark.parametrize("name", ["depthwise_pointwise", "conv2d_pointwise"])
def test_convolutions_in_a_row(name: str) -> None:
    data, out = computed(name, n=2, h=6, w=5, c=4, co=3, **({"ci": 40} if name == "conv2d_pointwise" else {}))
    d = data["D"] if name == "conv2d_pointwise" else data["D"][..., None] * np.eye(4)
    inner = convolved(data["X"], d)
    assert (inner < 0).any()
    assert name == "depthwise_pointwise" or (inner > 6).any()
    np.testing.assert_allclose(out["Y"], np.clip(inner, 0, 6) @ data["P"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("stride", [1, 2])
def test_an_inverted_residual_block(stride: int) -> None:
    data, out = computed("inverted_residual", n=2, h=3, w=4, st=stride, ci=20, c=6, co=3)
    wide = np.clip(data["X"] @ data["E"], 0, 6)
    inner = convolved(wide, data["D"][..., None] * np.eye(6))[:, ::stride, ::stride]
    np.testing.assert_allclose(out["Y"], np.clip(inner, 0, 6) @ data["P"], rtol=1e-4, atol=1e-5)


def test_separable_convolutions_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    data, out = computed("depthwise_pointwise", n=2, h=6, w=5, c=4, co=3)
    x, d = (torch.from_numpy(data[n]) for n in "XD")
    inner = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), d.permute(2, 0, 1)[:, None], padding=1, groups=4)
    expected = torch.nn.functional.relu6(inner).permute(0, 2, 3, 1) @ torch.from_numpy(data["P"])
    np.testing.assert_allclose(out["Y"], expected.numpy(), rtol=1e-4, atol=1e-5)


def test_scans() -> None:
    data, out = computed("prefix_sum", m=3, n=20, t="f16")
    np.testing.assert_allclose(out["Y"], np.cumsum(data["X"], axis=1), rtol=1e-5, atol=1e-5)
    data, out = computed("prefix_max", m=3, n=20)
    np.testing.assert_array_equal(out["Y"], np.maximum.accumulate(data["X"], axis=1))
    data, out = computed("linear_scan", m=3, n=20)
    for gates, row, y in zip(data["A"], data["X"], out["Y"], strict=True):
        states = accumulate(zip(gates, row, strict=True), lambda s, x: x[0] * s + x[1], initial=0.0)
        np.testing.assert_allclose(y, list(states)[1:], rtol=1e-4, atol=1e-5)
