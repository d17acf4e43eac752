"""The order of the block loops, and which tile loop is innermost within a block."""

from __future__ import annotations

from itertools import combinations

from autosched.logic import Bool, Const, Int, Var, all_of, any_of
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.step_names import StepNames, blocked_axes
from autosched.tiling.step import Decision, Handle, Rule, Step

ORDERS = ((0, 1, 2), (0, 2, 1), (2, 0, 1), (2, 1, 0), (1, 0, 2), (1, 2, 0))
"""Permutations of (lanes block, row block, depth block), outermost first."""
ORDER = Handle("order")
INNER = Handle("inner")


def loop_order(nest: Nest, names: StepNames) -> Step:
    """`order` picks a permutation of ORDERS; `inner` 0 runs the row tiles innermost (the lanes panel is reused), 1 the
    lane tiles. Orders that differ only in loops of one block are the same: the first of them stands for all."""
    axes = blocked_axes(nest)
    known = [a.name if a else "-" for a in axes]
    labels = tuple(" ".join(known[k] for k in order if axes[k]) for order in ORDERS)
    trips: list[Int] = [Var(names(f"blocks_{a.name}")) if a else Const(1) for a in axes]
    order = Var(names(ORDER.name))
    present = tuple(k for k, a in enumerate(axes) if a is not None)
    first: dict[tuple[int, ...], int] = {}
    for number, permutation in enumerate(ORDERS):
        first.setdefault(tuple(k for k in permutation if k in present), number)
    domain = tuple(first.values())
    rules: list[Bool] = []
    for skipped in (*((k,) for k in present), *combinations(present, 2)):
        kept = [k for k in present if k not in skipped]
        seen: dict[tuple[int, ...], int] = {}
        for number in domain:
            seen.setdefault(tuple(k for k in ORDERS[number] if k in kept), number)
        single = all_of(*(trips[k].eq(1) for k in skipped))
        rules.append(single.implies(order.is_in(seen.values())))
    lanes, rows, _ = axes
    inert = {names(INNER.name): any_of(*(_one_tile(a.name, names) for a in (lanes, rows) if a))}
    if lanes is None or rows is None:
        inert[names(INNER.name)] = Const(0).eq(0)
    return Step(
        "loop order",
        (
            Decision(names(ORDER.name), domain, tuple(labels[k] for k in domain)),
            Decision(names(INNER.name), (0, 1), ("rows", "lanes")),
        ),
        (Rule(names(ORDER.name), all_of(*rules), "the same as an earlier order, for a loop of one block"),),
        {},
        inert,
    )


def _one_tile(axis: str, names: StepNames) -> Bool:
    """Whether a block of the axis holds one register tile."""
    return names.var(f"block_{axis}").eq(1) | names.var(f"tiles_{axis}").eq(1)
