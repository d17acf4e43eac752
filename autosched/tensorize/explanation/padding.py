"""How much of an instruction's work a mapping uses, and which shape of the instruction would waste less."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from autosched.tensorize.match_types import Mapping

WORTH_SAYING = 0.95
"""Above this share of useful work nothing is said."""
_LITTLE = 1.1
"""A shape whose padding adds less than a tenth along an axis is one that would help."""


def padding_lines(mapping: Mapping, others: Iterable[Mapping] = ()) -> list[str]:
    """What is useful, what padding, along which axes; which shape would help; which of `others` (mappings of the same
    stage onto other instructions) wastes less. No lines for a mapping that wastes next to nothing."""
    if mapping.utilisation >= WORTH_SAYING:
        return []
    sizes = {a.name: a.extent for a in mapping.intrinsic.program.stages[0].axes if a.name in mapping.padding}
    padded = {x: (n, whole) for x, (n, whole) in mapping.padding.items() if n != whole}
    where = ", ".join(f"{x}: {n:,} of {whole:,}" for x, (n, whole) in padded.items())
    name = mapping.intrinsic.name
    useful = mapping.utilisation
    lines = [f"{useful:.0%} of the work of {name} is useful, {1 - useful:.0%} padding ({where})"]
    better = {x: fitting(n, sizes[x]) for x, (n, _) in padded.items() if x in sizes}
    smaller = {x: size for x, size in better.items() if size < sizes[x]}
    if smaller:
        used = prod(n / (-(-n // better.get(x, 1)) * better.get(x, 1)) for x, (n, _) in padded.items())
        shape = " and ".join(f"{size} along {x} ({sizes[x]} here)" for x, size in smaller.items())
        lines.append(f"an instruction of {shape} would do {used:.0%} useful work")
    rivals = [o for o in others if o.stage.name == mapping.stage.name and o.intrinsic.name != name]
    best = max(rivals, key=lambda o: o.utilisation, default=None)
    if best is not None and best.utilisation > mapping.utilisation * _LITTLE:
        lines.append(f"{best.intrinsic.name}, in this space too, does {best.utilisation:.0%} useful work")
    return lines


def fitting(extent: int, size: int) -> int:
    """The largest part of `size` (halves, quarters, …, or the extent itself where that is smaller) that pads the extent
    by less than a tenth."""
    if extent < size:
        return extent
    while size > 1 and -(-extent // size) * size > _LITTLE * extent:
        size //= 2
    return size
