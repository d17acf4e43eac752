"""Pairs of which the instruction, the program or both say in several statements what one could say: values in between
are temporaries of an instruction, and intermediates of a program."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from autosched.ir import parse
from autosched.ir.nodes import Assign, Axis, Loop, Statement, Tensor
from autosched.ir.program import Program
from autosched.ir.rewrites.reuse import Place, places_of
from autosched.ir.value import Read, Value, map_value, reads, substitute, walk
from autosched.logic import Const, Var

from .pairs import Pair, overwriting
from .plain import Memory, runner


def stepwise(rng: Random) -> Pair:
    """A pair of an instruction that overwrites its target, either or both in several statements."""
    made = overwriting(rng)
    whose = rng.choice(("both", "instruction", "program", "program"))
    semantics = in_steps(made.semantics, rng) if whose != "program" else made.semantics
    program = in_steps(made.program, rng) if whose != "instruction" else made.program
    return replace(made, semantics=semantics, program=program)


def in_steps(text: str, rng: Random) -> str:
    """The text with one value or more of its last statement in a tensor of its own; as it is where nothing can be."""
    try:
        program = parse(text)
    except Exception:  # what refuses it says so later
        return text
    for _ in range(rng.choice((1, 1, 2, 3))):
        program = _one_more(program, rng)
    return str(program)


def _one_more(program: Program, rng: Random) -> Program:
    place = rng.choice(list(places_of(program.body)))
    known = [a for a in place.axes if isinstance(a.lower, Const) and a.lower.value == 0 and isinstance(a.upper, Const)]
    inside = [v for v in walk(place.assign.value) if not isinstance(v, Read) and reads(v) and v.dtype.kind != "bool"]
    if place.guarded or len(known) != len(place.axes) or not inside or place.assign.op not in ("=", "+="):
        return program
    value = rng.choice(inside)
    name = next(f"T{k}" for k in range(9) if f"T{k}" not in program.tensors)
    axes = [Var(a.name) for a in place.axes]
    rng.shuffle(axes)
    extents = {a.name: a.extent for a in place.axes}
    tensor = Tensor(name, value.dtype, tuple(Const(extents[x.name]) for x in axes), intermediate=True)
    made = Assign(name, tuple(axes), "=", value)
    element = Read(name, tuple(axes), value.dtype)
    after = replace(place.assign, value=map_value(place.assign.value, lambda v: element if v == value else v))
    if rng.random() < 0.15:  # of another value
        made = replace(made, value=_other(value))
    held = any(program.tensors[r.tensor].intermediate for r in reads(made.value))
    body = _placed(program.body, place, made, after, not held and rng.random() < 0.5, name.lower())
    return replace(program, tensors={**program.tensors, name: tensor}, body=body, source="")


def _other(value: Value) -> Value:
    """The value with its elements exchanged, where it has two of one type."""
    elements = list(dict.fromkeys(reads(value)))
    if len(elements) < 2 or elements[0].dtype != elements[1].dtype:
        return value
    turned = {elements[0]: elements[1], elements[1]: elements[0]}
    return map_value(value, lambda v: turned.get(v, v) if isinstance(v, Read) else v)


def _placed(
    body: tuple[Statement, ...], place: Place, made: Assign, after: Assign, apart: bool, stem: str
) -> tuple[Statement, ...]:
    """Both statements in the place of the one; `apart`: the first in loops of its own."""

    def visit(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        found: list[Statement] = []
        for stmt in body:
            if isinstance(stmt, Assign):
                found += ([after] if apart else [made, after]) if stmt is place.assign else [stmt]
            else:
                found.append(replace(stmt, body=visit(stmt.body)))
        return tuple(found)

    inside = visit(body)
    if not apart:
        return inside
    named = {a.name: Var(f"{stem}{a.name}") for a in place.axes}
    first: Statement = Assign(
        made.tensor, tuple(named[i.name] for i in made.index if isinstance(i, Var)), "=", substitute(made.value, named)
    )
    for axis in reversed(place.axes):
        first = Loop(Axis(named[axis.name].name, axis.lower, axis.upper), (first,))
    top = next(k for k, s in enumerate(body) if any(p.assign is place.assign for p in places_of((s,))))
    return (*inside[:top], first, *inside[top:])


def differs(written: Program, read: Program, memory: Memory) -> bool:
    """Whether an instruction's statements, one after the other, do something else than the one made of them."""
    results: list[Memory] = []
    for program in (written, read):
        here = {name: dict(elements) for name, elements in memory.items()}
        for name, tensor in program.tensors.items():
            if tensor.intermediate:
                here[name] = {}
        runner(program)(here)
        results.append({name: here[name] for name in memory})
    return repr(results[0]) != repr(results[1])
