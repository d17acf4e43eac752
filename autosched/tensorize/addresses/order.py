"""Whether a stage's points may be computed in any order, and apart from the other stages of its loops.

Both are questions about two points that touch one element: z3 either finds the pair or proves that there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from autosched.ir.nodes import Stage
from autosched.ir.value import Read, is_value, reads
from autosched.logic import Bool, to_z3
from autosched.logic.solver import z3
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.match_types import Reason

if TYPE_CHECKING:
    from autosched.tensorize.addresses.places import StageFacts


def own_conflict(facts: StageFacts) -> tuple[Reason | None, bool]:
    """A read of the written tensor, other than as the accumulator, that may meet a written element."""
    from autosched.tensorize.addresses.places import Points

    stage = facts.stage
    found = list(reads(facts.update.term))
    for part in (*facts.guards, *stage.assign.index):
        found += reads(part) if is_value(part) else ()
    for read in dict.fromkeys(found):
        if read.tensor != stage.assign.tensor:
            continue
        functions: dict[str, Any] = {}
        here, there = (Points(facts.program, stage.axes, tag, functions) for tag in ("", "'"))
        claim = here.domain + there.domain
        claim += [here.index(r) == there.index(w) for r, w in zip(read.index, stage.assign.index, strict=True)]
        answer = facts.ask("addresses", f"{show_leaf(read)} is not written by this stage", claim)
        if answer.holds is None:
            return None, False
        if not answer.holds:
            text = f"{show_leaf(read)} may be an element that the stage itself writes as {show_leaf(stage.target)}"
            fix = f"read from a tensor other than {stage.assign.tensor}, or write to another"
            return Reason("ALIAS", text, fix=fix), True
    return None, True


def _accesses(stage: Stage) -> list[tuple[Read, bool]]:
    found = [(r, False) for r in dict.fromkeys(stage.reads)]
    found.append((stage.target, True))
    if stage.init is not None:
        found += [(r, False) for r in reads(stage.init)]
    return found


def neighbour_conflict(facts: StageFacts) -> tuple[Reason | None, bool]:
    """A dependence, carried by a shared loop, that runs against the text's order: the stages cannot be split into
    loops of their own."""
    stages = facts.program.stages
    own = stages.index(facts.original)
    for at, other in enumerate(stages):
        shared = _shared(facts.stage, other)
        if at == own or not shared:
            continue
        earlier, later = (other, facts.stage) if at < own else (facts.stage, other)
        for a, a_writes in _accesses(earlier):
            for b, b_writes in _accesses(later):
                if a.tensor != b.tensor or not (a_writes or b_writes):
                    continue
                answer = _carried(facts, earlier, a, later, b, shared)
                if answer is None:
                    return None, False
                if answer:
                    text = (
                        f"{show_leaf(a)} in stage {earlier.name} meets {show_leaf(b)} in stage {later.name} of an "
                        f"earlier turn of loop {', '.join(shared)}: the stages cannot be separated"
                    )
                    return Reason("ALIAS", text, fix="write the stages as loop nests of their own"), True
    return None, True


def _shared(a: Stage, b: Stage) -> list[str]:
    names = []
    for x, y in zip(a.axes, b.axes, strict=False):
        if x != y:
            break
        names.append(x.name)
    return names


def _carried(facts: StageFacts, earlier: Stage, a: Read, later: Stage, b: Read, shared: list[str]) -> bool | None:
    """Whether `b`'s point can come before `a`'s in the shared loops and touch the same element."""
    from autosched.tensorize.addresses.places import Points

    functions: dict[str, Any] = {}
    p = Points(facts.program, earlier.axes, "", functions)
    q = Points(facts.program, later.axes, "'", functions)
    claim = p.domain + q.domain + [p.index(x) == q.index(y) for x, y in zip(a.index, b.index, strict=True)]
    for points, stage in ((p, earlier), (q, later)):
        claim += [to_z3(g, points.env) for g in stage.guards if isinstance(g, Bool)]
    before = []
    for n, name in enumerate(shared):
        equal = [p.env[m] == q.env[m] for m in shared[:n]]
        before.append(z3.And(*equal, q.env[name] < p.env[name]))
    claim.append(z3.Or(*before))
    answer = facts.ask("addresses", f"{show_leaf(a)} and {show_leaf(b)} keep their order", claim)
    return None if answer.holds is None else not answer.holds
