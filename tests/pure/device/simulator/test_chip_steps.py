"""Random expressions in steps on a chip (`tests/fuzz/expressions.py`): every plan computes the program bit for bit,
through instructions that overwrite their target in scratchpads."""

from __future__ import annotations

from fuzz.expressions import expression_program
from hypothesis import given
from hypothesis import strategies as st
from support.chips import chip, measured, planned
from support.match.examples import examples

from autosched.errors import NoScheduleError
from autosched.ir.program import Program
from autosched.tiling.plans.plan import Plan


def plans_of(program: Program) -> list[Plan]:
    """Those that the chip runs whole, at the level where no bit may change; else those with a host beside it."""
    try:
        return planned("vector", program, numerics="bitwise")
    except NoScheduleError:
        return planned("vector", program, numerics="bitwise", target=chip("vector", host=True))


@examples(4)
@given(st.integers(0, 10**6))
def test_expressions_in_steps_are_the_program(seed: int) -> None:
    program = expression_program(seed)
    plans = plans_of(program)
    for plan in (plans[0], plans[-1]):
        for row, m in measured(plan, 1, seed):
            assert m.ok, (str(program), plan.name, row, m.message)
            assert m.extra["verified"], m.extra["verified_by"]
            assert m.max_abs_error in (0, None), (str(program), plan.name, row, m.max_abs_error)


def test_most_expressions_are_on_the_vector_unit() -> None:
    """Else the test above would prove little."""
    found = [plans_of(expression_program(seed))[0] for seed in range(5)]
    assert sum(not p.target.host for p in found) >= 2
    assert sum(any(r.name == "steps" for r in p.rewrites) for p in found) >= 1
