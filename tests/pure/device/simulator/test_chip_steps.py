"""Random expressions in steps on a chip (`tests/fuzz/expressions.py`): every plan computes the program bit for bit,
through instructions that overwrite their target in scratchpads."""

from __future__ import annotations

from fuzz.expressions import expression_program
from hypothesis import given
from hypothesis import strategies as st
from support.chips import chip, measured, planned
from support.match.examples import examples

from autosched.tiling.plans.plan import Plan


def most(plans: list[Plan]) -> Plan:
    """The plan with the most stages on instructions."""
    return max(plans, key=lambda p: len(p.tensor_parts))


@examples(8)
@given(st.integers(0, 10**6))
def test_expressions_in_steps_are_the_program(seed: int) -> None:
    program = expression_program(seed)
    plans = planned("vector", program, target=chip("vector", host=True), numerics="bitwise")
    for plan in (plans[0], most(plans)):
        for row, m in measured(plan, 1, seed):
            assert m.ok, (str(program), plan.name, row, m.message)
            assert m.extra["verified"], m.extra["verified_by"]
            assert m.max_abs_error in (0, None), (str(program), plan.name, row, m.max_abs_error)


def test_most_expressions_are_on_the_vector_unit() -> None:
    """Else the test above would prove little."""
    programs = [expression_program(seed) for seed in range(20)]
    found = [most(planned("vector", p, target=chip("vector", host=True))) for p in programs]
    assert sum(bool(p.tensor_parts) for p in found) >= 10
    assert sum(any(r.name == "steps" for r in p.rewrites) for p in found) >= 4
