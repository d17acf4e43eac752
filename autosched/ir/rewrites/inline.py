"""A proved rewrite: an intermediate that is used once is computed where it is used, and never stored.

for i, j: T[i, j] = X[i, j] - M[i]        for i, j: Y[i, j] = tanh(X[i, j] - M[i])
for i, j: Y[i, j] = tanh(T[i, j])
"""

from __future__ import annotations

from dataclasses import replace

from autosched.ir.nodes import Assign, Guard, Statement
from autosched.ir.program import Program
from autosched.ir.rewrites.reuse import Place, each_place, places_of
from autosched.ir.rewrites.rewrite import Rewrite
from autosched.ir.value import Read, Value, is_value, map_value, reads
from autosched.logic import Const, Int, Var
from autosched.logic.walk import substitute_bool, substitute_int


def inline_intermediates(program: Program) -> Rewrite | None:
    """All intermediates that one statement fills and one other reads, each element once, filled in there; None where
    there are none."""
    before, done = program, list[str]()
    while found := _next(program):
        name, program = found
        done.append(name)
    if not done:
        return None
    names = ", ".join(done)
    proof = (f"each element of {names} is read once, and what it is computed from is still there",)
    return Rewrite(f"{names} inline", before, program, proof)


def _next(program: Program) -> tuple[str, Program] | None:
    places = list(places_of(program.body))
    for made in places:
        name = made.assign.tensor
        used = [p for p in places if any(r.tensor == name for r in p.reads)]
        writers = [p for p in places if p.assign.tensor == name]
        if program.tensors[name].intermediate and writers == [made] and len(used) == 1:
            (user,) = used
            index = _single(user, name)
            if index is not None and _fits(made, user) and _kept(made, user, places):
                after = _without(program, made, user, dict(zip(_names(made), index, strict=True)))
                return (name, after) if after.inputs == program.inputs else None
    return None


def inline_into(program: Program, assign: Assign, name: str) -> tuple[Program, Assign] | None:
    """The program in which one statement computes an intermediate where it reads that, and the statement then; None
    where another value might be there, or some would be computed twice. What others read of it stays."""
    places = list(places_of(program.body))
    user = next((p for p in places if p.assign is assign), None)
    writers = [p for p in places if p.assign.tensor == name]
    if user is None or len(writers) != 1 or not program.tensors[name].intermediate:
        return None
    (made,) = writers
    index = _single(user, name)
    if index is None or not _fits(made, user) or not _kept(made, user, places):
        return None
    at = dict(zip(_names(made), index, strict=True))
    others = any(r.tensor == name for p in places if p is not user for r in (*p.reads, *_tested(program.body)))
    after = _without(program, made, user, at, keep=others)
    if after.inputs != program.inputs:
        return None
    number = user.number - (0 if others else 1)
    return after, next(p.assign for p in places_of(after.body) if p.number == number)


def _tested(body: tuple[Statement, ...]) -> list[Read]:
    """What conditions of the program read."""
    found: list[Read] = []
    for stmt in body:
        if isinstance(stmt, Guard) and is_value(stmt.condition):
            found += reads(stmt.condition)
        if not isinstance(stmt, Assign):
            found += _tested(stmt.body)
    return found


def _names(place: Place) -> list[str]:
    return [i.name for i in place.assign.index if isinstance(i, Var)]


def _single(user: Place, name: str) -> tuple[Int, ...] | None:
    """The one subscript at which the statement's value reads the tensor, of formulas only."""
    found = {r.index for r in reads(user.assign.value) if r.tensor == name}
    if len(found) != 1 or any(r.tensor == name for r in user.reads if r not in reads(user.assign.value)):
        return None
    (index,) = found
    return tuple(i for i in index if isinstance(i, Int)) if not any(is_value(i) for i in index) else None


def _fits(made: Place, user: Place) -> bool:
    """Whether the first fills one element for each of its iterations, and the second has no more iterations."""
    names = _names(made)
    each = len(names) == len(made.assign.index) == len(set(names)) and set(names) == {a.name for a in made.axes}
    constant = all(isinstance(b, Const) for p in (made, user) for a in p.axes for b in (a.lower, a.upper))
    plain = made.assign.op == "=" and not made.guarded and not user.guarded and made.number < user.number
    return each and constant and plain and made.points == user.points


def _kept(made: Place, user: Place, places: list[Place]) -> bool:
    """Whether nothing that the value reads changes before it is used: it is not written later, and where it was written
    before, then in no loop around the one that the other is not in too."""
    sources = {r.tensor for r in made.reads}
    if any(is_value(i) for r in reads(made.assign.value) for i in r.index):
        return False
    for p in places:
        around = {a.name for a in p.axes} & {a.name for a in made.axes}
        moved = p.number >= made.number or not around <= {a.name for a in user.axes}
        if p.assign.tensor in sources and moved:
            return False
    return True


def _without(program: Program, made: Place, user: Place, at: dict[str, Int], keep: bool = False) -> Program:
    """The program with the value of `made` where `user` reads it; `keep`: and with `made` itself."""
    here = map_value(
        made.assign.value, on_int=lambda i: substitute_int(i, at), on_bool=lambda b: substitute_bool(b, at)
    )
    name = made.assign.tensor

    def filled(value: Value) -> Value:
        return map_value(value, lambda v: here if isinstance(v, Read) and v.tensor == name else v)

    def each(number: int, stmt: Assign) -> Assign | None:
        if number == made.number and not keep:
            return None
        return replace(stmt, value=filled(stmt.value)) if number == user.number else stmt

    tensors = {n: t for n, t in program.tensors.items() if keep or n != name}
    return replace(program, body=each_place(program.body, each), tensors=tensors, source="")
