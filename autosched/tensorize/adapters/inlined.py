"""Steps in one instruction: intermediates that a stage reads are computed where it reads them.

    T[i] = s32(A[i]) * s32(B[i])
    C[i] = s16((T[i] + 16384) >> 15)        C[i] = s16((s32(A[i]) * s32(B[i]) + 16384) >> 15)

So an instruction of several steps computes what the program writes as several statements. The values are the same, bit
by bit; what other statements read of an intermediate stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from autosched.ir.nodes import Assign, Stage
from autosched.ir.program import Program
from autosched.ir.rewrites.inline import inline_into
from autosched.tensorize.adapters.proposal import Adapted, Proposal, adapted, followed, lemma
from autosched.tensorize.adapters.supplied import supplied
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.reduction.update import NotAnUpdate, update_of_intrinsic

MOST = 12
"""Sets of intermediates looked at, for each stage."""


@dataclass(frozen=True)
class _Inside:
    """The program with the intermediates `names` inside of the statement `assign`."""

    program: Program
    assign: Assign
    names: tuple[str, ...]

    @property
    def stage(self) -> Stage:
        return next(s for s in self.program.stages if s.assign is self.assign)


def inlined(facts: StageFacts, intrinsic: Intrinsic) -> Sequence[Proposal]:
    """The stage with one intermediate or several inside, the nearest first, where it then reads elements of the types
    that the instruction takes; and with a constant supplied, where the instruction takes one element more."""
    if intrinsic.accumulates:
        return []
    wanted = {o.dtype for o in update_of_intrinsic(intrinsic).operands}
    found: list[Proposal] = []
    for step, inside in _steps(facts):
        if inside.update.target.dtype != intrinsic.accumulator.dtype:
            continue
        read = inside.update.operands
        if {r.dtype for r in read} == wanted and len(read) <= len(intrinsic.inputs):
            found.append(Proposal(("inline", step.names), partial(_adapted, facts.program, step)))
        found += [_then(facts.program, step, proposal) for proposal in supplied(inside, intrinsic)]
    return found


@lru_cache(maxsize=64)
def _steps(facts: StageFacts) -> tuple[tuple[_Inside, StageFacts], ...]:
    """Every program with some of the intermediates inside, those of the fewest first, and the facts of its stage."""
    todo = [_Inside(facts.program, facts.original.assign, ())]
    seen, found = {frozenset[str]()}, list[tuple[_Inside, StageFacts]]()
    while todo and len(found) < MOST:
        here = todo.pop(0)
        if here.names:
            inside = StageFacts(here.program, here.stage, facts.timeout_ms).as_assignment
            try:
                _ = inside.update
            except NotAnUpdate:
                continue
            found.append((here, inside))
        for name in dict.fromkeys(r.tensor for r in here.stage.reads):
            if name == here.assign.tensor or here.program.known(name) or frozenset((*here.names, name)) in seen:
                continue
            made = inline_into(here.program, here.assign, name)
            if made is not None:
                seen.add(frozenset((*here.names, name)))
                todo.append(_Inside(*made, (*here.names, name)))
    return tuple(found)


def _adapted(before: Program, step: _Inside) -> Adapted:
    names = " and ".join(step.names)
    said = f"{names} inside of {step.assign.tensor}: nothing that it is computed from changes before it is read"
    return adapted(before, step.program, step.assign, (f"inline {names}",), [lemma(said, "structure")])


def _then(before: Program, step: _Inside, proposal: Proposal) -> Proposal:
    return Proposal(
        ("inline", step.names, proposal.key), lambda: followed(before, _adapted(before, step), proposal.make())
    )
