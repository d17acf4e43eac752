"""A transposed operand: copied with another dimension last, for an instruction that asks for elements along that one.

    Y[i, o] += s32(X[i, c]) * s32(W[c, o])          W_turned[o, c] = W[c, o]
                                                    Y[i, o] += s32(X[i, c]) * s32(W_turned[o, c])

Of `const` data the copy is made once, before the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from autosched.ir.nodes import Assign, Axis, Tensor
from autosched.ir.value import Read, map_value
from autosched.logic import Const, Var
from autosched.tensorize.adapters.proposal import Adapted, NoPlace, adapted, lemma
from autosched.tensorize.adapters.site import Site, nest
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.counterexample import show_leaf

T = TypeVar("T")


def transposed(facts: StageFacts, last: Mapping[Read, int]) -> Adapted | None:
    """The program in which the stage reads copies in place of these operands, each with the dimension of that number
    last. None where the stage leaves no room for them."""
    stage = facts.original
    try:
        site = Site(facts.program, stage, facts.update)
        wanted = dict.fromkeys((read.tensor, dimension) for read, dimension in last.items())
        names = {(tensor, dimension): _copy(site, tensor, dimension) for tensor, dimension in wanted}
        moved = {r: Read(names[r.tensor, d], _order(r.index, d), r.dtype) for r, d in last.items()}
        value = map_value(stage.assign.value, lambda v: moved.get(v, v) if isinstance(v, Read) else v)
        core = Assign(stage.assign.tensor, stage.assign.index, stage.assign.op, value, stage.assign.location)
        after = site.with_assign(core)
    except NoPlace:
        return None
    said = [lemma(f"{moved[r].tensor} holds {show_leaf(r)} at the same places", "structure") for r in moved]
    return adapted(facts.program, after, core, tuple(f"turn {tensor}" for tensor, _ in wanted), said)


def _copy(site: Site, tensor: str, dimension: int) -> str:
    """The name of a new tensor, which a nest in front of the stage fills."""
    old = site.tensors[tensor]
    name = site.fresh(f"{tensor}_turned")
    site.tensors[name] = Tensor(name, old.dtype, _order(old.shape, dimension), intermediate=True)
    axes = [Axis(site.fresh(f"q{d}"), Const(0), size) for d, size in enumerate(old.shape)]
    index = tuple(Var(a.name) for a in axes)
    copied = Assign(name, _order(index, dimension), "=", Read(tensor, index, old.dtype))
    site.before.append(nest(list(_order(tuple(axes), dimension)), (copied,)))
    return name


def _order(parts: tuple[T, ...], last: int) -> tuple[T, ...]:
    return (*parts[:last], *parts[last + 1 :], parts[last])
