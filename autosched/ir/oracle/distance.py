"""May two accesses meet, and at what distance? A conservative test over affine indices, for the interpreter.

The question: at which differences `y - x` of shared loops can an access in iteration x and another in iteration y touch
one element. Answers are exact distances, "never", or unknown; unknown means run in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor, gcd

from autosched.ir.value import Index
from autosched.logic import Affine, Int, affine

Ranges = Mapping[str, tuple[int, int]]


def distances(
    first: tuple[Index, ...], second: tuple[Index, ...], shared: frozenset[str], fixed: frozenset[str], ranges: Ranges
) -> dict[str, int] | None:
    """Distances of the loops in `shared` that are forced when the two accesses meet; None where they never do.

    `fixed` loops have one value for both accesses; all others vary freely on each side. Absent names: unknown.
    """
    pairs = []
    for a, b in zip(first, second, strict=True):
        x, y = (affine(a), affine(b)) if isinstance(a, Int) and isinstance(b, Int) else (None, None)
        if x is not None and y is not None:
            pairs.append((x, y))
    known: dict[str, int] = {}
    progress = True
    while progress:
        progress = False
        for x, y in pairs:
            before = len(known)
            if _impossible(x, y, shared, fixed, ranges, known) or not _force(x, y, shared, fixed, ranges, known):
                return None
            progress = progress or len(known) > before
    return known


def _split(
    x: Affine, y: Affine, shared: frozenset[str], fixed: frozenset[str], known: Mapping[str, int]
) -> tuple[dict[str, int], list[tuple[str, int]], int]:
    """`index(second) - index(first)` as coefficients of unknown differences, free terms, and a constant."""
    moving: dict[str, int] = {}
    free: list[tuple[str, int]] = []
    constant = y.constant - x.constant
    for name in sorted(x.coefficients.keys() | y.coefficients.keys()):
        a, b = x.coefficient(name), y.coefficient(name)
        if name in fixed:
            if a != b:
                free.append((name, b - a))
        elif name in shared:
            if name in known:  # y = x + d: b*y - a*x = (b - a)*x + b*d
                constant += b * known[name]
                if a != b:
                    free.append((name, b - a))
            elif a == b:
                moving[name] = a
            else:
                free += [(name, b), (name, -a)]
        else:
            free += [(name, b)] * (b != 0) + [(name, -a)] * (a != 0)
    return moving, free, constant


def _impossible(
    x: Affine, y: Affine, shared: frozenset[str], fixed: frozenset[str], ranges: Ranges, known: Mapping[str, int]
) -> bool:
    """Whether bounds or divisibility exclude that the two indices are equal."""
    moving, free, constant = _split(x, y, shared, fixed, known)
    low = high = constant
    for name, c in moving.items():
        reach = abs(c) * (ranges[name][1] - ranges[name][0])
        low, high = low - reach, high + reach
    for name, c in free:
        ends = (c * ranges[name][0], c * ranges[name][1])
        low, high = low + min(ends), high + max(ends)
    if low > 0 or high < 0:
        return True
    step = gcd(*moving.values(), *(c for _, c in free))
    return constant != 0 if step == 0 else constant % step != 0


def _force(
    x: Affine, y: Affine, shared: frozenset[str], fixed: frozenset[str], ranges: Ranges, known: dict[str, int]
) -> bool:
    """Add the distances that this dimension forces to `known`; False where none is possible."""
    moving, free, constant = _split(x, y, shared, fixed, known)
    if not moving:
        return bool(free) or constant == 0
    spans = {name: abs(c) * (ranges[name][1] - ranges[name][0]) for name, c in moving.items()}
    low = constant + sum(min(c * ranges[n][0], c * ranges[n][1]) for n, c in free)
    high = constant + sum(max(c * ranges[n][0], c * ranges[n][1]) for n, c in free)
    for name, c in moving.items():
        # c * distance = -(everything else), which lies between these; often only one distance is left
        others = sum(spans.values()) - spans[name]
        least, most = sorted((Fraction(-high - others, c), Fraction(-low + others, c)))
        reach = ranges[name][1] - ranges[name][0]
        first, last = max(ceil(least), -reach), min(floor(most), reach)
        if first > last:
            return False
        if first == last:
            known[name] = first
            return True
    return True
