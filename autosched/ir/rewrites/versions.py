"""`separate_versions`: a result that is changed in place afterwards gets a tensor of its own until then.

    O[i] = 0                                     O_first[i] = 0
    for j: O[i] += exp(X[i, j] - M[i])           for j: O_first[i] += exp(X[i, j] - M[i])
    O[i] = O[i] / Z[i]                           O[i] = O_first[i] / Z[i]

So a tensor has one value, which is what the rewrites ask of what they move. Exact: no operation changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from autosched.ir.nodes import Assign, Guard, Loop, Statement, Tensor
from autosched.ir.program import Program
from autosched.ir.rewrites.names import FreeNames
from autosched.ir.rewrites.reuse import Place, places_of
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.ir.value import Arith, Read, Value, is_value, map_value, reads
from autosched.logic import Int, Var, free_vars

OPERATORS = {"+=": "+", "-=": "-", "*=": "*", "min=": "min", "max=": "max"}


@dataclass(frozen=True)
class Versions:
    """The program in which each tensor has one value, and what the new tensors stand for."""

    program: Program
    of: Mapping[str, str]

    def told(self, verdict: RewriteVerdict) -> RewriteVerdict:
        """A verdict on it, in the names of the program it came from."""
        if not self.of:
            return verdict
        first, text = dict(self.of), self.text
        stages = first | {old: f"{old}.2" for old in first.values()}
        reason = verdict.reason
        if reason is not None:
            shown = reason.counterexample
            told = None if shown is None else {k: _renamed(v, text) for k, v in shown.items()}
            stage, message = stages.get(reason.stage, reason.stage), text(reason.message)
            reason = replace(reason, stage=stage, message=message, counterexample=told)
        return replace(
            verdict,
            stages=tuple(stages.get(s, s) for s in verdict.stages),
            rescale={stages.get(s, s): text(f) for s, f in verdict.rescale.items()},
            deferred={stages.get(s, s): text(f) for s, f in verdict.deferred.items()},
            obligations=tuple(
                replace(o, name=text(o.name), claim=text(o.claim), given=tuple(map(text, o.given)))
                for o in verdict.obligations
            ),
            reason=reason,
        )


    def text(self, text: str) -> str:
        """A text that names tensors, in the names of the program it came from."""
        return re.sub(r"\w+", lambda m: self.of.get(m[0], m[0]), text)


def _renamed(shown: Any, text: Callable[[str], str]) -> Any:
    """Part of a counterexample."""
    if isinstance(shown, dict):
        return {text(k): v for k, v in shown.items()}
    return [_renamed(x, text) for x in shown] if isinstance(shown, list) else shown


def separate_versions(program: Program) -> Versions:
    """All reductions whose results are changed in place afterwards, with results of their own."""
    of: dict[str, str] = {}
    for name in program.tensors:
        found = _separated(program, name)
        if found is not None:
            new, program = found
            of[new] = name
    return Versions(program, of)


def _separated(program: Program, name: str) -> tuple[str, Program] | None:
    places = list(places_of(program.body))
    writers = [p for p in places if p.assign.tensor == name]
    if len(writers) < 2 or any(r.tensor == name for c in _conditions(program.body) for r in reads(c)):
        return None
    *earlier, last = writers
    if not _changes_in_place(last) or not any(_reduces(p) for p in earlier):
        return None
    first = earlier[0]
    if first.guarded or first.assign.op != "=" or not all(_same_box(program, p, last) for p in earlier):
        return None
    renamed: set[int] = set()
    for place in places:
        for read in (r for r in place.reads if r.tensor == name):
            if place in writers:
                if read.index != place.assign.index:
                    return None
            elif place.number < first.number:
                if any(_shared(place, w) for w in writers):
                    return None
            elif not _own_row(read, place, last):
                return None
        if first.number <= place.number < last.number:
            renamed.add(place.number)
    new = FreeNames(program)(f"{name}_first")
    tensors = {**program.tensors, new: replace(program.tensors[name], name=new, intermediate=True, const=False)}
    body = tuple(_rewritten(program.body, name, new, renamed, last, program.tensors[name]))
    after = replace(program, body=body, tensors=tensors)
    return (new, after) if after.inputs == program.inputs and after.outputs == program.outputs else None


def _conditions(body: tuple[Statement, ...]) -> Iterator[Value]:
    for statement in body:
        if isinstance(statement, Guard) and is_value(statement.condition):
            yield statement.condition
        if not isinstance(statement, Assign):
            yield from _conditions(statement.body)


def _changes_in_place(place: Place) -> bool:
    """Whether it makes something else of each element that it writes."""
    assign = place.assign
    names = {i.name for i in assign.index if isinstance(i, Var)}
    each = len(names) == len(assign.index) and names == {a.name for a in place.axes}
    own = any(r.tensor == assign.tensor for r in reads(assign.value))
    return each and not place.guarded and (own or assign.op in OPERATORS)


def _reduces(place: Place) -> bool:
    return bool({a.name for a in place.axes} - {i.name for i in place.assign.index if isinstance(i, Var)})


def _same_box(program: Program, place: Place, last: Place) -> bool:
    """Whether it writes the same elements, at the same place of loops that both are in."""
    own = {a.name: a for a in place.axes}
    theirs = {a.name: a for a in last.axes}
    shared = own.keys() & theirs.keys()
    if len(set(place.assign.index)) != len(place.assign.index):
        return False
    for mine, other in zip(place.assign.index, last.assign.index, strict=True):
        if not isinstance(mine, Var) or not isinstance(other, Var) or mine.name not in own:
            return False
        a, b = own[mine.name], theirs[other.name]
        known = free_vars(a.lower) | free_vars(a.upper)
        if (a.lower, a.upper) != (b.lower, b.upper) or not known <= set(program.symbolic):
            return False
        if mine != other and shared & {mine.name, other.name}:
            return False
    return shared <= {i.name for i in place.assign.index if isinstance(i, Var)}


def _shared(place: Place, other: Place) -> set[str]:
    return {a.name for a in place.axes} & {a.name for a in other.axes}


def _own_row(read: Read, place: Place, last: Place) -> bool:
    """Whether what is read is of the same iteration of the loops that both are in."""
    shared = _shared(place, last)
    return all(
        mine == other
        for mine, other in zip(read.index, last.assign.index, strict=True)
        if isinstance(other, Var) and other.name in shared
    )


def _rewritten(
    body: tuple[Statement, ...], name: str, new: str, renamed: set[int], last: Place, tensor: Tensor
) -> tuple[Statement, ...]:
    count = -1

    def earlier(value: Value) -> Value:
        return map_value(value, lambda v: replace(v, tensor=new) if isinstance(v, Read) and v.tensor == name else v)

    def visit(statement: Statement) -> Statement:
        nonlocal count
        if isinstance(statement, Loop | Guard):
            return replace(statement, body=tuple(visit(s) for s in statement.body))
        count += 1
        if count == last.number:
            value = earlier(statement.value)
            if statement.op != "=":
                value = Arith(OPERATORS[statement.op], Read(new, statement.index, tensor.dtype), value, tensor.dtype)
            return replace(statement, op="=", value=value)
        if count not in renamed:
            return statement
        index = tuple(i if isinstance(i, Int) else earlier(i) for i in statement.index)
        target = new if statement.tensor == name else statement.tensor
        return replace(statement, tensor=target, index=index, value=earlier(statement.value))

    return tuple(visit(s) for s in body)
