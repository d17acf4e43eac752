"""Sums of integers in ring form: offset-binary, zero points, expand, negate, scale, truncate, in any mixture.

    Σ (a - za)·w = Σ a·w - za·Σ w          modulo 2^w

A term that is one product of two elements plus less is left to the instruction; the rest becomes sums of one's own
(`restate` finds the form and proves it, `rebuild` writes the program). Integers only: floats have no such laws.
"""

from __future__ import annotations

from collections.abc import Sequence

from autosched.tensorize.adapters.integers.polynomial import TooLong
from autosched.tensorize.adapters.integers.rebuild import rebuild
from autosched.tensorize.adapters.integers.restate import Restated, proof_of, restate
from autosched.tensorize.adapters.proposal import Adapted, Proposal, adapted
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.intrinsic import Intrinsic


def ring(facts: StageFacts, intrinsic: Intrinsic) -> Sequence[Proposal]:
    """The stage's term in the instruction's types, in the orders of them that convert the fewest operands; a form that
    is the program's own needs no adapter."""
    inputs = [o.dtype for o in intrinsic.inputs]
    wide = intrinsic.accumulator.dtype
    update = facts.update
    integers = all(t.is_integer for t in (*inputs, wide, update.term.dtype))
    if len(inputs) != 2 or update.combine != "+" or update.saturate or update.fused or not integers:
        return []
    reduced = frozenset(a.name for a in update.axes_reduced)
    orders = dict.fromkeys(((inputs[0], inputs[1]), (inputs[1], inputs[0])))
    try:
        found = [r for types in orders if (r := restate(update.term, reduced, wide, types)) is not None]
    except TooLong:
        return []
    least = min((r.converted for r in found), default=0)
    return [_proposal(facts, r) for r in found if r.converted == least and r.names]


def _proposal(facts: StageFacts, restated: Restated) -> Proposal:
    def make() -> Adapted:
        lemmas = proof_of(restated, facts.timeout_ms)
        after, core = rebuild(facts.program, facts.original, facts.update, restated)
        return adapted(facts.program, after, core, restated.names, lemmas)

    return Proposal(("ring", restated.wide, restated.left.dtype, restated.right.dtype), make)
