"""`sum_by_group`: a sum over an axis that an address divides into groups, as a sum of each group and the sum of those.

    for k: Y[i] += A[i, k] * D[k // 32]        for g: for i: for q: G[g, i] += A[i, g * 32 + q] * D[g]
                                               for i: for g: Y[i] += G[g, i]

Groups come first, so that what lies side by side in Y does in G, too.
"""

from __future__ import annotations

from dataclasses import replace

from autosched.ir.nodes import Assign, Axis, Loop, Stage, Tensor
from autosched.ir.prepared import assigns
from autosched.ir.program import Program
from autosched.ir.rewrites.names import FreeNames
from autosched.ir.rewrites.nesting import nested, under
from autosched.ir.value import Literal, Read, map_value, substitute_condition
from autosched.logic import Binary, Const, Int, Var
from autosched.logic.walk import children, substitute_bool


def sum_by_group(program: Program, stage: Stage) -> tuple[Program, str] | None:
    """The program with the sum of each group in an intermediate, and that one's name; None where the stage is no sum
    over one axis that an address divides into groups, alone in its loops, of constant bounds."""
    if len(stage.reduction) != 1 or stage.init is None or stage.assign.op not in ("+=", "-="):
        return None
    axis, name, index = stage.reduction[0], stage.assign.tensor, stage.assign.index
    size = _group(stage, axis)
    boxed = all(a.lower == Const(0) and isinstance(a.upper, Const) for a in stage.spatial)
    once = sum(s.assign.tensor == name for s in program.stages) == 1
    if size is None or not boxed or not once or not all(isinstance(i, Var) for i in index):
        return None
    tops = [k for k, s in enumerate(program.body) if any(a.tensor == name for a in assigns(s))]
    together = tops == list(range(tops[0], tops[-1] + 1))
    if not together or {a.tensor for k in tops for a in assigns(program.body[k])} != {name}:
        return None
    return _split(program, stage, axis, size, tops)


def _group(stage: Stage, axis: Axis) -> int | None:
    """The greatest number that the axis is divided by in an address, where a group is no longer than the axis. Others
    divide what is inside of a group (two elements in a byte), and have to divide it."""
    found: set[int] = set()

    def visit(node: Int) -> Int:
        match node:
            case Binary("//", Var(name), Const(by)) if name == axis.name:
                found.add(by)
        for child in children(node):
            if isinstance(child, Int):
                visit(child)
        return node

    map_value(stage.assign.value, on_int=visit)
    if not found or axis.lower != Const(0) or not isinstance(axis.upper, Const):
        return None
    by = max(found)
    return by if 1 < by <= axis.extent and all(by % n == 0 for n in found) else None


def _split(program: Program, stage: Stage, axis: Axis, size: int, tops: list[int]) -> tuple[Program, str]:
    name = stage.assign.tensor
    names = FreeNames(program)
    part, group = names(f"{name}_group"), names(f"{axis.name}_group")
    within, again = names(axis.name), names(axis.name)
    index = tuple(i for i in stage.assign.index if isinstance(i, Int))
    own = {a.name: Var(names(a.name)) for a in stage.spatial}

    def here(node: Int) -> Int:
        match node:
            case Var(n) if n == axis.name:
                return Var(group) * size + Var(within)
            case Var(n):
                return own.get(n, node)
            case Binary("//", Var(n), Const(by)) if n == axis.name and by == size:
                return Var(group)
            case Binary("//", Var(n), Const(by)) if n == axis.name and size % by == 0:
                return Var(group) * (size // by) + Var(within) // by
            case Binary("%", Var(n), Const(by)) if n == axis.name and by == size:
                return Var(within)
            case Binary("%", Var(n), Const(by)) if n == axis.name and size % by == 0:
                return Var(within) % by
            case Binary(op, left, right):
                return Binary(op, here(left), here(right))
        return node

    to: dict[str, Int] = {axis.name: Var(group) * size + Var(within), **own}
    value = map_value(stage.assign.value, on_int=here, on_bool=lambda b: substitute_bool(b, to))
    at = (Var(group), *(own[i.name] for i in index if isinstance(i, Var)))
    groups = Const(-(-axis.extent // size))
    dtype = value.dtype
    shorter = [Var(group) * size + Var(within) < axis.upper] if axis.extent % size else []  # the last group
    guards = [*shorter, *(substitute_condition(g, to) for g in stage.guards)]
    update = under(guards, Assign(part, at, stage.assign.op, value))
    start = Assign(part, at, "=", Literal(0.0 if dtype.is_float else 0, dtype))
    loops = [Axis(group, Const(0), groups), *(Axis(own[a.name].name, a.lower, a.upper) for a in stage.spatial)]
    inner = nested(loops, start, Loop(Axis(within, Const(0), Const(size)), (update,)))
    assert stage.init is not None
    total = Assign(name, index, "+=", Read(part, (Var(again), *index), dtype))
    sums = Loop(Axis(again, Const(0), groups), (total,))
    outer = nested(stage.spatial, Assign(name, index, "=", stage.init), sums)
    extents = {Var(a.name): Const(a.extent) for a in stage.spatial}
    shape = (groups, *(extents[i] for i in index if isinstance(i, Var)))
    tensors = {**program.tensors, part: Tensor(part, dtype, shape, intermediate=True)}
    body = (*program.body[: tops[0]], *inner, *outer, *program.body[tops[-1] + 1 :])
    return replace(program, body=body, tensors=tensors), part
