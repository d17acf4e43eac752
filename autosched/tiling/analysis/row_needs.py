"""Which rows of each stage a tile of rows of the last one needs.

    for y: H[y] = …                         row y of Y needs rows y - 1 to y + 1 of H: a tile of rows 8 to 15 needs
    for y, r: Y[y] += H[y + r - 1] …        rows 7 to 16, and computes them for itself

A run of stages may be computed tile by tile where each tile computes all that it reads of what the run hands on. That
holds for an intermediate that only the run touches, if its stages write it by rows (a subscript is their loop and
nothing else), and its readers read rows at a pace (`2 * y + r - 1`). Whatever else the run writes has to be of the
tile's own rows, and `shared_axis.may_share` proves that no two tiles meet in it. What a tile computes is computed in
the order of the program from the same numbers, so that results agree bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from autosched.ir.program import Program
from autosched.ir.rewrites.tiles.rows import ROW, HeldRows, RowRange, RowStage, TileRun
from autosched.logic import Const, Var, affine
from autosched.logic.walk import free_vars
from autosched.tiling.analysis.accesses import Statement, TensorAccess
from autosched.tiling.analysis.shared_axis import may_share


@dataclass
class RowNeeds:
    """Stages of a run, found from the last one back. `owners` has the statements of each stage. With `keep`, a tile
    takes from the one before what both need of an intermediate that one stage alone writes."""

    program: Program
    owners: Mapping[str, Sequence[Statement]]
    keep: bool = False
    members: dict[str, RowStage] = field(default_factory=dict)
    """The stages so far, the last one first."""
    read: dict[str, tuple[int, RowRange] | None] = field(default_factory=dict)
    """Which dimension of a tensor has rows, and which of them these stages read; None: it is not read by rows."""
    written: dict[str, HeldRows | None] = field(default_factory=dict)
    """What a tile computes of a tensor; None: it is not written by rows."""

    def start(self, stage: str, axis: str) -> None:
        """Begins with the last stage of a run, a tile of this loop of its own at a time."""
        self._add(stage, RowStage(axis), None)

    def extend(self, stage: str) -> bool:
        """Takes the stage in front of the run into it. Whether there is a loop of it whose rows are needed."""
        target = self._target(stage)
        if target in self.read:
            needed = self.read[target]
            axis = None if needed is None else self._row_axis(stage, target, needed[0])
            if needed is None or axis is None:
                return False
            dimension, rows = needed
            kept = self.keep and rows.again > 0 and self._touching(target) <= {*self.members, stage}
            kept = kept and target not in self.written
            self._add(stage, RowStage(axis, rows.new if kept else rows), HeldRows(dimension, rows, kept))
            return True
        axis = self._axis_beside(stage)
        if axis is None:
            return False
        self._add(stage, RowStage(axis), None)
        return True

    def run(self, first: int) -> TileRun | None:
        """The run, which begins with top-level statement number `first`. None where it is not proved that tiles may be
        computed each by itself."""
        members = dict(reversed(self.members.items()))
        buffers = {t: b for t, b in reversed(self.written.items()) if b is not None and self._is_own(t, b)}
        bounds = {stage: self._bounds(stage, m.axis) for stage, m in members.items()}
        if any(b is None for b in bounds.values()):
            return None
        last = bounds[next(iter(self.members))]
        exact = {s: m.axis for s, m in members.items() if m.rows == ROW and bounds[s] == last}
        shared = self.written.keys() - buffers.keys()
        for stage in members.keys() - exact.keys():
            if self._target(stage) not in buffers or shared & {a.tensor for a in self._accesses(stage)}:
                return None
        if not may_share(self.program, exact, buffers):
            return None
        return TileRun(first, tuple(members.values()), buffers)

    def _add(self, stage: str, member: RowStage, buffer: HeldRows | None) -> None:
        """Takes a stage into the run. Without `buffer` nothing so far reads what it writes."""
        target = self._target(stage)
        self.members[stage] = member
        self.written[target] = buffer if self.written.get(target, buffer) is not None else None
        for s in self.owners[stage]:
            ranges = _ranges(s)
            for access in s.accesses:
                found = _rows_of(access, member, ranges)
                if access.tensor != target:
                    self.read[access.tensor] = _both(self.read.get(access.tensor, found), found)
                elif found is None or buffer is None or found != (buffer.dimension, member.rows):
                    self.written[target] = None  # another row of what it writes itself

    def _row_axis(self, stage: str, tensor: str, dimension: int) -> str | None:
        """The loop of a stage that alone is the subscript of a dimension of what it writes, and stands in no other."""
        found = set()
        for access in self._accesses(stage):
            if access.write:
                index = access.index[dimension]
                if not isinstance(index, Var) or any(
                    i is None or (d != dimension and index.name in free_vars(i)) for d, i in enumerate(access.index)
                ):
                    return None
                found.add(index.name)
        return found.pop() if len(found) == 1 else None

    def _axis_beside(self, stage: str) -> str | None:
        """The loop of a stage that stands where stages behind it have their rows, in something that both read."""
        for access in self._accesses(stage):
            known = self.read.get(access.tensor)
            if known is not None and known[1] == ROW and isinstance(index := access.index[known[0]], Var):
                return index.name
        return None

    def _is_own(self, tensor: str, buffer: HeldRows) -> bool:
        """Whether an intermediate is the run's alone, and has no rows but those that its stages compute."""
        size = self.program.tensors[tensor].shape[buffer.dimension]
        writers = [s for s in self.members if self._target(s) == tensor]
        return (
            self.program.tensors[tensor].intermediate
            and self._touching(tensor) <= self.members.keys()
            and all(self._bounds(s, self.members[s].axis) == (Const(0), size) for s in writers)
        )

    def _bounds(self, stage: str, axis: str) -> tuple[Const, Const] | None:
        """The constant bounds of a loop around all statements of a stage."""
        found = set()
        for s in self.owners[stage]:
            own = [a for a in s.axes if a.name == axis]
            if len(own) != 1 or not isinstance(own[0].lower, Const) or not isinstance(own[0].upper, Const):
                return None
            found.add((own[0].lower, own[0].upper))
        return found.pop() if len(found) == 1 else None

    def _accesses(self, stage: str) -> Iterator[TensorAccess]:
        return (a for s in self.owners[stage] for a in s.accesses)

    def _target(self, stage: str) -> str:
        return next(a.tensor for a in self._accesses(stage) if a.write)

    def _touching(self, tensor: str) -> set[str]:
        """The stages that touch a tensor."""
        return {s for s in self.owners if any(a.tensor == tensor for a in self._accesses(s))}


def _ranges(statement: Statement) -> dict[str, tuple[int, int]]:
    """The least and the greatest value of loops whose bounds are constant."""
    return {
        a.name: (a.lower.value, a.upper.value - 1)
        for a in statement.axes
        if isinstance(a.lower, Const) and isinstance(a.upper, Const)
    }


def _rows_of(
    access: TensorAccess, member: RowStage, ranges: Mapping[str, tuple[int, int]]
) -> tuple[int, RowRange] | None:
    """The dimension of a tensor in which a stage touches rows, and which. None where it is not by rows."""
    own = [d for d, i in enumerate(access.index) if i is not None and member.axis in free_vars(i)]
    index = access.index[own[0]] if len(own) == 1 else None
    form = None if index is None else affine(index)
    if form is None or form.coefficients[member.axis] < 1:
        return None
    low = high = form.constant
    for name, step in form.coefficients.items():
        if name != member.axis:
            if name not in ranges:
                return None
            first, last = ranges[name]
            low, high = low + min(step * first, step * last), high + max(step * first, step * last)
    return own[0], member.rows.through(form.coefficients[member.axis], low, high)


def _both(one: tuple[int, RowRange] | None, other: tuple[int, RowRange] | None) -> tuple[int, RowRange] | None:
    """The rows of a tensor that two reads touch together."""
    if one is None or other is None or one[0] != other[0]:
        return None
    rows = one[1].joined(other[1])
    return None if rows is None else (one[0], rows)
