"""Elements that a condition on data leaves as they are, as a choice, for instructions that overwrite under a mask.

    if M[j] != 0: C[i, j] = A[i, j]        C[i, j] = A[i, j] if M[j] != 0 else C[i, j]

Each element is written once either way, and with what it holds where the condition fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from autosched.ir.nodes import Assign, Guard, Statement
from autosched.ir.rewrites.nesting import under
from autosched.ir.stages import conjuncts_of
from autosched.ir.value import Arith, Logical, Read, Select, is_value
from autosched.tensorize.adapters.proposal import Adapted, NoPlace, Proposal, adapted, lemma
from autosched.tensorize.adapters.site import Site
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.intrinsic import Intrinsic


def kept(facts: StageFacts, intrinsic: Intrinsic) -> Sequence[Proposal]:
    """The stage with its conditions on data as a choice, where it sums nothing."""
    facts = facts.as_assignment
    stage = facts.original
    asked = tuple(g for g in stage.guards if is_value(g))
    if intrinsic.accumulates or stage.reduction or stage.init is not None or not asked:
        return []

    def make() -> Adapted:
        site = Site(facts.program, stage, facts.others)
        assign = stage.assign
        own = Read(assign.tensor, assign.index, stage.target.dtype)
        value = assign.value
        if assign.op != "=":
            value = Arith(assign.op.removesuffix("="), own, value, own.dtype)
        chosen = Select(asked[0] if len(asked) == 1 else Logical("and", asked), value, own, own.dtype)
        core = Assign(assign.tensor, assign.index, "=", chosen, assign.location)

        def visit(stmt: Statement) -> Statement:
            if isinstance(stmt, Assign):
                return core if stmt is assign else stmt
            body = tuple(map(visit, stmt.body))
            if isinstance(stmt, Guard) and is_value(stmt.condition) and any(s is core for s in body):
                if len(body) > 1:
                    raise NoPlace("another statement stands under the condition")
                left = tuple(c for c in conjuncts_of(stmt.condition) if not is_value(c))
                return under(left, core)
            return Guard(stmt.condition, body) if isinstance(stmt, Guard) else type(stmt)(stmt.axis, body)

        said = f"{assign.tensor} keeps what it holds where the condition fails, which the choice assigns"
        after = site.with_statement(visit(site.top))
        return adapted(facts.program, after, core, (f"keep {assign.tensor}",), [lemma(said, "structure")])

    return [Proposal(("keep",), make)]
