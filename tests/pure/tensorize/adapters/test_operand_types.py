"""Types in which the sides of a product are held: exactly by proof, or rounded where a level allows that."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from autosched import ir
from autosched.device.correctness.oracle import compute, slack
from autosched.ir import parse
from autosched.ir.dtypes import DTYPES
from autosched.ir.program import Program
from autosched.ir.value import Arith
from autosched.machine.catalogue import load_target
from autosched.search.tuning.tune import usable
from autosched.tensorize import match
from autosched.tensorize.adapters.operand_types import exactly, side_types
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.variants.rounded import types_needed

CATALOGUE = Catalogue.builtin()
A100 = replace(load_target("nvidia-a100"), cores=3)
MMA = ("cuda/mma.m16n8k16.*", "cuda/mma.m16n8k8.tf32*")


def weighted(weight: str, t: str = "f16", w: str = "u4", s: str = "e4m3") -> Program:
    return parse(f"""
def f(X: {t}[16, 32], W: const[{w}[32, 16]], Z: const[{w}[2, 16]], S: const[{s}[2, 16]], Y: f32[16, 16]):
    for i, j in grid(16, 16):
        Y[i, j] = 0
        for p in range(32):
            Y[i, j] += f32(X[i, p]) * ({weight})
""")


DIFFERENCE, SCALED = "f32(W[p, j]) - f32(Z[p // 16, j])", "f32(W[p, j]) * f32(S[p // 16, j])"
EXACT = [
    (DIFFERENCE, "u4", "e4m3", {"f16", "bf16", "tf32", "e4m3"}),
    (DIFFERENCE, "s8", "e4m3", {"f16", "bf16", "tf32"}),
    (DIFFERENCE, "s16", "e4m3", set()),
    (SCALED, "e2m1", "e4m3", {"f16", "bf16", "tf32"}),
    (SCALED, "e4m3", "e4m3", {"bf16", "tf32"}),  # 448 * 448 is no f16
    (SCALED, "u8", "e4m3", set()),  # 8 bits times 4 are 12
    (SCALED, "u4", "f16", set()),
    (f"({DIFFERENCE}) * f32(S[p // 16, j])", "u4", "e4m3", {"f16", "bf16", "tf32"}),
    (f"({DIFFERENCE}) * 0.1", "u4", "e4m3", set()),
]


@pytest.mark.parametrize(("weight", "w", "s", "types"), EXACT)
def test_what_is_exact(weight: str, w: str, s: str, types: set[str]) -> None:
    """As running the loops on every element says."""
    value = weighted(weight, w=w, s=s).stages[-1].assign.value
    assert isinstance(value, Arith)
    side = value.right
    found = {n for n in ("f16", "bf16", "tf32", "e4m3", "e5m2") if exactly(side, DTYPES[n]) is not None}
    assert found == types


def test_a_part_of_a_byte_stands_for_all_its_values() -> None:
    packed = "f32(bits_e2m1(u4(W[p // 2, j] >> u8(p % 2 * 4)))) * f32(S[p // 16, j])"
    value = weighted(packed, w="u8").stages[-1].assign.value
    assert isinstance(value, Arith)
    assert exactly(value.right, DTYPES["f16"]) == "exhaustion"


@pytest.mark.parametrize("t", ["f32", "bf16", "f16"])
def test_rounding_loses_no_range_and_few_bits(t: str) -> None:
    """f32 is rounded to tf32 alone; beside bf16 also to that; nothing to f16, in which values may overflow."""
    program = weighted(f"({DIFFERENCE}) * f32(S[p // 16, j])", t=t, s="f16")
    value = program.stages[-1].assign.value
    assert isinstance(value, Arith)
    left = value.left.operand if t != "f32" else value.left  # type: ignore[union-attr]
    known = usable(CATALOGUE, A100, "simulator", MMA)
    assert side_types((left, value.right), value.dtype, {value.right}, known, rounding=False) == []
    ways = side_types((left, value.right), value.dtype, {value.right}, known, rounding=True)
    to = {str(into) for way in ways for side, into in way.types if side in way.rounded}
    assert to == {"f32": {"tf32"}, "bf16": {"tf32", "bf16"}, "f16": {"tf32"}}[t]


@pytest.mark.parametrize("numerics", ["bitwise", "special", "reassociated", "rescaled"])
def test_nothing_is_rounded_below_real(numerics: str) -> None:
    program = weighted(f"({DIFFERENCE}) * f32(S[p // 16, j])", t="f32", s="f32")
    known = usable(CATALOGUE, A100, "simulator", MMA)
    plans = plan_program(program, A100, CATALOGUE, known, numerics=numerics).every
    assert not any(m.rounded for p in plans for m in p.mappings)
    (line,) = types_needed(program, match(program, known), known, A100, numerics)
    assert line.endswith("with round X to tf32, factor W_factor[p, j] in tf32; that needs --numerics real")


def test_rounded_plans_say_so_and_are_within_their_tolerance() -> None:
    program = weighted(f"({DIFFERENCE}) * f32(S[p // 16, j])", t="f32", s="f32")
    known = usable(CATALOGUE, A100, "simulator", MMA)
    plan = next(p for p in plan_program(program, A100, CATALOGUE, known, numerics="real").every
                if any(m.rounded for m in p.mappings))  # fmt: skip
    (mapping,) = (m for m in plan.mappings if m.rounded)
    assert mapping.numerics == "real"
    assert "(1 + 2^-11)·(1 + 2^-11)" in str(mapping.certificate.error_bound)
    assert slack(plan).sums >= 2**13
    oracle = compute(program, 3, slack=slack(plan))
    got = ir.run(mapping.program, {**oracle.inputs, **oracle.scalars})["Y"]
    off = np.abs(got.astype(float) - oracle.wants["Y"])
    assert (off <= np.asarray(oracle.tolerances["Y"])).all()
    assert off.max() > 0


@pytest.mark.slow
def test_exact_sides_keep_the_program_s_numbers() -> None:
    program = weighted(SCALED, w="e2m1")
    known = usable(CATALOGUE, A100, "simulator", MMA)
    plans = plan_program(program, A100, CATALOGUE, known).every
    found = {id(m.program): m.program for p in plans for m in p.mappings if any(" in " in a for a in m.adapters)}
    assert found
    oracle = compute(program, 5)
    for after, kind in product(found.values(), ("Y",)):
        assert np.array_equal(ir.run(after, oracle.inputs)[kind], ir.run(program, oracle.inputs)[kind])
