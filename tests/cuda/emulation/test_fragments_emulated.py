"""Instructions with scales of groups, and that select: random programs (`tests/fuzz/fragments.py`) on the emulated
card, bit by bit as in the loop-tree interpreter."""

from __future__ import annotations

from math import prod
from random import Random

import numpy as np
import pytest
from fuzz.fragments import KINDS, planned, program_text, search
from support.cards.hand_kernels import needs_compiler

from autosched.codegen.cuda import print_cuda
from autosched.codegen.cuda.emulation import Unit, build
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.ir import parse
from autosched.ir.oracle.inputs import random_inputs

LEAST = 16 * 8 * 64
"""Multiply-adds of one tile, and more."""


def small(kind: str, start: int = 0) -> int:
    """The number of the smallest of some programs from `start` on that are for an instruction of a kind, and use more
    than one of its tiles."""
    first = start + (KINDS.index(kind) - start) % len(KINDS)
    sizes = {n: work(n) for n in range(first, first + 10 * len(KINDS), len(KINDS))}
    return min((n for n, size in sizes.items() if size > LEAST), key=sizes.__getitem__)


def work(seed: int) -> int:
    (stage,) = parse(program_text(seed)[0]).stages
    return prod(a.extent for a in stage.axes)


def emulated_as_interpreted(seeds: list[int]) -> None:
    units, expected = [], []
    for seed in seeds:
        plan = Random(seed).choice(planned(seed))
        row = int(plan.space.sample(1, np.random.default_rng(seed))[0])
        kernel = lower(plan, plan.space.schedule(row))
        source = print_cuda(kernel, plan.target)
        inputs = random_inputs(kernel.program, np.random.default_rng(seed))
        expected.append((inputs, run_kernel(kernel, inputs)["C"]))
        units.append(Unit(source.text, f"p{seed}.cu", source.intrinsics, source.plan, kernel.program))
    for emulated, (inputs, want) in zip(build(units), expected, strict=True):
        found = emulated.run(inputs, {}, seed=1)["C"]
        assert np.array_equal(found.view(np.uint32), want.view(np.uint32)), emulated.unit.text


@needs_compiler
@pytest.mark.compiler
@pytest.mark.parametrize("kind", KINDS)
def test_the_emulated_card_computes_what_the_interpreter_does(kind: str) -> None:
    emulated_as_interpreted([small(kind)])


@needs_compiler
@pytest.mark.compiler
@pytest.mark.slow
def test_the_emulated_card_computes_more_programs() -> None:
    emulated_as_interpreted([small(kind, start) for kind in KINDS for start in (40, 80)])


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_are_right_in_the_interpreter(kind: str) -> None:
    """`python -m tests.fuzz.fragments --programs 500` looks at more of them."""
    count, wrong = search(small(kind, 20), 1)
    assert not wrong
    assert count["kernels"]
