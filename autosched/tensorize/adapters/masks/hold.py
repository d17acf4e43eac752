"""Masks of an instruction that the program has nothing for, and lengths that its text needs a register for: a mask is
all true, a length the whole. (Other lengths go with the command: `tensorize.lengths`.)

    C[i] += A[i] * B[i]        C_mask[0] = 1; C_length[0] = 16; C[i] += A[i] * B[i]
                               with p holding C_mask[0], vl holding C_length[0]

The program computes what it did; what the operands hold decides the instruction's conditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

from autosched.ir.nodes import Assign, Tensor
from autosched.ir.value import Literal
from autosched.logic import Const
from autosched.tensorize.adapters.proposal import Adapted, Proposal, adapted, lemma
from autosched.tensorize.adapters.site import Site
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.governed import as_held, governing
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.lengths import at_full_length, is_update
from autosched.tensorize.reduction.update import NotAnUpdate, update_of_intrinsic


def lengths(facts: StageFacts, intrinsic: Intrinsic) -> Sequence[Proposal]:
    """The stage with all lengths supplied, for masks that the program has."""
    return _holding(facts, intrinsic, 0)


def masks(facts: StageFacts, intrinsic: Intrinsic) -> Sequence[Proposal]:
    """The stage with all lengths supplied, and some masks, as few as can be first."""
    if not is_update(intrinsic):
        return []
    count = sum(not counts for counts in governing(update_of_intrinsic(intrinsic)).values())
    return [p for n in range(1, count + 1) for p in _holding(facts, intrinsic, n)]


def _holding(facts: StageFacts, intrinsic: Intrinsic, count: int) -> list[Proposal]:
    """Each way to supply all lengths and so many masks."""
    facts = facts if intrinsic.accumulates else facts.as_assignment
    try:
        _ = facts.update
    except NotAnUpdate:
        return []
    if not is_update(intrinsic):
        return []
    whole = at_full_length(intrinsic)
    update = update_of_intrinsic(intrinsic if whole is None else whole[0])
    computed = {r.tensor for r in update.operands}  # with these it computes: they hold the program's elements
    conditions = {o: counts for o, counts in governing(update).items() if o not in computed}
    longest = max((a.extent for a in update.axes), default=1)
    found = []
    if any(counts and not intrinsic.operands[o].dtype.is_integer for o, counts in conditions.items()):
        return []
    masks = [o for o, counts in conditions.items() if not counts and intrinsic.operands[o].dtype.is_integer]
    for chosen in combinations(masks, count):
        numbers = {o: longest if counts else 1 for o, counts in conditions.items() if counts or o in chosen}
        held = {o: Literal(n, intrinsic.operands[o].dtype) for o, n in numbers.items()}
        fits = all(v.dtype.limits[0] <= v.value <= v.dtype.limits[1] for v in held.values())
        if held and fits and not held.keys() & governing(as_held(update, held)).keys():
            key = "govern", tuple((o, v.value, v.dtype) for o, v in held.items())
            found.append(Proposal(key, partial(_supplied, facts, held)))
    return found


def _supplied(facts: StageFacts, held: dict[str, Literal]) -> Adapted:
    site = Site(facts.program, facts.original, facts.others)
    filled, said = list[Assign](), list[str]()
    for operand, number in held.items():
        name = site.fresh(f"{facts.original.assign.tensor}_{operand}")
        site.tensors[name] = Tensor(name, number.dtype, (Const(1),), intermediate=True)
        filled.append(Assign(name, (Const(0),), "=", number))
        said.append(f"{operand} = {number.value}")
    core = replace(facts.original.assign)
    after = site.with_assign(core)
    after = replace(after, body=(*filled, *after.body))
    text = f"with {' and '.join(said)} in all elements its conditions hold everywhere"
    return adapted(facts.program, after, core, (f"hold {' and '.join(said)}",), [lemma(text, "structure")])
