"""Numbers that show that no factor takes a term from one reference to another, found by running the term.

A factor of a sum multiplies: then g(r, c) g(r', d) = g(r, d) g(r', c) for all references r, r' and data c, d. What
moves a maximum adds: then g(r, c) - g(r, d) = g(r', c) - g(r', d).

"""

from __future__ import annotations

from typing import Any

import numpy as np

from autosched.ir.nodes import Assign, Axis, Loop, Tensor
from autosched.ir.oracle.interpreter import run
from autosched.ir.printer import print_value
from autosched.ir.program import Program
from autosched.ir.rewrites.algebra.cases import is_infinite
from autosched.ir.rewrites.online.members import Cascade, Member
from autosched.ir.value import FromIndex, Literal, Read, Scalar, Select, Value, map_value, reads
from autosched.logic import Bool, Const, Var

TRIES = 400
APART = 1e-3
"""How far apart the two sides are, relatively, that count as different: far above the roundings of f32."""


def counterexample(cascade: Cascade, member: Member, apart: float = APART) -> dict[str, Any] | None:
    """`references` and `data`, two of each, and `values`, the term at each pair of them; None where none was found. A
    maximum is at least, and a minimum at most, what it is of."""
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
    drawn = {leaf: _draw(rng, leaf, kinds[leaf]) for leaf in leaves}
    for reference, (op, of) in extremes.items():
        at = _evaluated(of, leaves, drawn)
        moves = np.abs(drawn[reference][:, :1]).cumsum(0) * rng.integers(0, 2, (2, 1, TRIES))
        bound = at.max((0, 1)) + moves if op == "max" else at.min((0, 1)) - moves
        drawn[reference] = np.broadcast_to(bound, (2, 2, TRIES))
    g = _evaluated(value, leaves, drawn)
    with np.errstate(all="ignore"):
        if member.op == "+":
            left, right = g[0, 0] * g[1, 1], g[0, 1] * g[1, 0]
            size = np.maximum(np.abs(left), np.abs(right))
        else:
            left, right = g[0, 0] - g[0, 1], g[1, 0] - g[1, 1]
            size = np.abs(g).max((0, 1))
        differs = np.isfinite(g).all((0, 1)) & (np.abs(left - right) > apart * size) & (size > 1e-6)
    if not differs.any():
        return None
    first = int(np.argmax(differs))

    def shown(kind: str, at: int) -> dict[str, float]:
        which = (at, 0) if kind == "reference" else (0, at)
        return {print_value(leaf): float(drawn[leaf][(*which, first)]) for leaf in leaves if kinds[leaf] == kind}

    return {
        "references": [shown("reference", 0), shown("reference", 1)],
        "data": [shown("data", 0), shown("data", 1)],
        "values": g[:, :, first].tolist(),
    }


def _named(term: Value, leaves: dict[Value, str]) -> Value:
    """The term over tensors of numbers, one for each of its elements and scalars."""

    def named(node: Value) -> Value:
        if isinstance(node, Read | Scalar | FromIndex):
            return Read(leaves.setdefault(node, f"x{len(leaves)}"), (Var("q"),), node.dtype)
        return node

    return map_value(_unconditional(term), named)


def _evaluated(value: Value, leaves: dict[Value, str], drawn: dict[Value, Any]) -> Any:
    """The value at each reference, data and try, as the language computes it."""
    count = 4 * TRIES
    tensors = {n: Tensor(n, leaf.dtype, (Const(count),)) for leaf, n in leaves.items()}
    tensors["y"] = Tensor("y", value.dtype, (Const(count),))
    body = (Loop(Axis("q", Const(0), Const(count)), (Assign("y", (Var("q"),), "=", value),)),)
    program = Program("term", "", tensors, {}, tuple(tensors), {}, {}, body)
    used = {n for n in leaves.values() if n in program.inputs}
    arrays = {n: drawn[leaf].reshape(-1).astype(leaf.dtype.numpy) for leaf, n in leaves.items() if n in used}
    with np.errstate(all="ignore"):
        return np.asarray(run(program, arrays)["y"]).astype(np.float64).reshape(2, 2, TRIES)


def _unconditional(value: Value) -> Value:
    """The value where choices by axes alone are taken, on the side that is a finite number."""

    def visit(node: Value) -> Value:
        if isinstance(node, Select) and isinstance(node.condition, Bool):
            return node.other if is_infinite(node.then) or isinstance(node.then, Literal) else node.then
        return node

    return map_value(value, visit)


def _draw(rng: np.random.Generator, leaf: Value, kind: str) -> Any:
    """Numbers over references, data and tries: a reference's do not depend on the data's place, and so on."""
    shape = {"reference": (2, 1, TRIES), "data": (1, 2, TRIES)}.get(kind, (1, 1, TRIES))
    if leaf.dtype.is_integer:
        low, high = leaf.dtype.limits
        drawn = rng.integers(max(low, -8), min(high, 8), shape, endpoint=True).astype(np.float64)
    else:
        drawn = np.round(rng.normal(size=shape) * 2, rng.integers(0, 3))
    return np.broadcast_to(drawn.astype(leaf.dtype.numpy).astype(np.float64), (2, 2, TRIES))
