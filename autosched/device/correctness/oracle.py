"""What a kernel's outputs must be: inputs within `assume`, the interpreter's outputs, and a tolerance an element.

Computed once in the parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.device.correctness.no_data import data_errors
from autosched.errors import UsageError
from autosched.ir.oracle.inputs import split_inputs
from autosched.ir.oracle.sets.domains import DECIDED, decided, drawn_inputs
from autosched.ir.oracle.sets.strength import shares_of_numbers
from autosched.ir.oracle.slack import NO_SLACK, Slack, joined
from autosched.ir.oracle.tolerances import run_with_error
from autosched.ir.program import Program
from autosched.tensorize.match_types import Mapping as Mapped
from autosched.tiling.plans.plan import Plan

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Oracle:
    """`inputs` by tensor name (inouts included), `scalars` by name; `wants` and `tolerances` by output. A float
    output's tolerance is absolute, an element; integers have None, and must be equal."""

    inputs: Mapping[str, Array]
    wants: Mapping[str, Array]
    tolerances: Mapping[str, Array | None]
    scalars: Mapping[str, Any] = field(default_factory=dict)

    @property
    def oracle(self) -> Oracle:
        """This one, as what boxes hold has one (`device.correctness.sampled`)."""
        return self

    @property
    def text(self) -> str:
        """What was compared, for people."""
        return "every element, by the interpreter"


def compute(program: Program, seed: int, inputs: Mapping[str, Any] | None = None, slack: Slack = NO_SLACK) -> Oracle:
    """Random inputs of `seed` within the program's assumptions, what the interpreter makes of them, and how far a
    kernel may be from it: reassociated sums and fused products within their error bound. `inputs` stand in for the
    random ones of the same names; `slack` as `ir.oracle.tolerances.run_with_error` takes it.

    UsageError where a size is symbolic: a device runs one size. DataError where the program cannot run on the data.
    """
    if program.symbolic:
        names = ", ".join(program.symbolic)
        raise UsageError(f"the size of {names} is a range; a device measures one size", hint="set it with -D")
    made = decided(program, lambda domain: _computed(program, seed, {}, NO_SLACK, domain), says)
    if made is not None and not inputs and slack == NO_SLACK:
        return made
    return _computed(program, seed, inputs or {}, slack)


def _computed(
    program: Program, seed: int, inputs: Mapping[str, Any], slack: Slack, domain: str | None = DECIDED
) -> Oracle:
    drawn = drawn_inputs(program, np.random.default_rng(seed), domain=domain)
    values, scalars = split_inputs(program, drawn | dict(inputs))
    with data_errors(program):
        wants, bounds = run_with_error(program, values, scalars, {s.name for s in program.stages}, slack)
    tolerances = {
        # An integer that is computed from floats (a requantised sum) may differ where they may.
        name: bound if program.tensors[name].dtype.is_float or np.any(bound) else None
        for name, bound in bounds.items()
    }
    return Oracle(values, wants, tolerances, scalars)


def shares(found: Oracle) -> tuple[float, ...]:
    """The share of each output that is compared in earnest: numbers of a known tolerance."""
    return shares_of_numbers((want, found.tolerances[name]) for name, want in found.wants.items())


def says(found: Oracle) -> float:
    """The least share of an output that is compared in earnest."""
    return min(shares(found), default=1.0)


def scalars_as_bytes(program: Program, scalars: Mapping[str, Any]) -> dict[str, bytes]:
    """Run-time scalars as a kernel takes them. UsageError where one has no value."""
    if lacking := [n for n in program.scalars if n not in scalars]:
        raise UsageError(f"the data have no value of {', '.join(lacking)}, of which {program.name} is a function")
    return {n: np.asarray(scalars[n]).astype(s.dtype.numpy).tobytes() for n, s in program.scalars.items()}


STEPS = 4
"""Roundings of a function in the program's own steps: `1 / (1 + exp(-x))`."""
OVER_REALS = 2.0
"""Of a plan that is equal over the reals only: an operation on each side may round otherwise."""


def slack(plan: Plan) -> Slack:
    """How much wider tolerances are than the program's own arithmetic earns: not at all, or where an intrinsic keeps
    fewer fraction bits than its accumulator has (accepted over the reals, or promoted every few steps), where operands
    are rounded to fewer bits first, where a rewrite is equal over the reals only, where a function may round its
    argument, and what an intrinsic states that approximates what it writes."""
    used = [mapping.intrinsic for mapping in plan.mappings]
    own = max((i.numerics.slack(i.accumulator.dtype.mantissa) for i in used), default=1.0)
    rounded = [(m.intrinsic.accumulator.dtype, t) for m in plan.mappings for t in m.rounded]
    own = max([own, *(2.0 ** (sums.mantissa - t.mantissa) for sums, t in rounded)])
    anew = any(r.numerics == "real" for r in plan.rewrites) or any(f.argument_ulp for f in plan.formulas.values())
    stated = (_stated(m) for m in plan.mappings if m.intrinsic.numerics.bounded)
    return joined((Slack(max(own, OVER_REALS) if anew else own), *stated))


def _stated(mapping: Mapped) -> Slack:
    """What an instruction may be off of an element: what it states, and what the program's own roundings cost."""
    numerics, name = mapping.intrinsic.numerics, mapping.stage.assign.tensor
    share = (numerics.relative or 0.0) + STEPS * 2 * mapping.intrinsic.accumulator.dtype.unit_roundoff
    return Slack(1.0, ((name, share),), () if numerics.absolute is None else ((name, numerics.absolute),))


def widened(given: Oracle, program: Program, seed: int, slack: Slack) -> Oracle:
    """The given oracle; where there is slack, the interpreter's on its data."""
    if slack == NO_SLACK:
        return given
    return compute(program, seed, inputs={**given.inputs, **given.scalars}, slack=slack)
