"""A rewritten program against the one it came from, and both against exact arithmetic (f64).

`both` runs the two programs with every tensor that they share made visible. `exact` is a member's sum in f64, from the
elements that the program of f32 has before the pass, with Σ |terms| and the greatest distance of exponents: what the
certificate's error bound is stated in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from autosched import ir
from autosched.ir.nodes import Assign, Guard, Loop, Statement
from autosched.ir.program import Program
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.ir.value import Arith, Call, Comparison, Literal, Select, Value, reads, walk

Arrays = dict[str, np.ndarray]
UNDERFLOWS = 104.0
"""exp(-x) is 0 in f32 from here on: greater distances add no error."""


_SHOWN: dict[str, Program] = {}


def visible(program: Program) -> Program:
    """The program with its intermediates as parameters: one for each text, which keeps what is proved of it."""
    text = str(program)
    if text not in _SHOWN:
        _SHOWN[text] = _visible(program)
    return _SHOWN[text]


def _visible(program: Program) -> Program:
    names = tuple(n for n, t in program.tensors.items() if t.intermediate)
    tensors = {n: replace(t, intermediate=False) for n, t in program.tensors.items()}
    return replace(program, tensors=tensors, parameters=(*program.parameters, *names))


def run(program: Program, data: Arrays, scalars: Mapping[str, Any]) -> Arrays:
    """All tensors that the program writes; those that are read before they are written start from 0."""
    shown = visible(program)
    given = {n: data[n].copy() for n in shown.inputs if n in data}
    for name in set(shown.inputs) - set(given):
        tensor = shown.tensors[name]
        given[name] = np.zeros(tensor.extents, tensor.dtype.numpy)
    with np.errstate(all="ignore"):
        return ir.run(shown, given, dict(scalars))


@dataclass(frozen=True)
class Exact:
    """`value` is a member's result in f64, `size` is Σ |terms|."""

    value: np.ndarray
    size: np.ndarray


def exact(program: Program, found: RewriteVerdict, name: str, data: Arrays, scalars: Mapping[str, Any],
          computed: Arrays) -> tuple[Exact, float]:  # fmt: skip
    """A sum in f64, and the greatest distance of an exponent's argument from 0, of elements `computed` before."""
    members = {s.assign.tensor for s in program.stages if s.name in found.stages}
    given = _before(program, members)
    body = tuple(s for x in program.body for s in _without(x, given))
    arrays = {n: np.asarray(computed[n] if n in given else data[n], np.float64) if program.tensors[n].dtype.is_float
              else data[n] for n in {*given, *data} & set(program.tensors)}  # fmt: skip
    cut = visible(replace(program, body=body))
    wide = {n: np.float64(v) for n, v in scalars.items()}

    def result(change: Callable[[Assign], Assign]) -> np.ndarray:
        text = str(replace(cut, body=tuple(_changed(s, name, change) for s in cut.body)))
        return run(_double(text), arrays, wide)[name]

    total = Exact(result(lambda a: a), np.abs(result(lambda a: replace(a, value=_abs(a.value)) if a.op != "=" else a)))
    distance = 0.0
    for stage in program.stages:
        if any(isinstance(v, Call) and v.function == "exp" for v in walk(stage.assign.value)):
            at = stage.assign.tensor
            if at in members and {r.tensor for r in reads(stage.assign.value)} & members:
                held = _farthest(cut, at, arrays, wide)
                distance = max(distance, held)
    return total, min(distance, UNDERFLOWS)


def _farthest(cut: Program, name: str, arrays: Arrays, scalars: Mapping[str, Any]) -> float:
    """The greatest finite argument of an exponential in a member's term."""

    def change(assign: Assign) -> Assign:
        if assign.op == "=":
            return assign
        value: Value | None = None
        for node in walk(assign.value):
            if isinstance(node, Call) and node.function == "exp":
                size = _abs(node.args[0])
                finite = Comparison("<", size, Literal(float("inf"), size.dtype))
                held = Select(finite, size, Literal(0.0, size.dtype), size.dtype)
                value = held if value is None else Arith("max", value, held, size.dtype)
        return replace(assign, op="max=", value=value or assign.value)

    text = str(replace(cut, body=tuple(_changed(s, name, change) for s in cut.body)))
    got = run(_double(text), arrays, scalars)[name]
    finite = got[np.isfinite(got)]
    return float(finite.max(initial=0.0))


@cache
def _double(text: str) -> Program:
    """The program of a text with f64 in place of its floats."""
    return ir.parse(re.sub(r"\b(f32|bf16|f16)\b", "f64", text))


def _abs(value: Value) -> Value:
    return Call("abs", (value,), value.dtype)


def _changed(statement: Statement, name: str, change: Callable[[Assign], Assign]) -> Statement:
    match statement:
        case Loop(axis, body):
            return Loop(axis, tuple(_changed(s, name, change) for s in body))
        case Guard(condition, body):
            return Guard(condition, tuple(_changed(s, name, change) for s in body))
    return change(statement) if statement.tensor == name else statement


def _before(program: Program, members: set[str]) -> set[str]:
    """Tensors that are computed, and need no member."""
    needs: dict[str, set[str]] = {}
    for stage in program.stages:
        start = () if stage.init is None else reads(stage.init)
        used = {r.tensor for r in (*stage.reads, *start)}
        needs.setdefault(stage.assign.tensor, set()).update(*(needs.get(u, set()) | {u} for u in used))
    return {n for n, below in needs.items() if n not in members and not below & members}


def _without(statement: Statement, names: set[str]) -> tuple[Statement, ...]:
    if isinstance(statement, Assign):
        return () if statement.tensor in names else (statement,)
    body = tuple(s for x in statement.body for s in _without(x, names))
    return (replace(statement, body=body),) if body else ()


def bound(found: RewriteVerdict, terms: int, blocks: int, distance: float) -> float:
    """The certificate's error, relative to Σ |terms|, read off its text."""
    assert found.error is not None
    match = re.fullmatch(r"\(n(?: \+ (\d+) b)?(?: \+ (\d+) x)? \+ (\d+)\) u Σ\|terms\|, u = 2\^-(\d+)", found.error)
    assert match is not None, found.error
    per_block, per_distance, once, digits = (int(g or 0) for g in match.groups())
    return float((terms + per_block * blocks + per_distance * distance + once) * 2.0**-digits)


def extent(program: Program, found: RewriteVerdict, name: str) -> tuple[int, int]:
    """Points of a member's reduction, at most; and those of its outermost axis."""
    (stage,) = (s for s in program.stages if s.name in found.stages and s.assign.tensor == name)
    lengths = []
    for axis in stage.reduction:
        try:
            lengths.append(axis.extent)
        except Exception:
            lengths.append(max(max(t.extents, default=1) for t in program.tensors.values()))
    return int(np.prod(lengths)), lengths[0]
