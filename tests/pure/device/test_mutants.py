"""Kernels with one mistake each are refused, whatever the seed, and right ones are not."""

from __future__ import annotations

import pytest
from support.plans import machine, plans_of
from support.programs.mutants import MUTANTS, Mutant

from autosched.codegen.lower import lower
from autosched.device.simulator.verify.verify import Verifier
from autosched.ir.oracle.slack import NO_SLACK

SEEDS = range(3)


@pytest.mark.sampled(14)
@pytest.mark.sampled(8)
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_mistake_is_seen(mutant: Mutant) -> None:
    kernel, plan, _ = mutant.kernel()
    assert [Verifier(seed)._checked(kernel, mutant.right, plan, NO_SLACK).ok for seed in SEEDS] == [False] * len(SEEDS)


@pytest.mark.sampled(14)
@pytest.mark.sampled(5)
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_the_right_kernel_passes(mutant: Mutant) -> None:
    program = mutant.right
    plan = plans_of(program, machine())[0]
    kernel = lower(plan, plan.space.schedule(int(plan.space.few[0])))
    assert all(Verifier(seed)._checked(kernel, program, plan, NO_SLACK).ok for seed in SEEDS)
