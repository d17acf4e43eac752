"""Attention workloads compute what numpy, and torch where it is installed, compute from the formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autosched.ir as ir

Arrays = dict[str, Any]
SIZES = {"h": 4, "n": 9, "l": 12, "d": 8}


def computed(name: str, seed: int = 0, **defines: Any) -> tuple[Arrays, Any]:
    """Inputs in f64, and the output."""
    program = ir.workload(name, **defines)
    data = ir.random_inputs(program, np.random.default_rng(seed))
    (output,) = program.outputs
    out = ir.run(program, *ir.split_inputs(program, data))[output]
    return {n: np.asarray(a, np.float64) for n, a in data.items()}, out.astype(np.float64)


def attention(scores: Any, keep: Any, values: Any) -> Any:
    """softmax(scores) values over the keys that are kept, by rows."""
    weights = np.where(keep, np.exp(scores - np.where(keep, scores, -np.inf).max(-1, keepdims=True)), 0)
    return weights / weights.sum(-1, keepdims=True) @ values


def distance(n: int, keys: int) -> Any:
    """How far key j lies behind query i, the last query lying at the last key."""
    return np.arange(n)[:, None] + keys - n - np.arange(keys)


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("mask", ["full", "causal", "window"])
@pytest.mark.parametrize("t", ["f32", "bf16"])
def test_attention(mask: str, group: int, t: str) -> None:
    more = {"window": 3} if mask == "window" else {}
    data, out = computed("attention", mask=mask, group=group, t=t, **SIZES, **more)
    k, v = (np.repeat(data[n], group, axis=0) for n in "KV")
    behind = distance(9, 12)
    keep = {"full": behind > -99, "causal": behind >= 0, "window": (behind >= 0) & (behind < 3)}[mask]
    expected = attention(data["Q"] @ k.swapaxes(1, 2) / np.sqrt(8), keep, v)
    np.testing.assert_allclose(out, expected, rtol=1e-5 if t == "f32" else 1e-2, atol=1e-6 if t == "f32" else 4e-3)


@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("group", [1, 4])
def test_attention_is_that_of_torch(mask: str, group: int) -> None:
    torch = pytest.importorskip("torch")
    data, out = computed("attention", mask=mask, group=group, h=4, n=9, l=9, d=8)
    q, k, v = (torch.from_numpy(data[n])[None] for n in "QKV")
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=mask == "causal", enable_gqa=True)
    np.testing.assert_allclose(out, expected[0].numpy(), rtol=1e-5, atol=1e-6)


def test_alibi() -> None:
    data, out = computed("attention_alibi", **SIZES)
    behind = distance(9, 12)
    scores = data["Q"] @ data["K"].swapaxes(1, 2) / np.sqrt(8) - data["B"][:, None, None] * behind
    np.testing.assert_allclose(out, attention(scores, behind >= 0, data["V"]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", [0, 1])
def test_soft_cap(seed: int) -> None:
    data, out = computed("attention_softcap", seed, **SIZES)
    scores = np.tanh(data["Q"] @ data["K"].swapaxes(1, 2) / np.sqrt(8) / data["cap"]) * data["cap"]
    np.testing.assert_allclose(out, attention(scores, distance(9, 12) >= 0, data["V"]), rtol=1e-5, atol=1e-6)


def test_sequences_one_behind_the_other_are_those_apart() -> None:
    program = ir.workload("attention_offsets", h=2, n=12, d=8)
    data = ir.random_inputs(program, np.random.default_rng(0))
    ends = [5, 6, 12]
    spans = list(zip([0, *ends], ends, strict=False))
    data["B"] = np.array([b for b, e in spans for _ in range(b, e)], np.int32)
    data["E"] = np.array([e for b, e in spans for _ in range(b, e)], np.int32)
    out = ir.run(program, data)["O"]
    for begin, end in spans:
        q, k, v = (data[n][:, begin:end].astype(np.float64) for n in "QKV")
        alone = attention(q @ k.swapaxes(1, 2) / np.sqrt(8), True, v)
        np.testing.assert_allclose(out[:, begin:end], alone, rtol=1e-5, atol=1e-6)


def test_decode_reads_what_is_filled_of_the_cache() -> None:
    data, out = computed("attention_decode", b=3, h=4, l=40, d=8, group=2)
    assert len(set(data["L"])) > 1
    for s, filled in enumerate(data["L"].astype(int)):
        k, v = (np.repeat(data[n][s, :, :filled], 2, axis=0) for n in "KV")
        scores = np.einsum("hd,hld->hl", data["Q"][s], k) / np.sqrt(8)
        np.testing.assert_allclose(out[s], attention(scores[:, None], True, v)[:, 0], rtol=1e-5, atol=1e-6)


def test_mla_decode_has_one_cache_for_all_heads() -> None:
    data, out = computed("mla_decode", b=3, h=4, l=40, c=8, r=4)
    for s, filled in enumerate(data["L"].astype(int)):
        keys = np.concatenate([data["C"][s, :filled], data["T"][s, :filled]], axis=1)
        queries = np.concatenate([data["Q"][s], data["R"][s]], axis=1)
        expected = attention(queries @ keys.T * data["scale"], True, data["C"][s, :filled])
        np.testing.assert_allclose(out[s], expected, rtol=1e-5, atol=1e-6)


def test_linear_attention() -> None:
    data, out = computed("linear_attention", h=2, n=9, d=8, e=4)
    q, k = (np.where(data[n] > 0, data[n] + 1, np.exp(data[n])) for n in "QK")
    state, total = k.swapaxes(1, 2) @ data["V"], k.sum(1)  # the sums over keys that make it linear
    np.testing.assert_allclose(out, q @ state / (q @ total[..., None]), rtol=1e-4, atol=1e-6)


def test_causal_linear_attention_is_a_recurrence() -> None:
    data, out = computed("linear_attention", mask="causal", h=2, n=9, d=8, e=4)
    state = np.zeros((2, 8, 4))
    for i in range(9):
        state += data["K"][:, i, :, None] * data["V"][:, i, None]
        np.testing.assert_allclose(out[:, i], np.einsum("hd,hde->he", data["Q"][:, i], state), rtol=1e-4, atol=1e-5)
