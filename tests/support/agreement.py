"""Whether rows of a plan compute the program: lowered, checked, run in the loop-tree interpreter, then compared."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from autosched.codegen.check import check_kernel
from autosched.codegen.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.errors import AutoschedError
from autosched.ir import random_inputs, run_with_error
from autosched.ir.inputs import split_inputs
from autosched.tiling.plan import Plan


def disagreement(plan: Plan, rows: Iterable[int], seed: int = 1) -> str | None:
    """What is wrong with the first row that is wrong, or None."""
    program = plan.program
    arrays, scalars = split_inputs(program, random_inputs(program, np.random.default_rng(seed)))
    stages = frozenset(s.name for s in program.stages)
    wanted, tolerance = run_with_error(program, arrays, scalars, stages)
    for row in rows:
        schedule = plan.space.schedule(row)
        try:
            kernel = lower(plan, schedule)
            check_kernel(kernel)
            found = run_kernel(kernel, arrays, scalars)
        except (AutoschedError, AssertionError) as error:
            return f"{plan.name}\n{schedule}\n{type(error).__name__}: {error}"
        for output, want in wanted.items():
            a, b = found[output].astype(np.float64), want.astype(np.float64)
            same = (np.abs(a - b) <= tolerance[output]) | (a == b) | (np.isnan(a) & np.isnan(b))
            if not same.all():
                at = tuple(int(i) for i in np.argwhere(~same)[0])
                return f"{plan.name}\n{schedule}\n{output}{at} is {found[output][at]}, not {want[at]}"
    return None
