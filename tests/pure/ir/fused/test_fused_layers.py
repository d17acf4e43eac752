"""Feed-forward layers and norms with a product behind compute what numpy, and torch where it is installed, compute."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import autosched.ir as ir

ERF = np.vectorize(math.erf)


def gelu(x: Any) -> Any:
    return x / 2 * (1 + ERF(x / math.sqrt(2)))


def silu(x: Any) -> Any:
    return x / (1 + np.exp(-x))


def computed(name: str, **defines: Any) -> tuple[dict[str, Any], Any]:
    program = ir.workload(name, **defines)
    data = ir.random_inputs(program, np.random.default_rng(0))
    return {n: a.astype(np.float64) for n, a in data.items()}, ir.run(program, data)["Y"].astype(np.float64)


@pytest.mark.parametrize("t", ["f32", "bf16"])
def test_mlp(t: str) -> None:
    data, out = computed("mlp", m=3, k=8, f=12, n=5, t=t)
    expected = gelu(data["X"] @ data["W"] + data["B"]) @ data["D"] + data["E"]
    np.testing.assert_allclose(out, expected, rtol=1e-5 if t == "f32" else 2e-2, atol=1e-5 if t == "f32" else 3e-2)


@pytest.mark.parametrize(("name", "activation"), [("swiglu", silu), ("geglu", gelu)])
def test_gated_layers(name: str, activation: Any) -> None:
    data, out = computed(name, m=3, k=8, f=12, n=5)
    expected = (activation(data["X"] @ data["W"]) * (data["X"] @ data["U"])) @ data["D"]
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "activation"), [("swiglu", "silu"), ("geglu", "gelu")])
def test_gated_layers_are_those_of_torch(name: str, activation: str) -> None:
    torch = pytest.importorskip("torch")
    data, out = computed(name, m=3, k=8, f=12, n=5)
    x, w, u, d = (torch.from_numpy(data[n]) for n in "XWUD")
    expected = getattr(torch.nn.functional, activation)(x @ w) * (x @ u) @ d
    np.testing.assert_allclose(out, expected.numpy(), rtol=1e-4, atol=1e-5)


def test_rms_norm_and_a_product() -> None:
    data, out = computed("rms_norm_product", m=3, k=16, n=5)
    x = data["X"]
    normed = x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * data["G"]
    np.testing.assert_allclose(out, normed @ data["W"], rtol=1e-4, atol=1e-5)


def test_layer_norm_and_a_product() -> None:
    data, out = computed("layer_norm_product", m=3, k=16, n=5)
    x = data["X"]
    normed = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * data["G"] + data["B"]
    np.testing.assert_allclose(out, normed @ data["W"], rtol=1e-4, atol=1e-5)


def test_norms_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    norms = torch.nn.functional
    for name, norm, factors in (("rms_norm", norms.rms_norm, "G"), ("layer_norm", norms.layer_norm, "GB")):
        data, out = computed(f"{name}_product", m=3, k=16, n=5)
        x, w, *given = (torch.from_numpy(data[n]) for n in ("X", "W", *factors))
        np.testing.assert_allclose(out, (norm(x, (16,), *given, eps=1e-5) @ w).numpy(), rtol=1e-4, atol=1e-5)
