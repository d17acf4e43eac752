"""Several results a thread: where an operand does not move with an axis, results side by side along it share it.

    for x', o:  for j < 4:  Y[4 x' + j, o] += X[4 x' + j + s, o] * W[s, o]

One thread has four pixels of eight channels: it reads and converts W[s] once for them, and six elements of X for each
channel in place of twelve.
"""

from __future__ import annotations

from autosched.ir.value import Read, reads
from autosched.logic import Int, affine, free_vars
from autosched.tiling.plans.plan import WarpCooperativePart
from autosched.tiling.plans.teams import serial_elements
from autosched.tiling.step import Handle
from autosched.tiling.steps.scalar.handles import results_per_thread

SIDES = (1, 2, 4)
"""Results of a thread along one axis."""
MOST_RESULTS, MOST_SUMS = 8, 64
"""Results of a thread beside its vector's elements, and sums of a thread."""
MOST_TERMS = 32
"""Of a sum: all are written out."""
MOST_AXES = 2


def apiece_axes(part: WarpCooperativePart) -> tuple[int, ...]:
    """Numbers of the spatial axes along which a thread may have several results, outermost first."""
    terms = serial_elements(part)
    if part.across or terms == 1 or terms > MOST_TERMS or not part.members[0].reduction:
        return ()
    spatial = part.members[0].spatial
    wide = [n for n, a in enumerate(spatial) if a.extent > 1]
    found = [n for n in wide[:-1] if not all(moves(r, spatial[n].name) for r in _operands(part))]
    return tuple(found[-MOST_AXES:])


def sides(part: WarpCooperativePart, number: int) -> tuple[int, ...]:
    """How many results a thread may have along that axis."""
    extent = part.members[0].spatial[number].extent
    return tuple(s for s in SIDES if extent % s == 0)


def apiece_decision(part: WarpCooperativePart, number: int) -> Handle:
    """How many results along that spatial axis a thread computes."""
    return results_per_thread(part.members[0].spatial[number].name)


def slides(part: WarpCooperativePart, read: Read, axis: str) -> int:
    """Terms along which a read slides with an axis: `X[x + s]` with 3 values of s is 3; 1 where no term moves it so."""
    terms = {a.name: a.extent for a in part.members[0].reduction}
    for index in read.index:
        form = affine(index) if isinstance(index, Int) else None
        if form is not None and form.coefficient(axis):
            return max([1, *(n for name, n in terms.items() if form.coefficient(name) == form.coefficient(axis))])
    return 1


def _operands(part: WarpCooperativePart) -> list[Read]:
    written = {m.assign.tensor for m in part.members}
    return [r for r in dict.fromkeys(reads(part.members[0].assign.value)) if r.tensor not in written]


def moves(read: Read, axis: str) -> bool:
    """Whether a read is of another element at other values of the axis."""
    return any(axis in free_vars(i) for i in read.index if isinstance(i, Int))
