"""A proved rewrite: parts of an expression become intermediates of their own, computed in front of it.

    for i, j: E[i, j] = exp(f32(S[i, j] - M[i]) * a[0])

    for i, j: E_s[i, j] = S[i, j] - M[i]
    for i, j: E_s_2[i, j] = f32(E_s[i, j])
    for i, j: E_s_3[i, j] = E_s_2[i, j] * a[0]
    for i, j: E[i, j] = exp(E_s_3[i, j])

A machine of simple instructions computes each with one of them. No value changes by a bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from autosched.ir.nodes import Assign, Axis, Stage, Statement, Tensor
from autosched.ir.prepared import assigns
from autosched.ir.program import Program
from autosched.ir.rewrites.names import FreeNames
from autosched.ir.rewrites.nesting import nested
from autosched.ir.rewrites.rewrite import Rewrite
from autosched.ir.value import Read, Value, is_value, map_value, reads, substitute
from autosched.ir.variables import value_vars
from autosched.logic import Const, Var


def in_steps(program: Program, parts: Mapping[str, Sequence[Value]]) -> Rewrite | None:
    """The program with these parts of stages' values (by stage, those inside of others first) as intermediates over the
    axes that each changes with. Stages that cannot be taken apart stay; None where all do."""
    names = FreeNames(program)
    tensors, said = dict(program.tensors), list[str]()
    before: dict[int, list[Statement]] = {}
    changed: dict[int, Value] = {}
    for stage in program.stages:
        wanted = [p for p in parts.get(stage.name, ()) if _stands(program, stage, p)]
        if not wanted or len(wanted) != len(parts[stage.name]):
            continue
        place = _place(program, stage)
        known: list[tuple[Value, Value]] = []
        for part in wanted:
            own = [a for a in stage.axes if a.name in value_vars(part)]
            name = names(f"{stage.assign.tensor}_s")
            tensors[name] = Tensor(name, part.dtype, tuple(a.upper for a in own), intermediate=True)
            axes = [Axis(names(a.name), a.lower, a.upper) for a in own]
            moved = {a.name: Var(b.name) for a, b in zip(own, axes, strict=True)}
            value = substitute(_with(part, known), moved)
            made = Assign(name, tuple(Var(a.name) for a in axes), "=", value, stage.assign.location)
            before.setdefault(place, []).extend(nested(axes, made))
            known.append((part, Read(name, tuple(Var(a.name) for a in own), part.dtype)))
        changed[id(stage.assign)] = _with(stage.assign.value, known)
        said.append(f"{', '.join(str(r.tensor) for _, r in known if isinstance(r, Read))} in front of {stage.name}: "
                    "nothing that they are computed from changes before they are read")  # fmt: skip

    def visit(stmt: Statement) -> Statement:
        if isinstance(stmt, Assign):
            return replace(stmt, value=changed[id(stmt)]) if id(stmt) in changed else stmt
        return replace(stmt, body=tuple(map(visit, stmt.body)))

    if not said:
        return None
    body = [s for k, top in enumerate(program.body) for s in (*before.get(k, ()), visit(top))]
    return Rewrite("steps", program, replace(program, body=tuple(body), tensors=tensors, source=""), tuple(said))


def _with(value: Value, known: Sequence[tuple[Value, Value]]) -> Value:
    """The value with the largest parts that are known as their elements."""
    for part, element in reversed(known):
        value = map_value(value, partial(_exchanged, part, element))
    return value


def _exchanged(part: Value, element: Value, value: Value) -> Value:
    return element if value == part else value


def _place(program: Program, stage: Stage) -> int:
    """The top-level statement that holds a stage."""
    return next(k for k, top in enumerate(program.body) if any(a is stage.assign for a in assigns(top)))


def _stands(program: Program, stage: Stage, part: Value) -> bool:
    """Whether a part can be computed in front: over a box from 0, of elements that its statement does not write, under
    no condition."""
    own = [a for a in stage.axes if a.name in value_vars(part)]
    box = all(a.lower == Const(0) and isinstance(a.upper, Const) for a in own)
    written = {a.tensor for a in assigns(program.body[_place(program, stage)])}
    plain = all(not is_value(i) for r in reads(part) for i in r.index)
    return bool(own) and box and plain and not stage.guards and not written & {r.tensor for r in reads(part)}
