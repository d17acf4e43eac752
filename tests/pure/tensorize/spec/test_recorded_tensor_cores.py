"""Contracts and fragment maps against what a card computed: `tests/data/tensor_cores_sm90.json`, bit by bit.

The file says which card, driver and compiler. Elements were chosen where nearby contracts differ (one bit more or
fewer, other blocks, other rounding), so agreement is not a matter of easy inputs.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.paths import TESTS

from autosched.ir.dtypes import DType
from autosched.tensorize.check.values import same_bits
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.numerics.model import issue
from autosched.tensorize.spec.catalogue import Catalogue

RECORDED = json.loads((TESTS / "data" / "tensor_cores_sm90.json").read_text(encoding="utf-8"))
CATALOGUE = Catalogue.builtin()
FEATURES = frozenset(RECORDED["features"])
LOOSE = {"cuda/mma.m8n8k4.f16.f16.f16": 1}
"""Elements that the model misses: Volta's form with an f16 accumulator, emulated on later machines."""


def numbers(text: str, dtype: DType) -> Any:
    """Elements from their bits in hexadecimal."""
    width = 32 if dtype.name == "tf32" else dtype.bits
    digits = max(1, width // 4)
    raw = np.array([int(text[n : n + digits], 16) for n in range(0, len(text), digits)], np.uint64)
    if width >= 8:
        return raw.astype(f"u{width // 8}").view(dtype.numpy)
    signed = np.where(raw >= 1 << (width - 1), raw.astype(np.int64) - (1 << width), raw.astype(np.int64))
    return (signed if dtype.kind == "int" else raw).astype(np.int8).astype(dtype.numpy)


def filled(intrinsic: Intrinsic, records: list[list[str]]) -> tuple[dict[str, Any], Any]:
    """Operands whose every row of a, and column of b, is the recorded one; and the recorded results."""
    a, b, c = (intrinsic.operands[n] for n in "abc")
    cases = len(records)
    left = np.stack([numbers(r[0], a.dtype) for r in records])
    right = np.stack([numbers(r[1], b.dtype) for r in records])
    arrays = {
        "a": left.reshape(cases, *(1,) * (len(a.shape) - 1), -1),
        "b": right.reshape(cases, *(1,) * (len(b.shape) - 2), -1, 1) if len(b.shape) > 1 else right,
        "c": np.stack([numbers(r[2], c.dtype) for r in records]).reshape(cases, *(1,) * len(c.shape)),
    }
    for operand in (a, b, c):
        whole = np.broadcast_to(arrays[operand.name], (cases, *operand.shape))
        arrays[operand.name] = np.ascontiguousarray(whole)
    return arrays, np.concatenate([numbers(r[3], c.dtype) for r in records])


@pytest.mark.sampled(46)
@pytest.mark.parametrize("name", RECORDED["elements"])
def test_the_model_computes_what_the_card_did(name: str) -> None:
    intrinsic = CATALOGUE[name].on(FEATURES)
    arrays, expected = filled(intrinsic, RECORDED["elements"][name])
    got = issue(intrinsic, arrays).reshape(len(expected), -1)[:, 0]
    wrong = ~same_bits(got, expected, intrinsic.accumulator.dtype)
    assert wrong.sum() <= LOOSE.get(name, 0), (got[wrong], expected[wrong])


@pytest.mark.parametrize("name", RECORDED["registers"])
def test_fragment_maps_put_elements_where_the_card_has_them(name: str) -> None:
    intrinsic, recorded = CATALOGUE[name].on(FEATURES), RECORDED["registers"][name]

    def gathered(key: str, operand: str) -> Any:
        made = intrinsic.operands[operand]
        assert made.fragment is not None
        points, _ = made.fragment.points()
        found = np.zeros((1, *made.shape), made.dtype.numpy)
        found[(0, *points)] = np.stack([numbers(lane, made.dtype) for lane in recorded[key]])
        return found

    got = issue(intrinsic, {n: gathered(n, n) for n in "abc"})
    same = same_bits(got, gathered("d", "c"), intrinsic.accumulator.dtype)
    assert same.all(), f"{(~same).sum()} of {same.size} differ"


def test_the_recording_tells_contracts_apart() -> None:
    """A neighbour of each contract disagrees with the card somewhere."""
    for name in ("cuda/wgmma.m64n8k16.f16.f32", "cuda/wgmma.m64n8k32.e4m3.e4m3.f32", "cuda/mma.m16n8k8.tf32.tf32.f32"):
        own = CATALOGUE[name].on(FEATURES)
        arrays, expected = filled(own, RECORDED["elements"][name])
        assert own.numerics.fraction_bits is not None
        bits, terms = own.numerics.fraction_bits, own.numerics.terms or 1
        for other in (
            {"fraction_bits": bits - 1},
            {"fraction_bits": bits + 1},
            {"terms": terms // 2},
            {"rounding": "rne"},
            {"start": "zero"},
        ):
            changed = replace(own, numerics=replace(own.numerics, **other))  # type: ignore[arg-type]
            got = issue(changed, arrays).reshape(len(expected), -1)[:, 0]
            assert not same_bits(got, expected, own.accumulator.dtype).all(), (name, other)
