"""Is a stage one of several partial sums that the program itself adds up? Then fewer bits may do within it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from autosched.errors import AutoschedError
from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.ir.value import Arith, Read, Value, reads
from autosched.ir.variables import index_vars
from autosched.tensorize.reduction.update import Update, update_of


def is_partial(program: Program, stage: Stage) -> bool:
    """Whether `stage` sums into a tensor of its own that only one other stage reads, to sum several elements of it,
    each once, with factors (the scale of a group) or without. A product of matrices behind it reads each several times.

    This is what a promotion leaves behind (`tensorize.adapters.promotion`), and what one may write by hand.
    """
    if stage.assign.tensor in program.partial_sums:
        return True
    update = _added_once(program, stage)
    return update is not None and any(a.upper != a.lower + 1 for a in update.axes_reduced)


def of_turns(body: Program, still: Collection[str]) -> frozenset[str]:
    """The tensors of a loop's body that each turn adds to the same elements, each once: a turn's `P` in
    `T[i, j] += P[i, j] * D[j]`, where nothing else in the body writes `T`. `still`: tensors whose windows are the same
    in several turns."""
    writes = Counter(s.assign.tensor for s in body.stages)
    added = {t for t in still if writes[t] == 1}
    found = ((s, _added_once(body, s)) for s in body.stages)
    return frozenset(s.assign.tensor for s, u in found if u and u.init is None and u.target.tensor in added)


def _added_once(program: Program, stage: Stage) -> Update | None:
    """What adds each sum of a stage, once, to others; None where something else reads them."""
    tensor = stage.assign.tensor
    if not program.tensors[tensor].intermediate or not stage.reduction:
        return None
    readers = [s for s in program.stages if any(r.tensor == tensor for r in s.reads) and s.assign.tensor != tensor]
    if len(readers) != 1 or readers[0].guards:  # a guard may leave all but one of them out
        return None
    try:
        update = update_of(readers[0])
    except AutoschedError:
        return None
    own = [f for f in _factors(update.term) if isinstance(f, Read) and f.tensor == tensor]
    if len(own) != 1 or sum(r.tensor == tensor for r in reads(update.term)) != 1:
        return None
    moving = {a.name for a in readers[0].axes if a.upper != a.lower + 1}
    return update if moving <= index_vars(own[0].index) and update.combine == "+" else None


def _factors(value: Value) -> list[Value]:
    if isinstance(value, Arith) and value.op == "*":
        return [*_factors(value.left), *_factors(value.right)]
    return [value]
