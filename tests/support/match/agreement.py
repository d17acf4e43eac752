"""Whether rows of a plan compute the program: lowered, checked, run in the loop-tree interpreter, then compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from support.compiled.kernel_check import check_kernel

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.errors import AutoschedError
from autosched.ir import random_inputs, run_with_error
from autosched.ir.oracle.inputs import split_inputs
from autosched.ir.program import Program
from autosched.tiling.plans.plan import Plan


@dataclass(frozen=True)
class Expected:
    """Inputs of a program, and what the oracle makes of them."""

    arrays: dict[str, Any]
    scalars: dict[str, Any]
    wanted: dict[str, Any]
    tolerance: dict[str, Any]

    def difference(self, found: Mapping[str, Any]) -> str | None:
        """The first element of an output that is wrong, or None. Where the tolerance is not finite, anything goes."""
        for output, want in self.wanted.items():
            a, b = found[output].astype(np.float64), want.astype(np.float64)
            allowed = np.asarray(self.tolerance[output])
            with np.errstate(invalid="ignore"):  # inf - inf
                same = (np.abs(a - b) <= allowed) | (a == b) | (np.isnan(a) & np.isnan(b)) | ~np.isfinite(allowed)
            if not same.all():
                at = tuple(int(i) for i in np.argwhere(~same)[0])
                return f"{output}{at} is {found[output][at]}, not {want[at]}"
        return None


def expect(program: Program, seed: int = 1) -> Expected:
    arrays, scalars = split_inputs(program, random_inputs(program, np.random.default_rng(seed)))
    stages = frozenset(s.name for s in program.stages)
    return Expected(arrays, scalars, *run_with_error(program, arrays, scalars, stages))


def disagreement(plan: Plan, rows: Iterable[int], expected: Expected | None = None) -> str | None:
    """What is wrong with the first row that is wrong, or None."""
    expected = expected or expect(plan.program)
    for row in rows:
        schedule = plan.space.schedule(row)
        try:
            kernel = lower(plan, schedule)
            check_kernel(kernel)
            wrong = expected.difference(run_kernel(kernel, expected.arrays, expected.scalars))
        except (AutoschedError, AssertionError) as error:
            wrong = f"{type(error).__name__}: {error}"
        if wrong:
            return f"{plan.name}\n{schedule}\n{wrong}"
    return None
