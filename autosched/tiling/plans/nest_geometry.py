"""`NestGeometry`: the axes of one tensorized stage in units of the intrinsic, and where every element sits.

A nest axis is what is tiled: either one program axis outside the intrinsic (unit 1), or the program axes fused on one
intrinsic axis (unit: that axis's extent). Positions along it count elements; a program axis is recovered from the fused
position by division and remainder.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from autosched.ir.nodes import Stage
from autosched.ir.value import Index, Literal, Read, blank
from autosched.logic import Bool, Int, free_vars
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Mapping

SHORT_DEPTH = 32
"""Elements of a depth from which on nothing around it is cut into blocks: a block of it alone fills registers for long
enough, and what lies around such a depth is a window."""


@dataclass(frozen=True)
class NestAxis:
    """`extent` in elements (of the box that holds the axis's domain); `members` are (program axis, lower bound, box
    extent), outermost first; `intrinsic_axis` is None for an axis outside the intrinsic."""

    name: str
    extent: int
    unit: int
    reduction: bool
    members: tuple[tuple[str, int, int], ...]
    intrinsic_axis: str | None = None

    @property
    def units(self) -> int:
        """Intrinsic tiles along the axis, the last one perhaps partial."""
        return -(-self.extent // self.unit)

    @property
    def full_units(self) -> int:
        return self.extent // self.unit

    def program_values(self, position: Int) -> dict[str, Int]:
        """Each fused program axis as an expression of the position along this one."""
        values: dict[str, Int] = {}
        inner = self.extent
        for name, lower, extent in self.members:
            inner //= extent
            value = position if inner == 1 else position // inner
            if len(self.members) > 1 and name != self.members[0][0]:
                value = value % extent
            values[name] = value + lower
        return values

    def unit_constant_axes(self, unit: Int) -> dict[str, Int]:
        """The fused program axes along which the elements of a unit are at one place, as expressions of the unit's
        number: no lane need be asked then, as it would be of a position with its elements in."""
        values: dict[str, Int] = {}
        inner = self.extent
        for name, lower, extent in self.members:
            inner //= extent
            if inner % self.unit == 0:
                units = inner // self.unit
                value = unit if units == 1 else unit // units
                values[name] = (value if name == self.members[0][0] else value % extent) + lower
        return values


@dataclass(frozen=True)
class NestGeometry:
    """A stage on an intrinsic. `guard` is the stage's guards; `bounds` is what keeps a loop that is not rectangular
    inside its bounds."""

    stage: Stage
    intrinsic: Intrinsic
    mapping: Mapping
    axes: tuple[NestAxis, ...]
    guard: Bool
    bounds: Bool

    @cached_property
    def by_name(self) -> dict[str, NestAxis]:
        return {a.name: a for a in self.axes}

    @cached_property
    def spatial(self) -> tuple[NestAxis, ...]:
        return tuple(a for a in self.axes if not a.reduction)

    @cached_property
    def reduction(self) -> tuple[NestAxis, ...]:
        return tuple(a for a in self.axes if a.reduction)

    @cached_property
    def lanes(self) -> tuple[NestAxis, ...]:
        """Spatial axes on the intrinsic."""
        return tuple(a for a in self.spatial if a.intrinsic_axis)

    @cached_property
    def rows(self) -> tuple[NestAxis, ...]:
        """Spatial axes outside the intrinsic, in program order."""
        return tuple(a for a in self.spatial if not a.intrinsic_axis)

    @cached_property
    def depth(self) -> NestAxis | None:
        """The reduction axis that is innermost and unrolled: the intrinsic's last, else the program's last."""
        on = [a for a in self.reduction if a.intrinsic_axis]
        return on[-1] if on else self.reduction[-1] if self.reduction else None

    @cached_property
    def blocked_reduction(self) -> NestAxis | None:
        """The reduction axis that is cut into cache blocks on a CPU: the depth, or, where that is short (a line of a
        window, channels first), the longest of those around it (the channels)."""
        depth = self.depth
        if depth is None or depth.extent >= SHORT_DEPTH:
            return depth
        return max((depth, *self.reduction), key=lambda a: a.extent)

    @cached_property
    def members(self) -> dict[str, NestAxis]:
        """Program axis to the nest axis that carries it."""
        return {m: a for a in self.axes for m, _, _ in a.members}

    def axes_of(self, read: Read) -> tuple[NestAxis, ...]:
        """The nest axes that an element's address depends on, in nest order."""
        used = {
            self.members[v].name for i in read.index if isinstance(i, Int) for v in free_vars(i) if v in self.members
        }
        return tuple(a for a in self.axes if a.name in used)

    def operand_axes(self, operand: str) -> tuple[NestAxis, ...]:
        """The axes that an operand's register varies with: those of its element's address, a reduction axis of the
        intrinsic that no program axis fills (all but its first element must be a fill), any axis of the intrinsic of an
        operand that the instruction takes from shared memory (it reads all of it there, though all may be the same),
        and one past whose end the operand has to hold a fill, though the element is the same all along it."""
        return self._operand_axes[operand]

    @cached_property
    def _operand_axes(self) -> dict[str, tuple[NestAxis, ...]]:
        found = {}
        taken = self.intrinsic.shared_memory
        for operand, read in self.mapping.operands.items():
            index = self.intrinsic.windows.get(operand, ())
            own, has = self.axes_of(read), set(self.intrinsic.operand_axes[operand]) | moving(index)
            found[operand] = tuple(
                a
                for a in self.axes
                if a in own
                or (a.intrinsic_axis in has and (operand in taken or (a.reduction and not a.members)))
                or (a.intrinsic_axis in has and a.reduction and self._fills(operand, a))
            )
        return found

    def _fills(self, operand: str, axis: NestAxis) -> bool:
        """Whether the operand is needed to say where the axis ends: no set of others that adds nothing does."""
        padded = self.mapping.padded.get(axis.intrinsic_axis or "", ())
        if operand not in padded or not axis.extent % axis.unit:
            return False
        moved = {o for o in padded if axis in self.axes_of(self.mapping.operands[o])}
        return not any(moved.issuperset(s) for s in self.mapping.neutral)

    def fill(self, operand: str) -> Literal:
        """What stands in an operand where the program has no element."""
        dtype = self.intrinsic.operands[operand].dtype
        return self.mapping.fills.get(operand) or blank(dtype)

    @cached_property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """The inclusive range of each program axis in the box that holds its domain, and of the numbers of elements
        that data select."""
        operands, selected = self.intrinsic.operands, self.intrinsic.selected
        numbers = {name: (0, operands[operand].shape[d] - 1) for name, (operand, d) in selected.items()}
        return numbers | {m: (low, low + extent - 1) for axis in self.axes for m, low, extent in axis.members}

    def at(self, positions: dict[str, Int]) -> dict[str, Int]:
        """Program axes as expressions, from a position along each nest axis."""
        values: dict[str, Int] = {}
        for axis in self.axes:
            values |= axis.program_values(positions[axis.name])
        return values | {n: positions[n] for n in self.intrinsic.selected if n in positions}

    @cached_property
    def points(self) -> int:
        """Multiply-adds of the padded box: what the intrinsic issues in all, times its own points."""
        return prod(a.units * a.unit for a in self.axes)


def moving(index: tuple[Index, ...]) -> frozenset[str]:
    """The axes of the instruction that an index depends on."""
    return frozenset(n for part in index if isinstance(part, Int) for n in free_vars(part))
