"""How much wider than a program's own arithmetic earns a plan's results may differ: its instructions' kept bits."""

from __future__ import annotations

from autosched.device.correctness.oracle import Oracle, compute
from autosched.ir.program import Program
from autosched.tiling.plans.plan import Plan


def slack(plan: Plan) -> float:
    """How much wider tolerances are than the program's own arithmetic earns: 1, or more where an intrinsic keeps fewer
    fraction bits than its accumulator has (accepted over the reals, or promoted every few steps)."""
    used = [mapping.intrinsic for mapping in plan.mappings]
    return max((i.numerics.slack(i.accumulator.dtype.mantissa) for i in used), default=1.0)


def widened(given: Oracle, program: Program, seed: int, slack: float) -> Oracle:
    """The given oracle; where there is slack, the interpreter's on its data."""
    if slack == 1.0:
        return given
    return compute(program, seed, inputs={**given.inputs, **given.scalars}, slack=slack)
