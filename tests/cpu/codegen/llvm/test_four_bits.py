"""Floats of four bits in machine code: every pattern by each way to widen it, and that vectors stay vectors."""

from __future__ import annotations

import re
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from support.compiled.llvm_kernels import run
from support.compiled.native import compiled
from support.plans import machine, this_machine
from support.programs.computed import COMPUTED, computed_plans
from support.programs.value_cases import kernel_of, read

from autosched.codegen.llvm.machine.compile import assembly
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.ir import parse, workload
from autosched.ir import run as ir_run
from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Call, Cast
from autosched.machine.host import host_features

E2M1, F32, U4, F64, F16 = (DTYPES[n] for n in ("e2m1", "f32", "u4", "f64", "f16"))
EVERY = np.tile(np.arange(16).astype(np.uint8), 6)
SCALAR_MOVES = re.compile(r"\bv?(?:pinsr|pextr|insertps|extractps)\w*")


@pytest.mark.parametrize("isa", ["portable", "x86"])
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16, 24, 32])
def test_every_pattern(lanes: int, isa: str) -> None:
    bits = Call("bits_e2m1", (read("u", U4),), E2M1)
    values = {"wide": Cast(read("x", E2M1), F32), "of_bits": Cast(bits, F32), "bits": bits}
    values |= {"back": Call("bits_u4", (read("x", E2M1),), U4), "f16": Cast(bits, F16), "f64": Cast(bits, F64)}
    k = replace(kernel_of("patterns", values, {"x": E2M1, "u": U4}, len(EVERY), lanes), isa=isa)
    got = run(k, {"x": EVERY.view(E2M1.numpy), "u": EVERY.astype(ml_dtypes.uint4)})
    wanted = EVERY.view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    for name in ("wide", "of_bits", "f16", "f64"):
        found = got[name].astype(np.float64)
        assert np.array_equal(found, wanted), name
        assert np.array_equal(np.signbit(found), np.signbit(wanted)), name
    assert np.array_equal(got["bits"].view(np.uint8), EVERY)
    assert np.array_equal(got["back"].astype(np.uint8), EVERY)


@pytest.mark.sampled("matmul_fp4")
@pytest.mark.x86
@pytest.mark.parametrize("name", ["matmul_fp4", "matmul_fp4_packed"])
def test_every_pattern_on_its_way_to_a_product(name: str) -> None:
    """Rows of the identity take out the weights, all patterns in each lane, by the widest registers that there are."""
    if "avx2" not in host_features():
        pytest.skip("needs AVX2")
    codes = (np.arange(16)[:, None] + np.arange(48)[None, :]).astype(np.uint8) & np.uint8(15)
    given = {"X": np.eye(16, dtype=np.float32), "S": np.ones((2, 48), np.float32), "W": codes.view(E2M1.numpy)}
    if name == "matmul_fp4_packed":
        given["W"] = codes[::2] | codes[1::2] << 4
    program = workload(name, m=16, n=48, k=16, g=8)
    made = [lower(p, p.space.schedule(0)) for p in computed_plans(program, this_machine())]
    assert made
    wanted = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    for kernel in made:
        assert np.array_equal(compiled(kernel)(**given), wanted), kernel.schedule


@pytest.mark.parametrize("lanes", [1, 3, 8, 16])
def test_what_is_narrowed(lanes: int) -> None:
    """f32 beside each midpoint, infinities and NaN of both signs: a NaN is a zero without a sign."""
    middles = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 7.0, 1e-45, 3e38], np.float32)
    near = np.concatenate([middles, np.nextafter(middles, np.float32(np.inf)), np.nextafter(middles, np.float32(0))])
    x = np.concatenate([near, -near, np.array([np.inf, -np.inf, 0.0, -0.0], np.float32)])
    x = np.concatenate([x, np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF], np.uint32).view(np.float32)])
    k = kernel_of("narrow", {"y": Cast(read("x", F32), E2M1)}, {"x": F32}, len(x), lanes)
    got = run(k, {"x": x})["y"].view(np.uint8)
    wanted = x[:-4].astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    assert np.array_equal(got[:-4], wanted)
    assert got[-4:].tolist() == [0, 0, 0, 0]


@pytest.mark.sampled("haswell-fp4", "cascadelake-fp4_packed_rows")
@pytest.mark.x86
@pytest.mark.parametrize("name", ["fp4", "fp4_packed_rows"])
@pytest.mark.parametrize("cpu", ["haswell", "cascadelake"])
def test_weights_are_widened_by_a_permutation(name: str, cpu: str) -> None:
    """No lane goes through a scalar register, and no conversion multiplies numbers below the normal ones."""
    target = machine(frozenset(["avx2", "fma"]), 16, 32) if cpu == "haswell" else machine()
    width = "ymm" if cpu == "haswell" else "zmm"
    plan = next(p for p in computed_plans(COMPUTED[name], target) if p.intrinsics == (f"x86/vfmadd.f32.{width}",))
    kernel = lower(plan, plan.space.schedule(0))
    kernel = replace(kernel, prepare=())
    text = assembly(print_llvm(kernel), cpu, triple="x86_64-unknown-linux-gnu")
    assert re.search(r"\bvperm(?:ps|d)\b", text)
    assert not SCALAR_MOVES.search(text)
    assert width in text


TERMS = {
    "alone": "f32(W[p, j])",
    "less": "f32(W[p, j]) - f32(Z[p // g, j])",
    "from": "f32(Z[p // g, j]) - f32(W[p, j])",
    "less_a_literal": "f32(W[p, j]) - 8.0",
    "from_a_literal": "3.0 - f32(W[p, j])",
    "twice": "(f32(W[p, j]) - 5.0) * (f32(W[p, j]) - f32(Z[p // g, j]))",
}
DIFFERENCES = ("less", "from", "twice")
"""Terms with differences of integers alone: one of a literal is a sum."""
WORDS_OF = {8: (16, 8), 4: (12, 4)}
"""How many elements of four bits a word has where registers of 512 bits take them, by depth and group. One of 32 bits
has four of eight bits, too, where differences alone take them."""


@pytest.mark.x86
@pytest.mark.sampled(
    "u4-u4-8-less", "s4-s4-8-from", "u4-s4-8-twice", "s4-u16-4-less", "e2m1-u4-8-alone", "s8-s8-8-less", "u8-s8-4-from"
)
@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("word", WORDS_OF)
@pytest.mark.parametrize(
    ("few", "zero"),
    [
        ("u4", "u4"), ("u4", "s4"), ("s4", "s4"), ("s4", "u16"), ("e2m1", "u4"),
        ("u8", "u8"), ("u8", "s8"), ("s8", "s8"), ("s8", "u16"),
    ],
)  # fmt: skip
def test_elements_of_words(few: str, zero: str, word: int, term: str) -> None:
    """Rows of the identity take out every pattern at each place of a word, alone and in differences, bit for bit."""
    k, g = WORDS_OF[word]
    text = f"""
def f(X: f32[m, k], W: const[{few}[k, n]], Z: const[{zero}[kg, n]], Y: f32[m, n],
      *, m={k}, k={k}, n=48, g={g}, kg={k // g}):
    for i, j in grid(m, n):
        Y[i, j] = 0.0
        for p in range(k):
            Y[i, j] += X[i, p] * ({TERMS[term]})
"""
    program = parse(text, filename="f.py")
    bits = DTYPES[few].bits
    codes = (np.arange(k)[:, None] * 3 + np.arange(48)[None, :] * (1 if bits == 4 else 5)).astype(np.uint8)
    codes &= np.uint8((1 << bits) - 1)
    zeros = np.random.default_rng(0).integers(0, 1 << DTYPES[zero].bits, (k // g, 48))
    given = {"X": np.eye(k, dtype=np.float32), "W": _patterns(codes, few), "Z": _patterns(zeros, zero)}
    wanted = ir_run(program, given)["Y"]
    made = [lower(p, p.space.schedule(0)) for p in computed_plans(program, this_machine())[:1]]
    for kernel in made:
        assert np.array_equal(compiled(kernel)(**given), wanted), kernel.schedule
    if "avx512f" in host_features() and few != "e2m1":
        held = {b.dtype.bits for kernel in made for b in kernel.buffers.values() if b.name == "W_panel"}
        assert (word * 4 if bits == 4 else 32 if term in DIFFERENCES else 8) in held


def _patterns(bits: np.ndarray, name: str) -> np.ndarray:
    """Numbers of a type by their bits."""
    dtype = DTYPES[name]
    if dtype.is_float:
        return bits.astype(np.uint8).view(dtype.numpy)
    _, high = dtype.limits
    wide = bits.astype(np.int64)
    return np.where(wide > high, wide - (1 << dtype.bits), wide).astype(dtype.numpy)
