"""What `tune` and `show` say of operands that a block of a GPU computes on the way."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from autosched.report.text import bytes_of
from autosched.tiling.plans.on_the_way import BLOCK
from autosched.tiling.plans.plan import Plan
from autosched.tiling.steps.gpu.operands.computed_slices import source_bytes


def computed_lines(plan: Plan) -> Iterator[str]:
    """A line for each of them: what memory has in its place, and what storing it would take."""
    for part in plan.tensor_parts:
        tensors = part.nest.mapping.program.tensors
        for operand, way in part.nest.computed.items():
            if way.place == BLOCK:
                made = tensors[way.tensor]
                read, stored = source_bytes(part.nest, operand), made.dtype.bytes
                elements = prod(made.extents)
                names = ", ".join(f"{n} ({tensors[n].dtype})" for n in dict.fromkeys(r.tensor for r in way.sources))
                each = f"{read:.3g} {'byte is' if read == 1 else 'bytes are'} read for an element of {stored}"
                yield f"reads    {names} for {way.tensor}: {each}; {bytes_of(elements * stored)} of it are not stored"
