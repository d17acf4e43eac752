"""Sums of blocks with scales, bit by bit beside the published model (MMA-Sim) written out in fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from autosched.errors import SpecError
from autosched.ir.dtypes import DTYPES, DType
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.numerics.bound import bound
from autosched.tensorize.numerics.model import Model
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text

CATALOGUE = Catalogue.builtin()
F32 = DTYPES["f32"]
Part = tuple[Fraction, int]


def apart(number: float, dtype: DType) -> Part:
    """Significand and exponent; a subnormal number has the exponent of the least normal one."""
    if number == 0:
        return Fraction(0), 0
    least = -dtype.bias if dtype.scale else 1 - dtype.bias
    exponent = max(math.frexp(number)[1] - 1, least)
    return Fraction(number) / Fraction(2) ** exponent, exponent


def product(parts: Sequence[Part]) -> Part:
    return math.prod((s for s, _ in parts), start=Fraction(1)), sum(e for _, e in parts)


def cut(parts: Sequence[Part], bits: int) -> Fraction:
    """The sum of what is left of each `bits` below the largest exponent."""
    counted = [p for p in parts if p[0]]
    top = max((e for _, e in counted), default=0)
    whole = sum(int(s * Fraction(2) ** (e - top + bits)) for s, e in counted)
    return whole * Fraction(2) ** (top - bits)


def towards_zero(value: Fraction) -> float:
    if not value:
        return 0.0
    exponent = -126
    while Fraction(2) ** (exponent + 1) <= abs(value):
        exponent += 1
    kept = int(abs(value) * Fraction(2) ** (23 - exponent)) * Fraction(2) ** (exponent - 23)
    return math.copysign(float(kept), value)


def published(intrinsic: Intrinsic, a: np.ndarray, sa: np.ndarray, b: np.ndarray, sb: np.ndarray, c: float) -> float:
    """One element: `a` and `b` along k, scales one for each of their stretches."""
    types = [o.dtype for o in intrinsic.operands.values()]
    k, each = len(a), len(a) // len(sa)
    elements = [apart(float(x), types[0]) for x in a], [apart(float(x), types[2]) for x in b]
    scales = [apart(abs(float(x)), types[1]) for x in sa], [apart(abs(float(x)), types[3]) for x in sb]
    if k == 32:
        terms = [product((elements[0][q], scales[0][0], elements[1][q], scales[1][0])) for q in range(k)]
        return towards_zero(cut([*terms, apart(c, F32)], 25))
    terms = []
    for g in range(0, k, 16):
        exact = sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a[g : g + 16], b[g : g + 16], strict=True))
        scale, exponent = product((scales[0][g // each], scales[1][g // each]))
        terms.append((exact * scale, exponent))
    return towards_zero(cut([*terms, apart(c, F32)], 35))


def drawn(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of all exponents; of scales those near one, and the least."""
    if dtype.name == "f32":
        return (rng.standard_normal(shape) * 2.0 ** rng.integers(-30, 30, shape)).astype(np.float32)
    if dtype.scale:
        near = np.where(rng.random(shape) < 0.1, 0, rng.integers(100, 150, shape))
        return near.astype(np.uint8).view(dtype.numpy)
    wide = rng.integers(0, 1 << dtype.bits, shape).astype(np.uint8).view(dtype.numpy).astype(np.float32)
    return np.where(np.isfinite(wide), wide, 0).astype(dtype.numpy)


NAMES = [
    "cuda/mma.m16n8k32.e4m3.e4m3.f32.mxf8f6f4",
    "cuda/mma.m16n8k32.e2m3.e5m2.f32.mxf8f6f4",
    "cuda/mma.m16n8k32.e2m1.e3m2.f32.mxf8f6f4",
    "cuda/mma.m16n8k64.e2m1.e2m1.f32.mxf4",
    "cuda/mma.m16n8k64.e2m1.e2m1.f32.nvf4",
    "cuda/tcgen05.mma.m128n64k32.e3m2.e3m2.f32.mxf8f6f4",
    "cuda/tcgen05.mma.m128n64k64.e2m1.e2m1.f32.mxf4",
    "cuda/tcgen05.mma.m128n64k64.e2m1.e2m1.f32.nvf4",
]


@pytest.mark.parametrize("name", NAMES)
def test_sums_are_the_published_models(name: str) -> None:
    intrinsic = CATALOGUE[name]
    rng = np.random.default_rng(7)
    arrays = {o.name: drawn(rng, o.dtype, o.shape) for o in intrinsic.operands.values()}
    a, sa, b, sb, c = arrays.values()
    found = Model(intrinsic)({n: v[None] for n, v in arrays.items()})[0]
    rows, columns = c.shape
    for i, j in [(i, j) for i in range(0, rows, max(1, rows // 16)) for j in range(min(columns, 8))]:
        scales = np.atleast_1d(sa[i]), np.atleast_1d(sb[..., j])
        assert found[i, j] == published(intrinsic, a[i], scales[0], b[:, j], scales[1], float(c[i, j])), (i, j)


@pytest.mark.parametrize("name", NAMES[:5])
def test_sums_are_within_their_bounds(name: str) -> None:
    """Of small scales, subnormal ones of nvfp4 among them."""
    intrinsic = CATALOGUE[name]
    rng = np.random.default_rng(8)
    arrays = {o.name: drawn(rng, o.dtype, o.shape) for o in intrinsic.operands.values()}
    if "mxf8" in name:  # bounds of sums of products take factors for normal numbers
        for n in ("a", "b"):
            least = 2.0 ** (1 - intrinsic.operands[n].dtype.bias)
            arrays[n] = np.where(np.abs(arrays[n].astype(np.float64)) < least, least, arrays[n]).astype(arrays[n].dtype)
    a, sa, b, sb, c = (np.abs(v.astype(np.float64)) if n in ("sa", "sb") else v.astype(np.float64) for n, v in
                       arrays.items())  # fmt: skip
    k = a.shape[1]
    left = a * np.repeat(sa.reshape(len(a), -1), k // (sa.size // len(a)), axis=1)
    right = b * np.repeat(sb.reshape(-1, b.shape[1]), k // (sb.size // b.shape[1]), axis=0)
    found = Model(intrinsic)({n: v[None] for n, v in arrays.items()})[0]
    allowed = bound(intrinsic.numerics, F32, k, issue=k).factor * (np.abs(left) @ np.abs(right) + np.abs(c))
    assert (np.abs(found - (left @ right + c)) <= allowed * (1 + 1e-9)).all()


def test_no_factor_overflows_and_a_scale_that_is_no_number_is_none() -> None:
    """448 times 2^127 is past f32, and the other side brings it back."""
    intrinsic = CATALOGUE[NAMES[0]]
    types = {o.name: o.dtype for o in intrinsic.operands.values()}
    arrays = {o.name: np.ones((1, *o.shape)).astype(o.dtype.numpy) for o in intrinsic.operands.values()}
    arrays["a"][:] = 448.0
    arrays["sa"][:], arrays["sb"][:] = 2.0**127, 2.0**-120
    assert Model(intrinsic)(arrays)[0, 0, 0] == 32 * 448 * 128.0 + 1
    arrays["sb"][0, 0] = np.array([255], np.uint8).view(types["sb"].numpy)[0]
    found = Model(intrinsic)(arrays)[0]
    assert np.isnan(found[:, 0]).all()
    assert np.isfinite(found[:, 1:]).all()


@pytest.mark.parametrize("change", ["group: 8, terms: 12", "group: 3", "group: 32", "group: 4, order: k"])
def test_groups_are_of_products_that_share_a_factor(change: str) -> None:
    text = f"""
isa: cuda
intrinsics:
  - name: scaled
    scope: warp
    semantics: |
      def m(a: e2m1[4, 32], s: e8m0[4, 2], b: e2m1[32, 4], c: f32[4, 4]):
          for i, j, k in grid(4, 4, 32):
              c[i, j] += (f32(a[i, k]) * f32(s[i, k // 16])) * f32(b[k, j])
    numerics: {{accumulate: unordered, fraction_bits: 35, {change}}}
    timing: {{latency: 4, interval: 1}}
"""
    with pytest.raises(SpecError, match=r"numerics: (group: no \d+ neighbouring products|groups are for aligned)"):
        load_text(text, "scaled.yaml")
    (made,) = load_text(text.replace(change, "group: 16"), "scaled.yaml")
    assert made.numerics.below == 2
    assert "in groups of 16" in str(made.numerics)
