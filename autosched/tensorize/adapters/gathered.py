"""A gathered operand in order: the element that data points at is copied first, and the stage reads the copy.

    C[i, j] += s32(A[idx[i], k]) * s32(B[k, j])     A_gathered[i, k] = A[idx[i], k]
                                                    C[i, j] += s32(A_gathered[i, k]) * s32(B[k, j])

The copy is the packing through the gather's map, as a stage of its own: what follows it is laid out as ever.
"""

from __future__ import annotations

from autosched.ir.nodes import Assign, Axis, Tensor
from autosched.ir.value import Read, is_value, map_value
from autosched.logic import Const, Int, Var
from autosched.logic.walk import substitute_int
from autosched.tensorize.adapters.proposal import Adapted, NoPlace, adapted, lemma
from autosched.tensorize.adapters.site import Site, nest
from autosched.tensorize.addresses.axes import index_axes
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.reduction.update import NotAnUpdate


def gathered(facts: StageFacts) -> Adapted | None:
    """The program with every operand of the stage that data addresses copied in order first.

    None where there is none, where the stage computes no update of what it writes, and where the copy might read what
    the stage does not: under a guard, or in loops whose bounds depend on others.
    """
    try:
        stage, update = facts.original, facts.update
    except NotAnUpdate:  # in place, say: an instruction may compute it all the same
        return None
    found = [r for r in update.operands if any(is_value(i) for i in r.index)]
    axes = {a.name: a for a in stage.axes}
    moving = {r: [n for n in axes if n in index_axes(r.index)] for r in found}
    if not found or update.guards or not {n for names in moving.values() for n in names} <= facts.exact:
        return None
    try:
        site = Site(facts.program, stage, update)
        copies = {r: _copy(site, facts, r, moving[r]) for r in found}
        value = map_value(stage.assign.value, lambda v: copies.get(v, v) if isinstance(v, Read) else v)
        core = Assign(stage.assign.tensor, stage.assign.index, stage.assign.op, value, stage.assign.location)
        after = site.with_assign(core)
    except NoPlace:
        return None
    said = [lemma(f"{copies[r].tensor} holds {show_leaf(r)} at every point of its axes", "structure") for r in found]
    return adapted(facts.program, after, core, tuple(f"gather {r.tensor}" for r in found), said)


def _copy(site: Site, facts: StageFacts, read: Read, names: list[str]) -> Read:
    name = site.fresh(f"{read.tensor}_gathered")
    lower = {n: facts.ranges[n][0] for n in names}
    shape = tuple(Const(facts.extents[n]) for n in names) or (Const(1),)
    site.tensors[name] = Tensor(name, read.dtype, shape, intermediate=True)
    loops = [Axis(site.fresh(f"{n}_g"), Const(0), Const(facts.extents[n])) for n in names]
    moved: dict[str, Int] = {n: Var(a.name) + lower[n] for n, a in zip(names, loops, strict=True)}
    element = map_value(read, on_int=lambda e: substitute_int(e, moved))
    index: tuple[Int, ...] = tuple(Var(a.name) for a in loops) or (Const(0),)
    site.before.append(nest(loops, (Assign(name, index, "=", element),)))
    return Read(name, tuple(Var(n) - lower[n] for n in names) or (Const(0),), read.dtype)
