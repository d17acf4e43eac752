"""Conditions on the lane, analysed as bounds (a guard without the lane, and `lane < count`), lane by lane, in
groups."""

from __future__ import annotations

from dataclasses import dataclass

from autosched.codegen.analysis.access import classify, split_divisible
from autosched.codegen.tree.kernel import Lane
from autosched.logic import TRUE, And, Binary, Bool, Compare, Const, Expr, Int, Var, affine, all_of, evaluate, free_vars
from autosched.logic.expr import binary, compare
from autosched.logic.walk import children, map_compared, substitute_int

_MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


@dataclass(frozen=True, slots=True)
class Valid:
    """Lanes are valid where `guard` holds and the lane is below `count` (None: all lanes) and `rest` holds."""

    guard: Bool = TRUE
    count: Int | None = None
    rest: Bool = TRUE


def split_valid(valid: Bool, lane: str | None) -> Valid:
    """Split `valid` into guard and bound; other conditions on the lane stay in `rest`.

    >>> v = split_valid(all_of(Var("j") * 16 + Var("e") < 500, Var("i") < 3), "e")
    >>> print(v.guard, "|", v.count, "|", v.rest)
    i < 3 | 500 - j * 16 | True
    >>> print(split_valid(all_of(48 + Var("e") < 56, 47 + Var("e") < 56), "e").rest)
    True
    """
    parts = valid.parts if isinstance(valid, And) else (valid,)
    guards, rest, counts = list[Bool](), list[Bool](), list[Int]()
    for part in parts:
        if lane is None or lane not in free_vars(part):
            guards.append(part)
        elif (count := _upper_bound(part, lane)) is not None:
            _bound(counts, count)
        else:
            rest.append(part)
    # Two bounds would need a minimum; one stays a plain condition instead.
    rest += [Compare("<", Var(lane), c) for c in counts[1:]] if lane is not None else []
    return Valid(all_of(*guards), counts[0] if counts else None, all_of(*rest))


def _bound(counts: list[Int], count: Int) -> None:
    """Adds an upper bound to others: of two that are always as far apart the less."""
    for at, other in enumerate(counts):
        apart = affine(count - other)
        if apart is not None and not apart.coefficients:
            counts[at] = count if apart.constant < 0 else other
            return
    counts.append(count)


def lower_bound(valid: Bool, lane: str) -> Int | None:
    """`c` where `valid` says `c <= lane` and no more.

    >>> print(lower_bound(Var("x") * 8 + Var("e") - 1 >= 0, "e"))
    0 - x * 8 + 1
    """
    found = _compared(valid, lane)
    return found[1] if found is not None and found[0] in (">", ">=") else None


def _upper_bound(part: Bool, lane: str) -> Int | None:
    """`c` where `part` says `lane < c`."""
    found = _compared(part, lane)
    return found[1] if found is not None and found[0] in ("<", "<=") else None


def _compared(part: Bool, lane: str) -> tuple[str, Int] | None:
    """The operator and the bound `c` of `lane < c` or `c <= lane`; None where `part` is neither."""
    if not isinstance(part, Compare):
        return None
    op, left, right = part.op, part.left, part.right
    if lane in free_vars(right) and lane not in free_vars(left):
        op, left, right = _MIRROR[op], right, left
    form = affine(left)
    if form is None or form.coefficient(lane) != 1 or lane in free_vars(right):
        return None
    bound: Int = right + (1 if op in ("<=", ">") else 0)
    for name, factor in form.coefficients.items():
        if name != lane:
            bound = bound - Var(name) * factor if factor > 0 else bound + Var(name) * -factor
    return op, bound - form.constant if form.constant else bound


def repeats(node: Expr, lane: str, period: int) -> bool:
    """Whether `node` depends on the lane only through `lane % period`, or not at all.

    >>> repeats(Var("p") * 4 + Var("e") % 4 < 10, "e", 4), repeats(Var("e") < 3, "e", 4)
    (True, False)
    """
    if node == Var(lane) % period:
        return True
    return node != Var(lane) and all(repeats(part, lane, period) for part in children(node))


def lane_truth(condition: Bool, lane: str, width: int) -> list[bool]:
    """A condition of the lane alone, in each lane."""
    return [bool(evaluate(condition, {lane: e})) for e in range(width)]


def periodic(formula: Bool, lane: Lane, group: int) -> bool:
    """Whether the formula has the same value in lanes e and e % group, by the offsets of the sides that it compares.
    False where these depend on more than the lane, as `(4 * x + lane % 4) // 6`, which `repeats` recognises."""
    if not isinstance(formula, Compare):
        return all(periodic(p, lane, group) for p in children(formula) if isinstance(p, Bool))
    offsets = classify((formula.left - formula.right,), (1,), lane).offsets
    return offsets is not None and all(o == offsets[e % group] for e, o in enumerate(offsets))


def at_lanes(formula: Bool, lane: Lane, first: int, step: int) -> Bool:
    """The formula of lane `first + step * lane`."""

    def integer(node: Int) -> Int:
        if lane.var not in free_vars(node):
            return node
        match node:
            case Var(_):
                return node * step + first
            case Binary("//" | "%" as op, a, Const(divisor)) if (
                split := split_divisible(integer(a), divisor)
            ) is not None:
                quotient, rest = split
                return quotient + rest // divisor if op == "//" else rest % divisor
            case Binary(op, a, b):
                return binary(op, integer(a), integer(b))
            case _:
                return substitute_int(node, {lane.var: Var(lane.var) * step + first})

    return map_compared(formula, lambda c: compare(c.op, integer(c.left), integer(c.right)))
