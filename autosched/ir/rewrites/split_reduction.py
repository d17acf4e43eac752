"""A proved rewrite: a reduction becomes partial reductions, and the reduction of those.

    C[i] = c                         for l: P[i, l] = 0
    for p in range(k):                 for p0, q: P[i, l] += e((p0 * 16 + l) * 4 + q)
        C[i] += e(p)                 C[i] = c
                                     for l: C[i] += P[i, l]

The partial results are elements of their own: lanes of an instruction, or the work of threads. Integers wrap, so their
sum is the same in any order; a float's may be taken so where the numerics level allows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from autosched.ir.nodes import Assign, Axis, Guard, Loop, Stage, Statement, Tensor
from autosched.ir.prepared import assigns
from autosched.ir.program import Program
from autosched.ir.rewrites.nesting import nested
from autosched.ir.rewrites.rewrite import Rewrite
from autosched.ir.value import Index, Literal, Read, is_value, map_value
from autosched.logic import Const, Int, Var
from autosched.logic.walk import substitute_bool, substitute_int


@dataclass(frozen=True)
class Cut:
    """How an axis is cut: `parts` partial results; with `inside` they take turns, `group` neighbours at a time, else
    each takes one stretch of the axis."""

    parts: int
    group: int = 1
    inside: bool = True


def split_reduction(program: Program, stage: Stage, axis: str, cut: Cut) -> Rewrite | None:
    """The program with `axis` of a sum cut; None where the stage is no sum that stands alone in its loops, with
    constant bounds and no guards, or the axis is too short to be cut."""
    by_name = {a.name: a for a in stage.axes}
    summed = by_name[axis]
    plain = all(isinstance(a.lower, Const) and isinstance(a.upper, Const) for a in stage.axes)
    simple = stage.assign.op == "+=" and stage.init is not None and not stage.guards and axis in _reductions(stage)
    if not plain or not simple or any(is_value(i) for i in stage.assign.index):
        return None
    if summed.extent < 2 * cut.parts * cut.group or not _alone(program, stage):
        return None
    names = _fresh(program)
    name = names(f"{stage.assign.tensor}_part")
    dtype = stage.assign.value.dtype
    part, turn, within = names(f"{axis}_l"), names(f"{axis}_t"), names(f"{axis}_q")
    turns = -(-summed.extent // (cut.parts * cut.group))
    lower = summed.lower
    at: Int
    if cut.inside:
        at = (Var(turn) * cut.parts + Var(part)) * cut.group + Var(within)
    else:
        at = (Var(part) * turns + Var(turn)) * cut.group + Var(within)
    if cut.group == 1:
        at = substitute_int(at, {within: Const(0)})
    first = {a: Var(names(f"{a.name}_p")) for a in stage.axes if a.name != axis}
    place = {a.name: v for a, v in first.items()} | {axis: at + lower}
    own = tuple(first[a] - a.lower for a in stage.spatial)
    target = Assign(name, (*own, Var(part)), "=", Literal(0.0 if dtype.is_float else 0, dtype))
    value = map_value(
        stage.assign.value, on_int=lambda i: substitute_int(i, place), on_bool=lambda b: substitute_bool(b, place)
    )
    update: Statement = Assign(name, target.index, "+=", value, stage.assign.location)
    if turns * cut.parts * cut.group != summed.extent:
        update = Guard(at < summed.extent, (update,))
    inner = [(first[a].name, a) for a in stage.reduction if a.name != axis]
    loops: list[Axis] = [Axis(n, a.lower, a.upper) for n, a in inner]
    loops.append(Axis(turn, Const(0), Const(turns)))
    if cut.group > 1:
        loops.append(Axis(within, Const(0), Const(cut.group)))
    body = (target, *nested(loops, update))
    spatial = [Axis(first[a].name, a.lower, a.upper) for a in stage.spatial]
    partial = nested([*spatial, Axis(part, Const(0), Const(cut.parts))], *body)
    again = names(f"{axis}_s")
    assert stage.init is not None
    index: tuple[Index, ...] = stage.assign.index
    total = Assign(
        stage.assign.tensor,
        index,
        "+=",
        Read(name, (*(Var(a.name) - a.lower for a in stage.spatial), Var(again)), dtype),
        stage.assign.location,
    )
    ends = nested(
        list(stage.spatial),
        Assign(stage.assign.tensor, index, "=", stage.init),
        Loop(Axis(again, Const(0), Const(cut.parts)), (total,)),
    )
    top = _tops(program, stage)
    tensors = {
        **program.tensors,
        name: Tensor(name, dtype, (*(Const(a.extent) for a in stage.spatial), Const(cut.parts)), intermediate=True),
    }
    after = replace(
        program, body=(*program.body[: top[0]], *partial, *ends, *program.body[top[-1] + 1 :]), tensors=tensors
    )
    how = "turns" if cut.inside else "stretches"
    proof = (
        f"{axis} = {at + lower} meets every value of {axis} once, over {cut.parts} parts in {how}",
        f"each part starts from 0, and {stage.assign.tensor} from what it started from",
        "the sum of the partial sums has the same terms",
    )
    return Rewrite(f"{stage.name} in {cut.parts} parts", program, after, proof)


def _reductions(stage: Stage) -> set[str]:
    return {a.name for a in stage.reduction}


def _alone(program: Program, stage: Stage) -> bool:
    """Whether neighbouring top-level statements hold the stage, start and loops, and nothing else."""
    tops = _tops(program, stage)
    written = [a.tensor for k in tops for a in assigns(program.body[k])]
    return tops == list(range(tops[0], tops[-1] + 1)) and written == [stage.assign.tensor] * 2


def _tops(program: Program, stage: Stage) -> list[int]:
    """The top-level statements that write the stage's tensor."""
    return [k for k, stmt in enumerate(program.body) if any(a.tensor == stage.assign.tensor for a in assigns(stmt))]


def _fresh(program: Program) -> Callable[[str], str]:
    taken = {a.name for s in program.stages for a in s.axes} | set(program.tensors) | set(program.scalars)
    taken |= {*program.sizes, *program.symbolic, *program.dtypes}

    def name(like: str) -> str:
        found = like
        while found in taken:
            found += "_"
        taken.add(found)
        return found

    return name
