"""The float of four bits: its sixteen patterns, what its conversions and its arithmetic give, what holds what, and its
bits. (Compiled code: tests/cpu and tests/cuda.)"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from autosched.errors import ProgramError
from autosched.ir import parse
from autosched.ir.dtypes import DTYPES
from autosched.ir.oracle.inputs import random_inputs
from autosched.ir.oracle.interpreter import run
from autosched.ir.oracle.numerics import load, round_float
from autosched.ir.value import Call, Cast, Read, Unary
from autosched.tensorize.body.bits import check_equal
from autosched.tensorize.body.canonical import canonical
from autosched.tensorize.body.counterexample import find_difference
from autosched.tensorize.body.exact import holds
from autosched.tensorize.body.neutral import never_special

E2M1, F32, U4 = DTYPES["e2m1"], DTYPES["f32"], DTYPES["u4"]
VALUES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
EVERY = np.arange(16).astype(np.uint8)


def signs(x: np.ndarray) -> list[tuple[bool, float]]:
    return [(bool(np.signbit(v)), abs(float(v))) for v in x.astype(np.float64)]


def test_every_pattern() -> None:
    program = parse("""
def f(U: u4[16], E: e2m1[16], F: f32[16], S: s4[16], B: u4[16]):
    for i in range(16):
        E[i] = bits_e2m1(U[i])
    for i in range(16):
        F[i] = f32(E[i])
    for i in range(16):
        S[i] = bits_s4(bits_e2m1(U[i]))
    for i in range(16):
        B[i] = bits_u4(E[i])
""")
    found = run(program, {"U": EVERY.astype(ml_dtypes.uint4)})
    wanted = [(s, v) for s in (False, True) for v in VALUES]
    assert signs(found["E"]) == signs(found["F"]) == wanted
    assert found["B"].astype(int).tolist() == list(range(16))
    assert found["S"].astype(int).tolist() == [*range(8), *range(-8, 0)]
    assert np.array_equal(found["E"].view(np.uint8), EVERY)
    assert str(parse(str(program))) == str(program)


def test_what_else_a_byte_holds_does_not_count() -> None:
    for high in range(16):
        stored = (EVERY | high << 4).astype(np.uint8).view(E2M1.numpy)
        assert signs(load(stored, E2M1)) == [(s, v) for s in (False, True) for v in VALUES]


def test_conversions_are_those_of_ml_dtypes_but_for_nan() -> None:
    """All f16 values, and f32 beside each midpoint."""
    middles = [(a + b) / 2 for a, b in zip([*VALUES, 8.0], [*VALUES[1:], 8.0, 8.0], strict=True)]
    near = [np.float32(m) * np.float32(1 + s * 2.0**-23) for m in middles for s in (-1, 0, 1)]
    halves = np.arange(1 << 16).astype(np.uint16).view(np.float16).astype(np.float32)
    with np.errstate(invalid="ignore"):
        x = np.concatenate([halves, near, np.negative(near), [np.inf, -np.inf, 1e-45, -1e-45]]).astype(np.float32)
    number = ~np.isnan(x)
    found = round_float(x, E2M1)
    with np.errstate(all="ignore"):
        wanted = x.astype(E2M1.numpy)
    assert np.array_equal(found[number].astype(E2M1.numpy).view(np.uint8), wanted[number].view(np.uint8))
    assert signs(found[~number]) == [(False, 0.0)] * int((~number).sum())
    assert round_float(np.float64(5 + 2.0**-40), E2M1) == 6.0  # rounded once from f64: not 5, and then to even


def test_arithmetic_saturates() -> None:
    program = parse("""
def f(A: e2m1[n], B: e2m1[n], S: e2m1[n], P: e2m1[n], Q: e2m1[n], M: e2m1[1], *, n=256):
    for i in range(n):
        S[i] = A[i] + B[i]
    for i in range(n):
        P[i] = A[i] * B[i]
    for i in range(n):
        Q[i] = A[i] / B[i]
    M[0] = -inf
    for i in range(n):
        M[0] = max(M[0], A[i])
""")
    a, b = (x.reshape(-1).astype(np.uint8).view(E2M1.numpy) for x in np.meshgrid(EVERY, EVERY))
    found = run(program, {"A": a, "B": b})
    wide, other = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        wanted = {"S": wide + other, "P": wide * other, "Q": wide / other}
    for name, exact in wanted.items():
        assert np.array_equal(found[name].astype(float), round_float(exact, E2M1).astype(float)), name
    assert float(found["M"][0]) == 6.0
    nothing = (wide == 0) & (other == 0)
    assert signs(found["Q"][nothing]) == [(False, 0.0)] * 4


def test_what_holds_what() -> None:
    assert all(holds(E2M1, DTYPES[n]) for n in ("e4m3", "e5m2", "e3m4", "f16", "bf16", "tf32", "f32", "f64"))
    assert not any(holds(E2M1, DTYPES[n]) for n in ("e4m3fnuz", "e5m2fnuz", "s8"))  # no minus zero
    assert [n for n, d in DTYPES.items() if holds(d, E2M1)] == ["b1", "e2m1"]
    assert (E2M1.greatest, E2M1.exponents, E2M1.bytes) == (6.0, (-1, 2), 1)


def test_random_data_have_every_pattern() -> None:
    program = parse("def f(A: e2m1[400], B: f32[400]):\n    for i in range(400):\n        B[i] = f32(A[i])\n")
    data = random_inputs(program, np.random.default_rng(0))
    assert {*np.unique(np.abs(data["A"].astype(float)))} == {*VALUES}
    told = parse("""
def f(A: e2m1[400], B: f32[400]):
    assume(-1 <= A <= 1)
    for i in range(400):
        B[i] = f32(A[i])
""")
    assert np.abs(random_inputs(told, np.random.default_rng(0))["A"].astype(float)).max() == 1.0


def test_nothing_is_taken_to_be_nan() -> None:
    """What saturates is finite, and so a proof needs no assumption about it; a zero from NaN has no sign to move."""
    x, wide = Read("x", (), F32), Read("e", (), E2M1)
    assert never_special(Cast(wide, F32))
    assert not never_special(Cast(Read("h", (), DTYPES["e4m3"]), F32))
    inside, outside = Cast(Unary("-", x, F32), E2M1), Unary("-", Cast(x, E2M1), E2M1)
    assert canonical(inside) != canonical(outside)
    exact = Cast(Unary("-", x, F32), DTYPES["f16"]), Unary("-", Cast(x, DTYPES["f16"]), DTYPES["f16"])
    assert canonical(exact[0]) == canonical(exact[1])


def test_bits_in_proofs() -> None:
    """Integers' patterns are bit-vectors to z3; floats' are not, and no answer is given."""
    s8, u8 = DTYPES["s8"], DTYPES["u8"]
    x = Read("x", (), s8)
    assert check_equal(Call("bits_u8", (x,), u8), Cast(x, u8), 1000) == ("proved", None)
    u = Read("u", (), u8)
    assert check_equal(Cast(Call("bits_s8", (u,), s8), F32), Cast(u, F32), 1000) == ("unknown", None)
    nibble = Read("n", (), U4)
    differ = find_difference(Cast(Call("bits_e2m1", (nibble,), E2M1), F32), Cast(nibble, F32))
    assert differ is not None
    assert canonical(Call("bits_e2m1", (nibble,), E2M1)) == Call("bits_e2m1", (nibble,), E2M1)


ACCEPTED = ["e4m3 u8", "u8 e4m3", "e5m2 s8", "f16 u16", "bf16 s16", "s16 bf16", "u16 f16", "f32 u32", "s4 e2m1"]
ACCEPTED += ["e4m3 e5m2"]


@pytest.mark.parametrize("pair", ACCEPTED)
def test_bits_there_and_back(pair: str) -> None:
    """Every pattern of up to 16 bits that is no NaN comes back."""
    source, target = pair.split()
    d = DTYPES[source]
    program = parse(f"def f(A: {source}[n], B: {source}[n], *, n={1 << min(d.bits, 16)}):\n    for i in range(n):\n"
                    f"        B[i] = bits_{source}(bits_{target}(A[i]))\n")  # fmt: skip
    codes = np.arange(1 << min(d.bits, 16)).astype(f"u{max(1, min(d.bytes, 2))}")
    stored = codes.astype(np.uint32).view(np.float32) if d.bits == 32 else codes.view(d.numpy)
    if d.name == "s4":
        stored = codes.astype(np.int8).astype(d.numpy)
    found = run(program, {"A": stored})["B"]
    with np.errstate(invalid="ignore"):
        numbers = [stored.astype(np.float64), stored.astype(d.numpy).astype(np.float64)]
    if not DTYPES[target].is_integer:
        there = parse(f"def f(A: {source}[n], B: {target}[n], *, n={len(codes)}):\n    for i in range(n):\n"
                      f"        B[i] = bits_{target}(A[i])\n")  # fmt: skip
        numbers.append(run(there, {"A": stored})["B"].astype(np.float64))
    number = ~np.logical_or.reduce([np.isnan(x) for x in numbers])
    kind = f"u{stored.dtype.itemsize}"
    assert np.array_equal(found.view(kind)[number], stored.view(kind)[number])


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("bits_e2m1(x)", "bits_e2m1 of a value of dtype u8"),
        ("bits_e2m1(f32(x))", "bits_e2m1 of a value of dtype f32"),
        ("bits_e2m1(3)", "bits_e2m1 takes a value with a dtype, not the literal 3"),
        ("bits_e2m1(0.5)", "bits_e2m1 takes a value with a dtype, not the literal 0.5"),
        ("bits_e2m1(i)", "bits_e2m1 takes a value with a dtype, not the index expression i"),
        ("bits_e2m1(x > 3)", "bits_e2m1 takes a value with a dtype, not a condition"),
        ("bits_e2m1(u4(x), u4(x))", "bits_e2m1 takes 1 argument, and here are 2"),
        ("bits_e4m3(u16(x))", "bits_e4m3 of a value of dtype u16"),
        ("bits_f16(f32(x))", "bits_f16 of a value of dtype f32"),
        ("f32(bits_tf32(u32(x)))", "bits_tf32 of a value of dtype u32"),
        ("bits_f32(tf32(x))", "bits_f32 of a value of dtype tf32"),
        ("bits_e3m1(u4(x))", "bits_e3m1"),
    ],
)
def test_bits_of_something_else_are_refused(value: str, why: str) -> None:
    with pytest.raises(ProgramError) as caught:
        parse(f"def f(A: u8[4], C: f32[4]):\n    for i in range(4):\n        x = A[i]\n        C[i] = f32({value})\n")
    assert why in str(caught.value)
    assert caught.value.hint or "argument" in why or "e3m1" in why
