"""Numbers that show that no factor takes a term from one reference to another, found by running the term.

A factor of a sum multiplies: then g(r, c) g(r', d) = g(r, d) g(r', c) for all references r, r' and data c, d. What
moves a maximum adds: then g(r, c) - g(r, d) = g(r', c) - g(r', d).

"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.nodes import Assign, Axis, Loop, Tensor
from autosched.ir.oracle.interpreter import run
from autosched.ir.printer import print_value
from autosched.ir.program import Program
from autosched.ir.rewrites.algebra.cases import is_infinite
from autosched.ir.rewrites.algebra.normal import widens
from autosched.ir.rewrites.online.members import Cascade, Member
from autosched.ir.value import (
    Cast,
    Comparison,
    FromIndex,
    Literal,
    Logical,
    Read,
    Scalar,
    Select,
    Value,
    children,
    is_value,
    map_value,
    reads,
    with_children,
)
from autosched.logic import Bool, Const, Var, free_vars
from autosched.logic.readings import evaluate

TRIES = 400
APART = 1e-3
"""How far apart the two sides are, relatively, that count as different: far above the roundings of f32."""


def counterexample(cascade: Cascade, member: Member, apart: float = APART) -> dict[str, Any] | None:
    """`references` and `data`, two of each, `given`, what depends on neither, and `values`, the term at each pair of
    them; None where none was found. A maximum is at least, and a minimum at most, what it is of."""
    leaves: dict[Value, str] = {}
    value = _named(member.term, leaves)
    extremes = {
        m.target: (m.op, _named(m.term, leaves))
        for m in cascade.members
        if m.op != "+" and m.target in leaves and not any(r.tensor in cascade.names for r in reads(m.term))
    }
    kinds = {leaf: cascade.kind(leaf) for leaf in leaves}
    if not {"reference", "data"} <= set(kinds.values()):
        return None
    rng = np.random.default_rng(0)
    places = _places(rng, cascade, leaves)
    drawn = {leaf: _draw(rng, leaf, kinds[leaf], places) for leaf in leaves}
    for reference, (op, of) in extremes.items():
        at = _evaluated(of, leaves, drawn)
        moves = np.abs(drawn[reference][:, :1]).cumsum(0) * rng.integers(0, 2, (2, 1, TRIES))
        bound = at.max((0, 1)) + moves if op == "max" else at.min((0, 1)) - moves
        drawn[reference] = np.broadcast_to(_held(bound, reference.dtype), (2, 2, TRIES))
    g = _evaluated(value, leaves, drawn)
    differs = _differ(member.op, g, apart) & _differ(member.op, _evaluated(value, leaves, drawn, True), apart)
    if not differs.any():
        return None
    first = int(np.argmax(differs))

    def shown(kind: str, at: int) -> dict[str, float]:
        which = (at, 0) if kind == "reference" else (0, at)
        return {print_value(leaf): float(drawn[leaf][(*which, first)]) for leaf in leaves if kinds[leaf] == kind}

    neither = shown("neither", 0)
    return {
        "references": [shown("reference", 0), shown("reference", 1)],
        "data": [shown("data", 0), shown("data", 1)],
        **({"given": neither} if neither else {}),
        "values": g[:, :, first].tolist(),
    }


def _differ(op: str, g: Any, apart: float) -> Any:
    """In which tries no factor takes the terms at one reference to those at the other, by more than roundings make."""
    with np.errstate(all="ignore"):
        if op == "+":
            left, right = g[0, 0] * g[1, 1], g[0, 1] * g[1, 0]
            size = np.maximum(np.abs(left), np.abs(right))
        else:
            left, right = g[0, 0] - g[0, 1], g[1, 0] - g[1, 1]
            size = np.abs(g).max((0, 1))
        return np.isfinite(g).all((0, 1)) & (np.abs(left - right) > apart * size) & (size > 1e-6)


def _named(term: Value, leaves: dict[Value, str]) -> Value:
    """The term over tensors of numbers, one for each of its elements and scalars; what an address needs is none."""

    def named(node: Value) -> Value:
        if isinstance(node, Read | Scalar | FromIndex):
            return Read(leaves.setdefault(node, f"x{len(leaves)}"), (Var("q"),), node.dtype)
        return with_children(node, [named(child) for child in children(node)])

    return named(_unconditional(term))


def _places(rng: np.random.Generator, cascade: Cascade, leaves: Iterable[Value]) -> dict[str, Any]:
    """Values of the axes that are used as numbers: those that the cascade reduces over differ between the data."""
    names = sorted({n for leaf in leaves if isinstance(leaf, FromIndex) for n in free_vars(leaf.index)})
    bounds = {a.name: a for m in cascade.members for a in (*cascade.rows, *cascade.axes, *m.extra)}
    reduced = {a.name for a in cascade.axes}
    found = {}
    for name in names:
        axis = bounds.get(name)
        low, high = (0, 8)
        if axis is not None and isinstance(axis.lower, Const) and isinstance(axis.upper, Const) and axis.extent > 0:
            low, high = axis.lower.value, axis.upper.value
        shape = (1, 2, TRIES) if name in reduced else (1, 1, TRIES)
        found[name] = np.broadcast_to(rng.integers(low, high, shape), (2, 2, TRIES))
    return found


def _evaluated(value: Value, leaves: dict[Value, str], drawn: dict[Value, Any], wide: bool = False) -> Any:
    """The value at each reference, data and try, as the language computes it; `wide`: in f64 but for conversions."""
    count = 4 * TRIES
    tensors = {n: Tensor(n, _wider(leaf.dtype) if wide else leaf.dtype, (Const(count),)) for leaf, n in leaves.items()}
    value = _in_f64(value) if wide else value
    tensors["y"] = Tensor("y", value.dtype, (Const(count),))
    body = (Loop(Axis("q", Const(0), Const(count)), (Assign("y", (Var("q"),), "=", value),)),)
    program = Program("term", "", tensors, {}, tuple(tensors), {}, {}, body)
    used = {n for n in leaves.values() if n in program.inputs}
    arrays = {n: drawn[leaf].reshape(-1).astype(tensors[n].dtype.numpy) for leaf, n in leaves.items() if n in used}
    with np.errstate(all="ignore"):
        return np.asarray(run(program, arrays)["y"]).astype(np.float64).reshape(2, 2, TRIES)


def _wider(dtype: DType) -> DType:
    return DTYPES["f64"] if dtype.is_float else dtype


def _in_f64(value: Value) -> Value:
    """The value with floats of 64 bits; conversions that lose something round as they did."""
    match value:
        case Cast(operand, dtype, _) if operand.dtype.is_float and dtype.is_float:
            inner = _in_f64(operand)
            return inner if widens(operand.dtype, dtype) else Cast(Cast(inner, dtype), DTYPES["f64"])
        case Comparison() | Logical():
            return with_children(value, [_in_f64(v) for v in children(value)])
    return replace(with_children(value, [_in_f64(v) for v in children(value)]), dtype=_wider(value.dtype))


def _unconditional(value: Value) -> Value:
    """The value where choices by axes alone are taken, on the side that is a finite number; conditions on axes beside
    others hold."""

    def visit(node: Value) -> Value:
        match node:
            case Select(Bool(), then, other, _):
                return other if is_infinite(then) or isinstance(then, Literal) else then
            case Logical(op, parts, _) if any(isinstance(p, Bool) for p in parts):
                left = tuple(p for p in parts if not isinstance(p, Bool))
                if left and op != "not":
                    return left[0] if len(left) == 1 and is_value(left[0]) else Logical(op, left)
                zero = Literal(0, DTYPES["u8"])
                return Comparison("==" if op != "not" else "!=", zero, zero)
        return node

    return map_value(value, visit)


def _draw(rng: np.random.Generator, leaf: Value, kind: str, places: dict[str, Any]) -> Any:
    """Numbers over references, data and tries: a reference's do not depend on the data's place, and so on."""
    if isinstance(leaf, FromIndex):
        return np.broadcast_to(_held(evaluate(leaf.index, places), leaf.dtype), (2, 2, TRIES))
    shape = {"reference": (2, 1, TRIES), "data": (1, 2, TRIES)}.get(kind, (1, 1, TRIES))
    if leaf.dtype.is_integer:
        low, high = leaf.dtype.limits
        drawn = rng.integers(max(low, -8), min(high, 8), shape, endpoint=True).astype(np.float64)
    else:
        drawn = np.round(rng.normal(size=shape) * 2, rng.integers(0, 3))
    return np.broadcast_to(_held(drawn, leaf.dtype), (2, 2, TRIES))


def _held(numbers: Any, dtype: DType) -> Any:
    """As a tensor of that type holds them."""
    return np.asarray(numbers).astype(dtype.numpy).astype(np.float64)
