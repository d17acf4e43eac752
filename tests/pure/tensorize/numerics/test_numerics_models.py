"""The accumulators' models against facts: what units are known to answer, by hand and on silicon."""

from __future__ import annotations

import numpy as np
import pytest

from autosched.ir.dtypes import DTYPES
from autosched.tensorize.check.values import cases
from autosched.tensorize.numerics.contract import Numerics
from autosched.tensorize.numerics.dot import IntrinsicDot, ProgramDot
from autosched.tensorize.numerics.model import issue
from autosched.tensorize.numerics.rounding import least_exponent, rounded
from autosched.tensorize.numerics.sums import Adder
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text

CATALOGUE = Catalogue.builtin()
F32, F16, BF16 = DTYPES["f32"], DTYPES["f16"], DTYPES["bf16"]
WGMMA_F8 = "cuda/wgmma.m64n8k32.e4m3.e4m3.f32"
WGMMA_F16 = "cuda/wgmma.m64n8k16.f16.f32"
MMA_F8 = "cuda/mma.m16n8k32.e4m3.e4m3.f32"
WMMA = "cuda/wmma.m16n16k16.f16.f32"
WMMA_TF32 = "cuda/wmma.m16n16k8.tf32.f32"
MFMA = "hip/mfma.f32.16x16x16.f16"


def dot(name: str, a: list[float], b: list[float], c: float = 0.0, features: str = "") -> float:
    """c + a·b by one issue of the intrinsic, as a target with these features does it."""
    unit = IntrinsicDot(CATALOGUE[name].on(frozenset(features.split())))
    left, right = (np.zeros((1, unit.step)) for _ in range(2))
    left[0, : len(a)], right[0, : len(b)] = a, b
    return float(unit.run(left, right, np.array([c]))[0])


E = 2.0**-7


@pytest.mark.parametrize(
    ("name", "features", "a", "b", "c", "expected"),
    [
        # 13 fraction bits: Hopper's wgmma, and mma.sync on Ada
        (WGMMA_F8, "", [1, E], [1, E], 0, 1.0),
        (WGMMA_F8, "", [1, E], [1, 2 * E], 0, 1 + 2.0**-13),
        (WGMMA_F8, "", [1], [1], 16384, 16384.0),
        (WGMMA_F8, "", [1], [1], 8192, 8193.0),
        (WGMMA_F8, "", [0], [0], 1 + 2.0**-14, 1.0),
        (WGMMA_F8, "", [448, 7.5], [448, 1], 0, 200704.0),
        (MMA_F8, "sm_89", [1, E], [1, E], 0, 1.0),
        (MMA_F8, "sm_89", [0], [0], 1 + 2.0**-14, 1.0),
        # the same PTX on Hopper: two steps of the f16 unit
        (MMA_F8, "sm_89 sm_90", [1, E], [1, E], 0, 1 + 2.0**-14),
        (MMA_F8, "sm_89 sm_90", [448, 7.5], [448, 1], 0, 200711.5),
        (MMA_F8, "sm_89 sm_90", [0], [0], 1 + 2.0**-23, 1 + 2.0**-23),
        # Hopper: 16 terms at once, 25 bits
        (WGMMA_F16, "", [1] * 16, [1] * 16, 2.0**24, 16777232.0),
        (WGMMA_F16, "", [2.0**-12] * 8, [2.0**-13] * 8, 1, 1 + 2.0**-22),
        (WMMA, "sm_75 sm_80 sm_90", [2.0**-12] * 8, [2.0**-13] * 8, 1, 1 + 2.0**-22),
        # Ampere: 8 terms, 24 bits
        (WMMA, "sm_75 sm_80", [2.0**-12] * 8, [2.0**-13] * 8, 1, 1.0),
        (WMMA, "sm_75 sm_80", [2.0**-12] * 8, [2.0**-12] * 8, 1, 1 + 2.0**-21),
        # Volta: 4 terms, 23 bits
        (WMMA, "", [2.0**-12] * 8, [2.0**-12] * 8, 1, 1.0),
        (WMMA, "", [1] * 16, [1] * 16, 2.0**24, 2.0**24),
        (WMMA, "", [1] * 16, [1] * 16, 2.0**23, 2.0**23 + 16),
        # toward zero, on every generation; to nearest with an f16 accumulator
        (WMMA, "sm_75 sm_80 sm_90", [1.5 * 2.0**-12], [2.0**-12], 1, 1.0),
        (WMMA, "", [1.5 * 2.0**-12], [2.0**-12], 1, 1.0),
        ("cuda/wmma.m16n16k16.f16.f16", "", [1.5 * 2.0**-6], [2.0**-5], 1, 1 + 2.0**-10),
        # tf32: four terms at a time through WMMA, eight through mma.sync on Hopper
        (WMMA_TF32, "sm_80 sm_90", [2.0**24, 0, 0, 0, 1], [1, 0, 0, 0, 1], 0, 2.0**24),
        ("cuda/mma.m16n8k8.tf32.tf32.f32", "sm_80", [1, 0, 0, 0, 2.0**24], [1, 0, 0, 0, -1], 2.0**24, 0.0),
        ("cuda/mma.m16n8k8.tf32.tf32.f32", "sm_90", [1, 0, 0, 0, 2.0**24], [1, 0, 0, 0, -1], 2.0**24, 1.0),
        # CDNA1: pairs of f32 sums; CDNA2 flushes; CDNA3 rounds the accumulator's tail down beside a larger sum
        (MFMA, "gfx908", [1, 1, 1, 1], [1, 1, 1, 1], 2.0**24, 2.0**24 + 4),
        (MFMA, "gfx908", [1, 2.0**-24], [2.0**-24, 2.0**-14], 0, 2.0**-24 + 2.0**-38),
        (MFMA, "gfx908 gfx90a", [1, 2.0**-24], [2.0**-10, 2.0**-14], 0, 2.0**-10),
        (MFMA, "gfx942", [1], [1], -(2.0**-40), 1 - 2.0**-24),
        (MFMA, "gfx908", [1], [1], -(2.0**-40), 1.0),
        # Arm: to odd, pairs first; the tile product in two such steps
        ("arm/bfdot", "", [1, 0], [2.0**-24, 0], 1, 1 + 2.0**-23),
        ("arm/bfdot", "", [2.0**-24, -(2.0**-24)], [1, 1], 1, 1.0),
        ("arm/bfdot", "", [2.0**-126, 0], [0.5, 0], 0, 0.0),
        ("arm/bfmmla", "", [2.0**24, 1, -(2.0**24), 0], [1, 1, 1, 1], 0, 2.0),
        ("arm/bfmmla", "", [2.0**25, 1, -(2.0**25), 0], [1, 1, 1, 1], 0, 4.0),
        # AMX: even and odd chains from zero, joined at the end
        ("x86/tdpbf16ps", "", [2.0**24, 1, -(2.0**24), 0], [1, 1, 1, 1], 0, 1.0),
        # of f16, subnormal factors count (they are normal in f32), a subnormal accumulator does not
        ("x86/tdpfp16ps", "", [2.0**12, 1, -(2.0**12), 0], [2.0**12, 1, 2.0**12, 1], 0, 1.0),
        ("x86/tdpfp16ps", "", [2.0**-24, 0], [1, 0], 0, 2.0**-24),
        ("x86/tdpfp16ps", "", [2.0**-24, 2.0**-24], [2.0**-24, 2.0**-24], 0, 2.0**-47),
        ("x86/tdpfp16ps", "", [0, 0], [0, 0], 1e-40, 0.0),
        ("x86/tdpfp16ps", "", [2.0**-24, 0], [2.0**-24, 0], 1e-40, 2.0**-48),
        ("x86/tdpbf16ps", "", [1e-39, 0], [1, 0], 0, 0.0),
        ("x86/vdpbf16ps.zmm", "", [1, -(2.0**24)], [1, 1], 2.0**24, 1.0),
        ("x86/vdpbf16ps.zmm", "", [-(2.0**24), 1], [1, 1], 2.0**24, 0.0),
        ("x86/vdpbf16ps.zmm", "", [0, 0], [0, 0], 1e-40, 0.0),
        ("x86/vdpbf16ps.zmm", "", [1e-39, 0], [1, 0], 0, 0.0),
        ("x86/vdpbf16ps.zmm", "", [-(2.0**-126), 2.0**-126], [1, 1], 2.0**-127, 0.0),
        ("x86/vdpbf16ps.zmm", "", [2.0**-126, 0], [1, 0], 0, 2.0**-126),
    ],
)
def test_known_answers(name: str, features: str, a: list[float], b: list[float], c: float, expected: float) -> None:
    assert dot(name, a, b, c, features) == expected


def test_one_after_the_other_forgets_what_a_block_keeps() -> None:
    ones, big = np.ones((1, 16)), np.array([2.0**24])
    assert ProgramDot((F16, F16), F32).run(ones, ones, big)[0] == 2.0**24


def test_a_fused_product_rounds_once() -> None:
    p = np.array([[1 + 2.0**-12]])
    start = np.array([-(1 + 2.0**-11)])
    assert ProgramDot((F32, F32), F32).run(p, p, start)[0] == 0.0
    assert ProgramDot((F32, F32), F32, fused=True).run(p, p, start)[0] == 2.0**-24


@pytest.mark.parametrize(
    ("value", "mode", "expected"),
    [
        (1 + 2.0**-24, "rne", 1.0),
        (1 + 1.5 * 2.0**-24, "rne", 1 + 2.0**-23),
        (1 + 1.99 * 2.0**-24, "rz", 1.0),
        (-1 - 1.99 * 2.0**-24, "rz", -1.0),
        (1 + 2.0**-40, "odd", 1 + 2.0**-23),
        (1 + 2.0**-23, "odd", 1 + 2.0**-23),
        (-1 - 2.0**-40, "odd", -1 - 2.0**-23),
        (2.0**-149 * 1.5, "rz", 2.0**-149),
        (2.0**-151, "odd", 2.0**-149),
        (3.5e38, "rz", np.inf),
        (3.4028235e38, "rz", 3.4028234663852886e38),
        (-np.inf, "odd", -np.inf),
    ],
)
def test_roundings_to_f32(value: float, mode: str, expected: float) -> None:
    assert float(rounded(np.array([value]), F32, mode)[0]) == expected


def test_fewer_bits_are_kept_where_a_contract_says_so() -> None:
    for mode, expected in (("rz", 1 + 2.0**-13), ("rne", 1 + 2.0**-12), ("odd", 1 + 2.0**-13)):
        assert float(rounded(np.array([1 + 2.0**-13 + 0.75 * 2.0**-13]), F32, mode, 13)[0]) == expected


def test_infinities_and_nan_come_out_as_ieee_says() -> None:
    adder = Adder(Numerics("unordered", fraction_bits=25, terms=16, rounding="rz", sum="aligned"), F32, (F16, F16))
    one = np.ones((2, 1), np.float32)
    infinite = np.array([[np.inf], [-np.inf]], np.float32)
    assert np.isnan(adder.issue(np.zeros(1, np.float32), infinite, one))
    assert adder.issue(np.zeros(1, np.float32), infinite[:1], one[:1]) == np.inf
    assert np.isnan(adder.issue(np.array([np.nan], np.float32), one, one))


def test_bf16_pairs_differ_from_two_multiply_adds_only_by_subnormals() -> None:
    rng = np.random.default_rng(3)
    unit = IntrinsicDot(CATALOGUE["x86/vdpbf16ps.zmm"])
    a, b = (rng.standard_normal((200, 2)).astype(BF16.numpy).astype(np.float64) for _ in range(2))
    c = rng.standard_normal(200).astype(np.float32).astype(np.float64)
    odd_first = ProgramDot((BF16, BF16), F32, fused=True).run(a[:, ::-1], b[:, ::-1], c)
    np.testing.assert_array_equal(unit.run(a, b, c), odd_first)


def test_cdna3_sums_even_and_odd_bytes_apart() -> None:
    name = "hip/mfma.f32.16x16x32.e5m2fnuz.e5m2fnuz"
    big, small = 2.0**12, 2.0**-7
    # 2^24 at an even place cuts what is below 1/2 at even places; odd ones are cut downwards when both are joined.
    assert dot(name, [big, 0, small], [big, 0, small]) == 2.0**24
    assert dot(name, [big, small], [big, -small]) == 2.0**24 - 1
    # The accumulator is cut downwards beside a larger sum, and left out more than 25 places below.
    assert dot(name, [1], [1], -(2.0**-25)) == 1 - 2.0**-24
    assert dot(name, [1], [1], -(2.0**-26)) == 1.0


def test_the_least_normal_numbers() -> None:
    known = {"f32": -126, "f16": -14, "bf16": -126, "tf32": -126, "e4m3": -6, "e5m2": -14, "f64": -1022}
    known |= {"e4m3fnuz": -7, "e5m2fnuz": -15}
    assert {name: least_exponent(DTYPES[name]) for name in known} == known


def test_one_element_is_the_same_at_all_points() -> None:
    """A run-time length beside a lane's own number, in more cases than there are lanes."""
    text = "isa: made\nintrinsics:\n  - name: short\n    semantics: |\n"
    text += "      def short(n: u32[1], a: s32[8], c: s32[8]):\n"
    text += "          for i in range(8):\n              if u32(i) < n[0]:\n                  c[i] += a[i]\n"
    (short,) = load_text(text)
    given = cases(short, np.random.default_rng(0))
    inside = np.arange(8) < given["n"].astype(np.int64)
    assert len(inside) > 8
    assert (issue(short, given) == np.where(inside, given["a"] + given["c"], given["c"])).all()


@pytest.mark.parametrize(
    ("name", "expected"), [("tcmmrlfp16ps", [-(2.0**-24), 2.0**-23]), ("tcmmimfp16ps", [3 * 2.0**-24, 2.0**-22])]
)
def test_complex_parts_keep_subnormal_factors_and_flush_the_accumulator(name: str, expected: list[float]) -> None:
    intrinsic = CATALOGUE[f"x86/{name}"]
    tiles = {n: np.zeros((1, *o.shape), o.dtype.numpy) for n, o in intrinsic.operands.items()}
    tiles["a_0"][0, 0, 0], tiles["a_1"][0, 0, 0] = 2.0**-24, 2.0**-23
    tiles["b_0"][0, 0, :2], tiles["b_1"][0, 0, :2] = (1, 2), (1, 0)
    tiles["c"][:] = 1e-40
    found = issue(intrinsic, tiles)[0]
    assert found[0, :2].tolist() == expected
    assert found[1, 1] == 0.0
