"""Selections: an element that data address within a small range is chosen among those that may be meant.

    C[i, j] += A[i, q] * B[4 * (q // 2) + E[i, q], j]                       0 <= E <= 3
    C[i, j] += A[i, q] * (B[4 * (q // 2), j] if E[i, q] & 3 == 0 else …)

For instructions that choose as well (2:4 sparsity). The values are the same, bit by bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from autosched.ir.oracle.nests import axis_ranges
from autosched.ir.rewrites.selected import with_choices
from autosched.ir.value import Read
from autosched.tensorize.adapters.proposal import Adapted, Proposal, adapted, lemma
from autosched.tensorize.adapters.site import Site
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.intrinsic import Intrinsic

CHOSEN = "choose"
"""The adapter's name."""


def selected(facts: StageFacts, intrinsic: Intrinsic) -> Sequence[Proposal]:
    """The stage with choices, where the instruction has some."""
    if not intrinsic.chooses or facts.program.symbolic:
        return []
    value = facts.original.assign.value

    def known(element: Read) -> tuple[int, int] | None:
        if element.tensor in facts.program.written:
            return None
        low, high = element.dtype.limits
        for stated in (a for a in facts.program.assumptions if a.subject == element.tensor):
            low = low if stated.low is None else max(low, int(stated.low))
            high = high if stated.high is None else min(high, int(stated.high))
        return low, high

    chosen = with_choices(value, known, axis_ranges(facts.program.body))
    if chosen == value:
        return []

    def make() -> Adapted:
        core = replace(facts.original.assign, value=chosen)
        site = Site(facts.program, facts.original, facts.update)
        said = f"{show_leaf(value)} reads one of the elements that its subscripts may mean"
        return adapted(facts.program, site.with_assign(core), core, (CHOSEN,), [lemma(said, "structure")])

    return [Proposal((CHOSEN,), make)]
