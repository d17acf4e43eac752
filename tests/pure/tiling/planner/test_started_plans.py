"""Plans on instructions whose sum starts from an operand or from zero, and on those that add an operand to a product:
random pairs (`tests/fuzz/started.py`), their kernels against the program in the interpreter."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from fuzz.pairs import Pair
from fuzz.started import started
from support.match.agreement import disagreement, expect
from support.match.computes import CATALOGUE
from support.plans import machine

from autosched.errors import AutoschedError
from autosched.ir import parse
from autosched.machine.catalogue import load_target
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.load import load_text
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.plan import Plan

VECTORS = machine(frozenset(["avx2", "fma"]))
CHIP = load_target("gemmini")


def described(pair: Pair, isa: str) -> Intrinsic:
    body = "".join(f"      {line}\n" for line in pair.semantics.splitlines())
    text = f"isa: {isa}\nintrinsics:\n  - name: up\n    semantics: |\n{body}    numerics: {pair.numerics}\n"
    return load_text(text)[0]


def plans(pair: Pair, target: Target) -> list[Plan]:
    """Those on the pair's instruction; none where either text is refused."""
    try:
        program, intrinsic = parse(pair.program), described(pair, target.isa)
    except AutoschedError:
        return []
    found = plan_program(program, target, CATALOGUE, [intrinsic]).every
    return [p for p in found if any(t.nest.intrinsic.isa == target.isa for t in p.tensor_parts)]


def wrong(target: Target, seeds: tuple[int, ...]) -> tuple[list[str], int, int]:
    """What is wrong with a row of each of the first two plans of each pair, and how many were looked at; of these, on
    instructions that start from zero."""
    found, looked, zero = list[str](), 0, 0
    for seed in seeds:
        pair, rng = started(Random(f"started {seed}")), np.random.default_rng(seed)
        for plan in plans(pair, target)[:2]:
            looked += 1
            zero += any(t.nest.intrinsic.from_zero for t in plan.tensor_parts)
            said = disagreement(plan, map(int, plan.space.sample(1, rng)), expect(plan.program, seed))
            found += [] if said is None else [f"{seed}, {plan.name}: {said}"]
    return found, looked, zero


@pytest.mark.parametrize("target", [VECTORS, CHIP], ids=lambda t: t.isa)
def test_kernels_compute_the_program(target: Target) -> None:
    found, looked, zero = wrong(target, (0, 2, 4))
    assert not found
    assert looked >= 3
    assert zero >= 1


@pytest.mark.slow
@pytest.mark.parametrize("target", [VECTORS, CHIP], ids=lambda t: t.isa)
def test_kernels_of_more_pairs_compute_the_program(target: Target) -> None:
    found, looked, _ = wrong(target, (5, 9, 13))
    assert not found
    assert looked >= 4
