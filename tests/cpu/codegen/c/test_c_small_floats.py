"""Floats of 16 bits and fewer in vectors of exported C: every pattern on its way to f32, and f32 beside everything that
rounds differently on its way back; with the machine's instructions and without."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.compiled.c_build import build, call, needs_compiler
from support.programs.value_cases import I, kernel_of, read

from autosched.codegen.c import print_c
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.passes.small_floats import narrowing, table, widening
from autosched.codegen.tree.kernel import Kernel
from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.oracle.evaluate import Frame, value
from autosched.ir.value import Arith, Call, Cast, FromIndex, Literal, Value

SMALL = tuple(d for d in DTYPES.values() if d.small_float and not d.padding and not d.scale)
F32, U4, S4, U8, U32, E2M1 = (DTYPES[n] for n in ("f32", "u4", "s4", "u8", "u32", "e2m1"))
FLAGS = (("-O2",), ("-O3",), ("-O2", "-mno-avx512f", "-Wno-psabi"), ("-O2", "-mno-avx", "-Wno-psabi"))
compiled = pytest.mark.compiler


def patterns(dtype: DType) -> np.ndarray[Any, Any]:
    """Each pattern once."""
    return np.arange(1 << dtype.bits).astype(np.uint16 if dtype.bits == 16 else np.uint8).view(dtype.numpy)


def beside(dtype: DType) -> np.ndarray[Any, Any]:
    """Each value of the dtype as f32, each midpoint of two neighbours, what lies next to both, what is no number."""
    with np.errstate(all="ignore"):
        held = np.unique(patterns(dtype).astype(np.float32))
        held = held[np.isfinite(held)]
        near = np.concatenate([held, (held[1:] + held[:-1]) / 2, held[[0, -1]] * np.float32(1.03125), held[-1:] * 2])
        near = np.concatenate([near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))])
    edges = np.array([0.0, -0.0, np.inf, -np.inf, 1e-45, -1e-45, 1.17e-38, 3.4e38, -3.4e38], np.float32)
    no_numbers = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF], np.uint32)
    return np.concatenate([near, edges, no_numbers.view(np.float32)])


def same(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Signs of zeros count; a NaN is as good as another."""
    if got.dtype.kind in "iu" or "int" in got.dtype.name:
        return np.asarray(got == want)
    with np.errstate(invalid="ignore"):
        a, b = got.astype(np.float64), want.astype(np.float64)
    return np.asarray((np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b))))


def check(cases: list[tuple[Kernel, Kernel, dict[str, Any]]], folder: Path, flags: tuple[str, ...]) -> None:
    library = build([print_c(k) for k, _, _ in cases], folder, *flags)
    for kernel, twin, arrays in cases:
        got = call(library, kernel, arrays)
        with np.errstate(all="ignore"):
            want = run_kernel(twin, arrays)
        for name in kernel.program.outputs:
            right = same(got[name], want[name])
            at = {n: a[~right][:3] for n, a in arrays.items()}
            assert right.all(), f"{kernel.name}.{name} of {at}: {got[name][~right][:3]}, not {want[name][~right][:3]}"


def case(
    name: str, values: dict[str, Value], inputs: dict[str, DType], arrays: dict[str, Any], lanes: int
) -> tuple[Kernel, Kernel, dict[str, Any]]:
    """A kernel without a loop over lanes, and one that is quicker to interpret."""
    n = len(next(iter(arrays.values())))
    kernel = replace(kernel_of(name, values, inputs, n, lanes), isa="x86")
    assert "lanes[" not in print_c(kernel).source
    assert "for (ptrdiff_t e" not in print_c(kernel).source
    return kernel, kernel_of(name, values, inputs, n, 256), arrays


@needs_compiler
@compiled
@pytest.mark.x86
@pytest.mark.sampled("4--O2", "16--O2 -mno-avx512f -Wno-psabi")
@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_every_pattern(lanes: int, flags: tuple[str, ...], tmp_path: Path) -> None:
    cases = []
    for dtype in SMALL:
        x = read("x", dtype)
        values: dict[str, Value] = {"wide": Cast(x, F32), "square": Arith("*", x, x, dtype), "copy": x}
        values |= {"other": Cast(x, DTYPES["e4m3"]), "rounded": Cast(Call("sqrt", (x,), dtype), DTYPES["s8"], True)}
        cases.append(case(f"from_{dtype}", values, {"x": dtype}, {"x": patterns(dtype)}, lanes))
    check(cases, tmp_path, flags)


@needs_compiler
@compiled
@pytest.mark.x86
@pytest.mark.sampled("4--O2")
@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
@pytest.mark.parametrize("lanes", [4, 16])
def test_every_scale(lanes: int, flags: tuple[str, ...], tmp_path: Path) -> None:
    """All bytes of e8m0, 0 (2^-127) and 255 (NaN) too, to floats and back to bits."""
    scale = DTYPES["e8m0"]
    x, byte = read("x", scale), read("u", U8)
    values: dict[str, Value] = {"wide": Cast(x, F32), "copy": x, "bits": Call("bits_u8", (x,), U8)}
    values |= {"half": Cast(x, DTYPES["f16"]), "other": Cast(x, DTYPES["e4m3"]), "double": Cast(x, DTYPES["f64"])}
    values |= {"made": Cast(Call("bits_e8m0", (byte,), scale), F32)}
    arrays = {"x": patterns(scale), "u": patterns(scale).view(np.uint8)}
    check([case("scales", values, {"x": scale, "u": U8}, arrays, lanes)], tmp_path, flags)


@needs_compiler
@compiled
@pytest.mark.x86
@pytest.mark.sampled(2)
@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_what_is_narrowed(lanes: int, flags: tuple[str, ...], tmp_path: Path) -> None:
    cases = []
    for dtype in SMALL:
        values: dict[str, Value] = {"y": Cast(read("x", F32), dtype), "back": Cast(Cast(read("x", F32), dtype), F32)}
        cases.append(case(f"to_{dtype}", values, {"x": F32}, {"x": beside(dtype)}, lanes))
    check(cases, tmp_path, flags)


@needs_compiler
@compiled
@pytest.mark.x86
@pytest.mark.sampled(1)
@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_every_byte_that_holds_two(lanes: int, flags: tuple[str, ...], tmp_path: Path) -> None:
    """Both halves of every byte as integers and floats of four bits; and every byte that holds one, dirt above it."""
    word = Cast(read("x", U8), U32)
    values: dict[str, Value] = {}
    for half, by in (("low", Literal(0, U32)), ("high", Literal(4, U32)), ("named", FromIndex(I * 0 + 4, U32))):
        four = Cast(Cast(Arith(">>", word, by, U32), U8), U4)
        values |= {f"{half}_number": Cast(four, F32), f"{half}_word": Cast(four, U32)}
        values |= {f"{half}_float": Cast(Call("bits_e2m1", (four,), E2M1), F32)}
        values |= {f"{half}_signed": Cast(Call("bits_s4", (four,), S4), F32)}
    values |= {"u4": Cast(read("x", U8), U4), "s4": Cast(read("x", U8), S4)}
    values |= {"back": Call("bits_u8", (Call("bits_e4m3fnuz", (read("x", U8),), DTYPES["e4m3fnuz"]),), U8)}
    bytes_ = np.arange(256).astype(np.uint8)
    kernel, twin, arrays = case("halves", values, {"x": U8}, {"x": bytes_}, lanes)
    given = {"x": bytes_.view(ml_dtypes.uint4), "s": bytes_.view(ml_dtypes.int4)}
    numbers: dict[str, Value] = {"y": Cast(read("x", U4), F32), "z": Cast(read("s", S4), F32)}
    dirty, _, _ = case("dirty", numbers, {"x": U4, "s": S4}, given, lanes)
    check([(kernel, twin, arrays)], tmp_path, flags)
    (tmp_path / "dirty").mkdir()
    got = call(build([print_c(dirty)], tmp_path / "dirty", *flags), dirty, given)
    assert np.array_equal(got["y"], bytes_ & 15)
    assert np.array_equal(got["z"], ((bytes_.astype(int) & 15) ^ 8) - 8)


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_the_steps_themselves(dtype: DType) -> None:
    """Without a printer: patterns to numbers, and numbers to patterns."""
    bits, numbers = np.arange(1 << dtype.bits, dtype=np.uint32), patterns(dtype)
    with np.errstate(all="ignore"):
        wide = _taken(widening(dtype), bits)
        assert same(wide, numbers.astype(np.float32)).all()
        given = beside(dtype)
        narrow = _taken(narrowing(dtype), given)
        wanted = given.astype(dtype.numpy)
    found = narrow.astype(numbers.view(np.uint16 if dtype.bits == 16 else np.uint8).dtype).view(dtype.numpy)
    number = ~np.isnan(given) if dtype.finite else np.ones(len(given), bool)
    assert same(found[number], wanted[number]).all()
    assert not narrow[~number].any()
    if dtype.bits == 4:
        assert table(dtype) == tuple(wide.tolist())


def _taken(conversion: Any, given: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    known: dict[str, Any] = {conversion.argument.name: given}
    for name, step in conversion.steps:
        known[name] = value(step, Frame({}, known))
    return np.asarray(value(conversion.result, Frame({}, known)))
