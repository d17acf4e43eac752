"""Elementwise stages that read along one axis and write along another: a tile at a time, through shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from autosched.ir.value import Read, reads
from autosched.tiling.plans.plan import WarpCooperativePart
from autosched.tiling.plans.scalar_parts import side_by_side
from autosched.tiling.plans.teams import along_lanes, serial_elements
from autosched.tiling.steps.scalar.results_per_thread import moves

TILES = (0, 32, 64)
"""Elements of a tile along each of its two axes; 0: no tiles."""


@dataclass(frozen=True)
class TeamTranspose:
    """The numbers of two spatial axes: results lie side by side along `fast`, some operands along `slow`; `reads` are
    those, by the name of the member that reads them."""

    slow: int
    fast: int
    reads: tuple[tuple[str, Read], ...]


def team_transpose(part: WarpCooperativePart) -> TeamTranspose | None:
    """None where no operand lies across the results."""
    if part.across or serial_elements(part) > 1 or any(m.reduction for m in part.members):
        return None
    spatial = part.members[0].spatial
    fast = max((n for n, a in enumerate(spatial) if a.extent > 1), default=None)
    written = {m.assign.tensor for m in part.members}
    if fast is None or not all(side_by_side(m.target, m.spatial[fast].name) for m in part.members):
        return None
    found: dict[int, list[tuple[str, Read]]] = {}
    for member in part.members:
        names = [a.name for a in member.spatial]
        for read in dict.fromkeys(reads(member.assign.value)):
            loaded = along_lanes(part, member, read) and read.tensor not in written
            slow = next((n for n, name in enumerate(names) if n != fast and side_by_side(read, name)), None)
            if loaded and slow is not None and spatial[slow].extent > 1 and moves(read, names[fast]):
                found.setdefault(slow, []).append((member.name, read))
    if not found:
        return None
    slow = max(found, key=lambda n: len(found[n]))
    return TeamTranspose(slow, fast, tuple(found[slow]))
