"""Sums on an instruction that starts from zero: each issue's sum is an intermediate, and these are added up.

    C[i, j] += s32(A[i, p]) * s32(B[p, j])                                            p < 64, from anything

    C_part[q, i, j] += s32(A[i, 16 * q + r]) * s32(B[16 * q + r, j])                  r < 16, from zero
    C[i, j] += C_part[q, i, j]                                                        q < 4
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from autosched.tensorize.adapters.promotion import error_in_parts, in_parts
from autosched.tensorize.adapters.proposal import Adapted, Proposal
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.reduction.floats import factors_of


def issued(facts: StageFacts, intrinsic: Intrinsic) -> Sequence[Proposal]:
    """The stage summed in parts of one issue's steps: integers are the same modulo 2^w in any grouping, floats are in
    another order, in sums that keep all bits of their type."""
    update, dtype, numerics = facts.update, facts.update.target.dtype, intrinsic.numerics
    if not intrinsic.from_zero or update.combine != "+" or update.saturate is not None:
        return []
    steps = prod(a.extent for a in intrinsic.reduction)
    name = f"add up sums of {steps}"
    if dtype.is_integer:
        return [Proposal(("issued", steps), lambda: in_parts(facts, steps, name, whole=True))]
    if intrinsic.accumulator.dtype != dtype or not factors_of(update.term) or numerics.bounded:
        return []
    if numerics.kept_bits(dtype.mantissa) < dtype.mantissa or dtype.finite:
        return []

    def make() -> Adapted:
        error = error_in_parts(facts, intrinsic, steps)
        return replace(in_parts(facts, steps, name, error, whole=True), reorders=True)

    return [Proposal(("issued", steps, numerics), make)]
