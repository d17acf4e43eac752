"""What `show --as proof` and `tune` say of rewrites: proofs, savings, and names of tensors that a rewrite made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fuzz.windows import chain
from support.tiles import tiled_plans

from autosched.cli.answers.fusion import fusion_lines
from autosched.cli.answers.rewrite_proofs import rewrite_lines
from autosched.codegen.lower import lower
from autosched.ir.program import Program
from autosched.store.records import Measurement, Trial
from autosched.tiling.plans.plan import Plan
from autosched.tiling.variants.shared_runs import shared_runs


@pytest.fixture(scope="module")
def program() -> Program:
    return chain(10)


@pytest.fixture(scope="module")
def plan(program: Program) -> Plan:
    found, *_ = shared_runs(program, 0)
    return next(tiled_plans(found, 2))


def trial(number: int, plan: Plan, time_s: float, status: str = "ok", round: str = "search") -> Trial:
    row = int(plan.space.sample(1, np.random.default_rng(0))[0])
    return Trial(number, plan.name, row, {}, Measurement(status, time_s), round=round)


def test_what_a_rewrite_saves_is_what_was_measured_without_it(plan: Plan, program: Program) -> None:
    without = replace(plan, name="as written", rewrites=())
    best = trial(1, plan, 2e-3)
    others = [trial(2, without, 5e-3), trial(3, without, 4e-3), trial(4, without, 1e-3, "wrong")]
    final = trial(1, plan, 8e-3, round="final")  # of another moment
    lines = rewrite_lines(plan, final, program, [best, *others, final], [plan, without])
    (saves,) = [line for line in lines if line.startswith("  saves: ")]
    assert saves == "  saves: 2x as fast as the best of 2 trials without it (trial 3, 4.00 ms), as measured"
    assert lines[0].startswith("tiles of 2: ")
    assert "  numerics: bitwise" in lines
    assert all(f"  {reason}" in lines for reason in plan.rewrites[0].because)
    assert any("intermediates as written" in line for line in lines if line.startswith("  memory: "))
    alone = rewrite_lines(plan, final, program, [best, final], [plan, without])
    assert "  saves: not measured: no plan without 'tiles' was tried" in alone
    wrong = rewrite_lines(plan, final, program, [best, trial(4, without, 1e-3, "wrong"), final], [plan, without])
    assert "  saves: not measured: no trial came out right whose plan is without 'tiles'" in wrong
    assert rewrite_lines(without, others[0], program, others, [plan, without]) == []


def test_names_of_several_tensors_of_one_are_told(plan: Plan, program: Program) -> None:
    kernel = lower(plan, plan.space.schedule(trial(1, plan, 1.0).row))
    (names,) = [line for line in fusion_lines(plan, kernel, program) if line.startswith("names ")]
    told = dict(part.split(": ") for part in names.removeprefix("names").strip().split(" · "))
    made = {s.assign.tensor for s in plan.program.stages} - set(program.tensors)
    assert {name for group in told for name in group.split(", ")} == made
    said = " ".join(told.values())
    assert "before the loop over y_tile" in said
    assert "in the loop over y_tile" in said
    assert "behind the loop over y_tile" in said
