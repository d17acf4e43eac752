"""Every CUDA instruction of the catalogue: a row drawn from its space lowers, and computes the oracle's numbers."""

from __future__ import annotations

import dataclasses
import re
import zlib
from collections.abc import Iterator
from math import prod
from random import Random

import numpy as np
import pytest
from fuzz.fragments import plans_on, text_for
from support.cards.gpu_plans import CATALOGUE, H200
from support.compiled.kernel_check import check_kernel

from autosched.codegen.lower import lower
from autosched.device.correctness.oracle import compute, slack
from autosched.device.simulator.verify.verify import check
from autosched.ir import parse, resolve
from autosched.ir.program import Program
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.matcher.match import match
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.variants.conditional import candidates_of

TWO = 2
"""Factors of a product."""
FEW = dataclasses.replace(H200, cores=3)
BITS = """
def bits(A: b1[{m}, {k}], B: b1[{n}, {k}], C: s32[{m}, {n}]):
    for i, j in grid({m}, {n}):
        C[i, j] = 0
        for p in range({k}):
            C[i, j] += s32(A[i, p] {op} B[j, p])
"""


def names() -> Iterator[str]:
    """All that add up products on this GPU, `wgmma` with its least n: the others are the same instruction, wider. What
    overwrites its target is not asked about products (`tests/cuda/emulation/test_packed.py`); what selects elements or
    scales groups is asked about its own."""
    seen = set()
    for outline in CATALOGUE.outlines(["cuda/*"]):
        name = outline.name
        intrinsic = CATALOGUE[name]
        kind = re.sub(r"n\d+k", "k", name) if "wgmma" in name else name
        sums = intrinsic.kind == "compute" and intrinsic.accumulates and "cuda" in outline.printers
        if sums and len(intrinsic.inputs) == TWO and kind not in seen:
            seen.add(kind)
            yield name


def with_more_operands() -> list[str]:
    """Those that have scales, or numbers that select, beside their factors."""
    every = [o.name for o in CATALOGUE.outlines(["cuda/mma*"]) if "cuda" in o.printers]
    return [n for n in every if len(CATALOGUE[n].inputs) > TWO]


def program_for(intrinsic: Intrinsic) -> Program:
    """A product one element longer than the instruction's tile, so that every tile is ragged; one tile of a
    warpgroup's rows."""
    extents = {a.name: a.extent for a in intrinsic.axes}
    m, n, k = (extents.get(axis, 1) + 1 for axis in "ijk")
    m = min(m, 64)
    if "b1" in intrinsic.name:
        return parse(BITS.format(m=m, n=n, k=k, op="^" if "xor" in intrinsic.name else "&"))
    a, b = (o.dtype.name for o in intrinsic.inputs)
    return resolve("matmul_nt", {"m": m, "n": n, "k": k, "a": a, "b": b, "acc": intrinsic.accumulator.dtype.name})


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", list(names()))
def test_a_row_computes_the_oracles_numbers(name: str) -> None:
    assert FEW.has(CATALOGUE[name].requires)
    intrinsic = CATALOGUE[name].on(FEW.features)
    program = program_for(intrinsic)
    level = "real" if intrinsic.accumulator.dtype.is_float else "bitwise"
    plans = make_plans(program, FEW, candidates_of(match(program, [intrinsic], level)))
    plan = next(p for p in plans if p.tensor_parts)
    row = int(plan.space.sample(1, np.random.default_rng(zlib.crc32(name.encode())))[0])
    kernel = lower(plan, plan.space.schedule(row))
    check_kernel(kernel)
    assert intrinsic in kernel.intrinsics
    difference = check(kernel, compute(program, 0, slack=slack(plan)))
    assert difference.ok, (plan.space.schedule(row), difference)


@pytest.mark.sampled("cuda/mma.sp.m16n8k32.f16.f16.f32", "cuda/mma.m16n8k32.e2m1.e4m3.f32.mxf8f6f4")
@pytest.mark.parametrize("name", with_more_operands())
def test_a_row_with_scales_or_a_selection_computes_the_oracles_numbers(name: str) -> None:
    text = min((text_for(name, Random(seed)) for seed in range(8)), key=work)
    plan = plans_on(text, name)[0]
    row = int(plan.space.sample(1, np.random.default_rng(zlib.crc32(name.encode())))[0])
    kernel = lower(plan, plan.space.schedule(row))
    check_kernel(kernel)
    assert [i.name for i in kernel.intrinsics] == [name]
    difference = check(kernel, compute(plan.program, 0, slack=slack(plan)))
    assert difference.ok, (plan.space.schedule(row), difference)


def work(text: str) -> int:
    """Terms of a program's sum."""
    (stage,) = parse(text).stages
    return prod(a.extent for a in stage.axes)


def test_turing_is_offered_what_it_brought() -> None:
    """What a file requires is required of all of its instructions: some of Turing's once asked for Ampere."""
    turing = dataclasses.replace(H200, features=frozenset(["sm_61", "sm_70", "sm_72", "sm_75"]))
    for name in ("mma.m16n8k8.f16.f16.f32", "mma.m8n8k16.s8.s8.s32", "mma.m8n8k32.s4.s4.s32", "mma.m8n8k128.b1.xor"):
        assert turing.has(CATALOGUE[f"cuda/{name}"].requires), name
    for name in ("mma.m16n8k8.bf16.bf16.f32", "mma.m16n8k16.f16.f16.f32", "mma.m16n8k8.tf32.tf32.f32"):
        assert not turing.has(CATALOGUE[f"cuda/{name}"].requires), name
