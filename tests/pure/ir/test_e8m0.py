"""The scale of OCP MX: what its 256 patterns are, what may be done with them, and what data and proofs make of them.
(Compiled code: tests/cpu and tests/cuda.)"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from autosched.codegen.passes.small_floats import Conversion, narrowing, widening
from autosched.errors import ProgramError
from autosched.ir import parse
from autosched.ir.dtypes import DTYPES
from autosched.ir.oracle.inputs import random_inputs
from autosched.ir.oracle.interpreter import run
from autosched.ir.oracle.sets.ends import end_inputs
from autosched.ir.value import Cast, Literal, Read, blank
from autosched.tensorize.body.arrays import evaluate
from autosched.tensorize.body.counterexample import find_difference
from autosched.tensorize.body.exact import holds, product_fits
from autosched.tensorize.check.values import any_bits, corners, moderate

E8M0, F32 = DTYPES["e8m0"], DTYPES["f32"]
EVERY = np.arange(256).astype(np.uint8)
SCALES = EVERY.view(ml_dtypes.float8_e8m0fnu)
EXACT = np.array([*(2.0 ** (k - 127) for k in range(255)), np.nan])
"""What the format says of each byte (OCP Microscaling Formats 1.0, 5.4.1)."""
TEXT = """
def f(S: e8m0[n], U: u8[n], W: f32[n], D: f64[n], H: bf16[n], N: f16[n], B: u8[n], V: f32[n], *, n=256):
    for i in range(n):
        W[i] = f32(S[i])
    for i in range(n):
        D[i] = f64(S[i])
    for i in range(n):
        H[i] = bf16(S[i])
    for i in range(n):
        N[i] = f16(S[i])
    for i in range(n):
        B[i] = bits_u8(S[i])
    for i in range(n):
        V[i] = f32(bits_e8m0(U[i]))
"""


def test_every_byte() -> None:
    program = parse(TEXT)
    found = run(program, {"S": SCALES, "U": EVERY})
    for name in "WDHV":
        assert np.array_equal(found[name].astype(np.float64), EXACT, equal_nan=True), name
    with np.errstate(over="ignore"):
        assert np.array_equal(found["N"].astype(np.float64), EXACT.astype(np.float16), equal_nan=True)
    assert np.array_equal(found["B"], EVERY)
    assert np.array_equal(SCALES.astype(np.float64), EXACT, equal_nan=True)  # ml_dtypes, of which we are independent
    assert str(parse(str(program))) == str(program)


def test_elements_that_are_copied_and_made() -> None:
    program = parse(
        "def f(S: e8m0[256], U: u8[256], T: e8m0[256], V: e8m0[256]):\n"
        "    for i in range(256):\n        T[255 - i] = S[i]\n"
        "    for i in range(256):\n        V[i] = bits_e8m0(U[i] ^ 1)\n"
    )
    found = run(program, {"S": SCALES, "U": EVERY})
    assert np.array_equal(found["T"].view(np.uint8), EVERY[::-1])
    assert np.array_equal(found["V"].view(np.uint8), EVERY ^ 1)
    assert str(parse(str(program))) == str(program)


def stepped(conversion: Conversion, given: np.ndarray) -> np.ndarray:
    env = {conversion.argument: given}
    for name, value in conversion.steps:
        env[type(conversion.argument)(name, value.dtype)] = evaluate(value, env)
    return np.asarray(evaluate(conversion.result, env))


def test_what_printers_make_of_the_bits() -> None:
    wide = stepped(widening(E8M0), EVERY.astype(np.uint32))
    assert np.array_equal(wide.astype(np.float64), EXACT, equal_nan=True)
    assert np.array_equal(stepped(narrowing(E8M0), EXACT.astype(np.float32)), EVERY)


def test_what_the_table_says() -> None:
    assert (E8M0.greatest, E8M0.exponents, E8M0.padding, E8M0.bytes) == (2.0**127, (-127, 127), 0, 1)
    assert E8M0.codes == (254, 255, 255)
    assert [n for n in DTYPES if holds(E8M0, DTYPES[n])] == ["e8m0", "bf16", "tf32", "f32", "f64"]
    assert [n for n, d in DTYPES.items() if holds(d, E8M0)] == ["e8m0"]
    element, scale = Cast(Read("a", (), DTYPES["e4m3"]), F32), Cast(Read("s", (), E8M0), F32)
    assert not product_fits(element, scale, F32)  # 448 times 2^127 overflows
    assert product_fits(element, scale, DTYPES["f64"])


def test_what_stands_where_nothing_is_has_zero_bits() -> None:
    for dtype in DTYPES.values():
        number = np.asarray(blank(dtype).value, np.float64).astype(dtype.numpy)
        assert not number.reshape(1).view(np.uint8).any(), dtype
    for none in (0.0, -1.0, float("nan")):
        with pytest.raises(AssertionError):
            Literal(none, E8M0)


def body(statement: str, more: str = "") -> str:
    return f"def f(S: e8m0[8], X: f32[8], Y: f32[8]{more}):\n    for i in range(8):\n        {statement}\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (body("Y[i] = X[i] * S[i]"), "'*' does not take e8m0"),
        (body("Y[i] = f32(S[i] * S[i])"), "'\\*' does not take e8m0"),
        (body("Y[i] = f32(-S[i])"), "'-' does not take e8m0"),
        (body("Y[i] = f32(abs(S[i]))"), "abs does not take e8m0"),
        (body("Y[i] = f32(max(S[i], S[0]))"), "max does not take e8m0"),
        (body("Y[i] = f32(S[i] if X[i] > 0 else S[0])"), "'if else' does not take e8m0"),
        (body("Y[i] = 1 if S[i] > 1 else 0"), "does not take e8m0, which only scales"),
        (body("Y[i] = f32(e8m0(X[i]))"), "nothing is rounded to e8m0"),
        (body("Y[i] = f32(e8m0(1))"), "nothing is rounded to e8m0"),
        (body("Y[i] = f32(e8m0(X[i] > 0))"), "nothing is rounded to e8m0"),
        (body("S[i] = X[i]"), "takes e8m0, and this is f32"),
        (body("S[i] = 1.0"), "S is e8m0: elements of that are copied or made of bytes"),
        (body("S[i] += S[0]"), "S is e8m0: elements of that are copied or made of bytes"),
        (body("Y[i] = f32(s)", ", s: e8m0"), "e8m0 is a dtype of tensors"),
        (body("Y[i] = X[S[i]]"), "an index is an integer, and this is e8m0"),
        (body("Y[i] = S[i]"), "takes f32, and this is e8m0"),
    ],
)
def test_what_is_refused(text: str, why: str) -> None:
    with pytest.raises(ProgramError, match=why.replace("'*'", "'\\*'") if why.startswith("'*' does") else why):
        parse(text)


def test_data_are_powers_of_two() -> None:
    program = parse(body("Y[i] = X[i] * f32(S[i])"))
    drawn = random_inputs(program, np.random.default_rng(0))
    sets = [drawn, *(drawn | d.at(1.0) for d in end_inputs(program, drawn))]
    assert len(sets) > 1
    for data in sets:
        scales = data["S"].astype(np.float64)
        assert data["S"].dtype == E8M0.numpy
        assert (np.frexp(scales)[0] == 0.5).all()
    ranged = parse(body("Y[i] = X[i] * f32(S[i])").replace("    for", "    assume(0.3 <= S <= 9)\n    for", 1))
    held = {float(x) for seed in range(20) for x in random_inputs(ranged, np.random.default_rng(seed))["S"]}
    assert held == {0.5, 1.0, 2.0, 4.0, 8.0}


def test_checks_of_instructions_have_its_ends() -> None:
    rng = np.random.default_rng(0)
    assert {0, 127, 254, 255} <= set(corners(E8M0).view(np.uint8).tolist())
    assert len(np.unique(any_bits(E8M0, (4000,), rng).view(np.uint8))) == 256
    assert np.isfinite(moderate(E8M0, (100,), rng).astype(np.float64)).all()


def test_the_reading_of_a_byte_that_is_not_the_formats_is_told_apart() -> None:
    """`u32(s) << 23` is 0 for the byte 0, and infinite for 255."""
    byte = "def f(U: u8[1], W: f32[1]):\n    W[0] = {}\n"
    right, shifted = (
        parse(byte.format(v)).stages[0].assign.value for v in ("f32(bits_e8m0(U[0]))", "bits_f32(u32(U[0]) << 23)")
    )
    found = find_difference(right, shifted)
    assert found is not None
    assert found["inputs"] == {"U[0]": 0}
