"""Loops over members of groups in two, one over groups and one inside: an instruction with one scale for all that it
sums up takes the inner one.

    for k in range(64): C[i, j] += A[i, k] * S[i, k // 32]

    for k in range(2): for k_member in range(32): C[i, j] += A[i, k * 32 + k_member] * S[i, k]

All iterations run in the order in which they ran, so it is the same program bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence

from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.ir.rewrites.grouped_loops import split_axes, split_groups
from autosched.ir.rewrites.rewrite import Rewrite, fold_quotients
from autosched.tensorize.adapters.proposal import Adapted, NoPlace, Proposal, lemma
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.intrinsic import Intrinsic


def split(facts: StageFacts, intrinsic: Intrinsic) -> Sequence[Proposal]:
    """The program with each loop over whole groups in two."""
    return [] if facts.program.symbolic else [Proposal(("split",), lambda: _split(facts))]


def _split(facts: StageFacts) -> Adapted:
    """Raises NoPlace where no loop of the stage has whole groups."""
    found = split_groups(facts.program)
    if found is None:
        raise NoPlace("no loop has whole groups")
    folded = fold_quotients(found.after) or found
    proof = found.proof if folded is found else (*found.proof, *folded.proof)
    stage = folded.after.stages[_number(facts.program, facts.stage)]
    whole = {a.name: a.extent for a in facts.stage.axes}
    names = tuple(f"split {a.name} by {whole[a.name] // a.extent}" for a in split_axes(facts.stage, stage))
    if not names:
        raise NoPlace("no loop of the stage has whole groups")
    rewrite = Rewrite(" + ".join(names), facts.program, folded.after, proof)
    return Adapted(rewrite, stage, names, tuple(lemma(said, "structure") for said in proof))


def _number(program: Program, stage: Stage) -> int:
    return next(n for n, s in enumerate(program.stages) if s.assign is stage.assign)
