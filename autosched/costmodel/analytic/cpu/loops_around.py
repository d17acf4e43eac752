"""What tile loops around a nest add to sums over its positions, and how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from autosched.ir.nodes import Axis
from autosched.logic import Affine, evaluate, free_vars
from autosched.tiling.plans.nest import Nest

MOST_ITERATIONS = 1 << 14
"""Iterations of the loops around that are looked at."""
Shares = dict[tuple[int, ...], float]
"""Numbers to the share of iterations that add them."""


def added_around(nest: Nest, forms: Sequence[Affine], loops: Sequence[Axis]) -> Shares | None:
    """What names that are no axes of the nest add to each of several sums, in `loops` around it, the outermost first;
    None where these are sizes that are not known, or loops with too many iterations."""
    names = {n for form in forms for n in form.coefficients if n not in nest.by_name}
    needed = list[Axis]()
    wanted = set(names)
    for axis in reversed(loops):
        if axis.name in wanted:
            needed.insert(0, axis)
            wanted |= free_vars(axis.lower) | free_vars(axis.upper)
    if wanted != {a.name for a in needed}:
        return None
    found = Counter[tuple[int, ...]]()
    for count, at in enumerate(_iterations(needed, {})):
        if count == MOST_ITERATIONS:
            return None
        found[tuple(sum(form.coefficient(n) * at[n] for n in names) for form in forms)] += 1
    return {n: count / found.total() for n, count in found.items()}


def _iterations(axes: Sequence[Axis], at: dict[str, int]) -> Iterator[dict[str, int]]:
    if not axes:
        yield at
        return
    first, *rest = axes
    for k in range(int(evaluate(first.lower, at)), int(evaluate(first.upper, at))):
        yield from _iterations(rest, at | {first.name: k})
