"""Walks over expressions: their parts, the names in them, and replacing names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from autosched.logic.expr import (
    And,
    Binary,
    Bool,
    Compare,
    Const,
    Expr,
    Int,
    IntLike,
    Not,
    Or,
    Var,
    Where,
    all_of,
    any_of,
    binary,
    compare,
    negate,
    to_int,
    where,
)


def children(node: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions."""
    match node:
        case Binary(_, a, b) | Compare(_, a, b):
            return (a, b)
        case Where(c, a, b):
            return (c, a, b)
        case And(parts) | Or(parts):
            return parts
        case Not(part):
            return (part,)
        case _:
            return ()


def free_vars(node: Expr) -> frozenset[str]:
    """The names of all variables in `node`, which remembers them."""
    try:
        return node._names
    except AttributeError:
        found = frozenset((node.name,)) if isinstance(node, Var) else _together(map(free_vars, children(node)))
        object.__setattr__(node, "_names", found)
        return found


def _together(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    """Their union: one of them where it has all."""
    found: frozenset[str] = frozenset()
    for each in sets:
        if not each <= found:
            found = each if found <= each else found | each
    return found


def substitute_int(node: Int, values: Mapping[str, IntLike]) -> Int:
    """`node` with variables replaced, simplified again.

    >>> print(substitute_int(Var("i") * 4 + Var("k"), {"k": 1, "i": Var("x") + 2}))
    (x + 2) * 4 + 1
    """
    if type(node) is Binary:  # these three are most nodes, and a match takes longer
        if free_vars(node).isdisjoint(values):  # the node itself, which others know already
            return node
        return binary(node.op, substitute_int(node.left, values), substitute_int(node.right, values))
    if type(node) is Const:
        return node
    if type(node) is Var:
        return to_int(values[node.name]) if node.name in values else node
    assert isinstance(node, Where)
    condition = substitute_bool(node.condition, values)
    return where(condition, substitute_int(node.then, values), substitute_int(node.other, values))


def substitute_bool(node: Bool, values: Mapping[str, IntLike]) -> Bool:
    """`substitute_int` for truth values."""
    return map_compared(
        node, lambda c: compare(c.op, substitute_int(c.left, values), substitute_int(c.right, values))
    )


def map_compared(node: Bool, to: Callable[[Compare], Bool]) -> Bool:
    """`node` with what `to` makes of each comparison in its place, simplified again."""
    match node:
        case Compare():
            return to(node)
        case And(parts):
            return all_of(*(map_compared(p, to) for p in parts))
        case Or(parts):
            return any_of(*(map_compared(p, to) for p in parts))
        case Not(part):
            return negate(map_compared(part, to))
        case _:
            return node
