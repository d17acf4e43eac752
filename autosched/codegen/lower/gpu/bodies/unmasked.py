"""Iterations of a loop in which a mask holds for every element are a loop of their own, which does not ask for it.

    for j_block in [0, n):                                for j_block in [0, min(2 * i_tile, n)):
        x = S[…] if 64 * j_block + e                          x = S[…]
            < 128 * i_tile + row + 1 else -inf        →   for j_block in [min(2 * i_tile, n), n):
                                                              x = S[…] if … else -inf
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from autosched.codegen.tree.kernel import Assign, Chosen, For, Stmt, bodies, with_bodies
from autosched.ir.value import Select, value_where, walk
from autosched.logic import (
    Affine,
    Binary,
    Bool,
    Compare,
    Const,
    Int,
    Var,
    ceil_div,
    conjuncts,
    free_vars,
    interval,
    maximum,
    minimum,
)
from autosched.logic.affine import Ranges


def unmasked_apart(loop: For) -> tuple[For, ...]:
    """The loop as up to three, of which the second has no conditions that hold wherever its body's own loops and lanes
    are; the loop alone where there is none."""
    found: dict[Bool, list[Affine | None]] = {}
    for condition, inside, ranges in _asked(loop.body, frozenset(), {}):
        found.setdefault(condition, []).append(_greatest(condition, inside, ranges))
    true: dict[Bool, None] = {}
    lower, upper = loop.lower, loop.upper
    for condition, sums in found.items():
        known = [s for s in sums if s is not None and s.coefficient(loop.var)]
        if len(known) < len(sums):
            continue
        true[condition] = None
        for greatest in (s for n, s in enumerate(known) if s not in known[:n]):
            factor = greatest.coefficient(loop.var)
            rest = replace(greatest, coefficients={n: c for n, c in greatest.coefficients.items() if n != loop.var})
            if factor > 0:
                upper = minimum(upper, (rest.scaled(-1).expression // factor) + 1)
            else:
                lower = maximum(lower, ceil_div(rest.expression, -factor))
    if not true or loop.step != 1:
        return (loop,)
    begin = lower if lower == loop.lower else minimum(lower, loop.upper)
    end = upper if upper == loop.upper else maximum(upper, begin)
    loops = [replace(loop, lower=begin, upper=end, body=tuple(_where(s, true) for s in loop.body))]
    if begin != loop.lower:
        loops.insert(0, replace(loop, upper=begin))
    if end != loop.upper:
        loops.append(replace(loop, lower=end))
    return tuple(loops)


def _asked(
    body: tuple[Stmt, ...], inside: frozenset[str], ranges: Ranges
) -> Iterator[tuple[Bool, frozenset[str], Ranges]]:
    """The conditions of choices; the variables of loops and lanes around each; and the least and greatest values of
    those whose bounds are numbers."""
    for stmt in body:
        match stmt:
            case For(var, Const(first), Const(behind)):
                yield from _asked(stmt.body, inside | {var}, {**ranges, var: (first, behind - 1)})
            case For(var) | Chosen(var):
                yield from _asked(stmt.body, inside | {var}, {n: r for n, r in ranges.items() if n != var})
            case Assign(lane=lane):
                own = {} if lane is None else {lane.var: (0, lane.width - 1)}
                every = {**ranges, **own}
                for node in walk(stmt.value):
                    if isinstance(node, Select) and isinstance(node.condition, Bool):
                        yield from ((part, inside | own.keys(), every) for part in conjuncts(node.condition))
            case _:
                for inner in bodies(stmt):
                    yield from _asked(inner, inside, ranges)


def _where(stmt: Stmt, true: dict[Bool, None]) -> Stmt:
    """A statement where these conditions hold."""
    if isinstance(stmt, Assign):
        return replace(stmt, value=value_where(stmt.value, true))
    return with_bodies(stmt, lambda inner: tuple(_where(s, true) for s in inner)) or stmt


def _greatest(condition: Bool, inside: frozenset[str], ranges: Ranges) -> Affine | None:
    """A sum of variables that are not `inside`, which is 0 or less only where a comparison holds whatever those are.
    None where there is none."""
    if not isinstance(condition, Compare) or condition.op not in ("<", "<=", ">", ">="):
        return None
    small, great = condition.left, condition.right
    if condition.op in (">", ">="):
        small, great = great, small
    total = Affine({}, 0 if condition.op.endswith("=") else 1)
    for sign, part in (*_parts(small, 1), *_parts(great, -1)):
        if free_vars(part) <= ranges.keys():
            total = total.plus(Affine({}, max(sign * end for end in interval(part, ranges))))
        elif isinstance(part, Var) and part.name not in inside:
            total = total.plus(Affine({part.name: sign}))
        else:
            return None
    return total


def _parts(node: Int, sign: int) -> Iterator[tuple[int, Int]]:
    """The summands of an expression, with what each is multiplied by."""
    match node:
        case Binary("+" | "-" as op, left, right):
            yield from _parts(left, sign)
            yield from _parts(right, sign if op == "+" else -sign)
        case Binary("*", left, Const(factor)):
            yield from _parts(left, sign * factor)
        case Binary("*", Const(factor), right):
            yield from _parts(right, sign * factor)
        case _:
            yield sign, node
