"""How much of an instruction's work a mapping uses, and which shape of the instruction would waste less."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod

from autosched.backends import BACKENDS
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Mapping

WORTH_SAYING = 0.95
"""Above this share of useful work nothing is said."""
_LITTLE = 1.1
"""A shape whose padding adds less than a tenth along an axis is one that would help."""


def padding_lines(
    mapping: Mapping, others: Iterable[Mapping] = (), known: Callable[[], Iterable[Intrinsic]] | None = None
) -> list[str]:
    """What is useful, what padding, along which axes; which shape would help; which of `others` (mappings of the same
    stage onto other instructions) wastes less. No lines for a mapping that wastes next to nothing. With `known`, a
    shape of an isa with a backend is told only where an instruction that it returns has it: such machines are made."""
    if mapping.utilisation >= WORTH_SAYING:
        return []
    sizes = {a.name: a.extent for a in mapping.intrinsic.program.stages[0].axes if a.name in mapping.padding}
    padded = {x: (n, whole) for x, (n, whole) in mapping.issued.items() if n != whole}
    where = ", ".join(f"{x}: {n:,} of {whole:,}" for x, (n, whole) in padded.items())
    name = mapping.intrinsic.name
    useful = mapping.utilisation
    lines = [f"{useful:.0%} of the work of {name} is useful, {1 - useful:.0%} padding ({where})"]
    better = {x: fitting(n, sizes[x]) for x, (n, _) in padded.items() if x in sizes}
    smaller = {x: size for x, size in better.items() if size < sizes[x]}
    if smaller:
        used = prod(n / (-(-n // better.get(x, 1)) * better.get(x, 1)) for x, (n, _) in padded.items())
        shape = " and ".join(f"{size} along {x} ({sizes[x]} here)" for x, size in smaller.items())
        there = None if known is None else _of_shape(mapping.intrinsic, smaller, known())
        if there is not None:
            lines.append(f"{there.name}, of {shape}, would do {used:.0%} useful work")
        elif known is None or mapping.intrinsic.isa not in BACKENDS:
            lines.append(f"an instruction of {shape} would do {used:.0%} useful work")
    rivals = [o for o in others if o.stage.name == mapping.stage.name and o.intrinsic.name != name]
    best = max(rivals, key=lambda o: o.utilisation, default=None)
    if best is not None and best.utilisation > mapping.utilisation * _LITTLE:
        lines.append(f"{best.intrinsic.name}, in this space too, does {best.utilisation:.0%} useful work")
    return lines


def _of_shape(like: Intrinsic, sizes: dict[str, int], known: Iterable[Intrinsic]) -> Intrinsic | None:
    """The first instruction of the same isa, scope and types whose shape differs in these sizes alone."""

    def said(of: Intrinsic) -> tuple[object, ...]:
        return of.isa, of.scope, {n: o.dtype for n, o in of.operands.items()}

    def shape(of: Intrinsic) -> dict[str, int]:
        return {a.name: a.extent for a in of.program.stages[0].axes}

    wanted = said(like), shape(like) | sizes
    return next((k for k in known if k.kind == "compute" and (said(k), shape(k)) == wanted), None)


def fitting(extent: int, size: int) -> int:
    """The largest part of `size` (halves, quarters, …, or the extent itself where that is smaller) that pads the extent
    by less than a tenth."""
    if extent < size:
        return extent
    while size > 1 and -(-extent // size) * size > _LITTLE * extent:
        size //= 2
    return size
