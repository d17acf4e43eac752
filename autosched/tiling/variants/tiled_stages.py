"""Programs with neighbouring stages in tiles of an axis that they share, so that what they hand on stays in a cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from autosched.ir.nodes import Assign, Axis, Loop, Stage, Statement
from autosched.ir.program import Program
from autosched.ir.rewrites.tiled_rows import tiled_rows
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.logic import Const, Var
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.matcher.match import match
from autosched.tiling.analysis.accesses import statements
from autosched.tiling.analysis.shared_axis import may_share, row_dimension
from autosched.tiling.analysis.windows import new_loops
from autosched.tiling.plans.epilogue import epilogue_chain
from autosched.tiling.variants.adapted import Variant

MULTIPLES = (48, 24, 12, 8, 4)
"""What a number of rows is rounded down to: multiples of many heights of register tiles."""


@dataclass(frozen=True)
class SharedRun:
    """Top-level statements from number `first` on that may share loops: their axis by its name in each, its length, and
    bytes of the intermediates that they hand on. `handed`: those of which a row is a subscript of one dimension,
    wherever they are touched, with that dimension."""

    first: int
    axes: tuple[str, ...]
    extent: int
    handed_bytes: int
    handed: Mapping[str, int]


def tiled_programs(
    program: Program, target: Target, intrinsics: Sequence[Intrinsic], numerics: str
) -> Iterator[Variant]:
    """A variant for tiles that fill half of each cache of a core's own, of the longest run of stages that share an axis
    and hand on more than the largest of these caches holds."""
    own = own_caches(target)
    run = None if program.symbolic or not own else shared_run(program, own[-1])
    if run is None:
        return
    stages = tuple(s.name for s in program.stages)
    rows = [min(size * run.extent // (2 * run.handed_bytes), run.extent // 2) for size in own]
    for tile in dict.fromkeys(_rounded(n) for n in rows if n > 0):
        after = tiled_rows(program, run.first, run.axes, tile, run.handed)
        loops = new_loops(program, after)
        names = [s.name for s in after.stages if s.reduction and not loops & {a.name for a in s.axes}]
        matches = tuple(match(after, intrinsics, numerics, names)) if names else ()
        proof = f"iterations of {run.axes[0]} are independent for all of these stages together"
        members = stages[run.first : run.first + len(run.axes)]
        verdict = RewriteVerdict(f"tiles of {tile}", run.axes[0], members, "bitwise", because=(proof,))
        yield Variant(after, matches, rewrites=(verdict,), loops=loops)


def own_caches(target: Target) -> list[int]:
    """Bytes of the caches of a core's own, the smallest first."""
    return sorted(m.bytes for m in target.memories if m.shared_by != "device" and m.name != "registers")


def _rounded(rows: int) -> int:
    return next((rows // n * n for n in MULTIPLES if rows >= n), rows)


def shared_run(program: Program, least_bytes: int) -> SharedRun | None:
    """The longest run of stages whose loops over one axis may run together. None where it hands on no more than
    `least_bytes`."""
    owners = _owners(program)
    best: SharedRun | None = None
    for first in range(len(program.body)):
        for axis, extent in _extents(program.body[first]).items():
            if extent < 2:
                continue
            axes = _run(program, owners, first, axis)
            if len(axes) > max(1, len(best.axes) if best else 1):
                handed = _handed_bytes(program, owners, first, len(axes))
                if handed > least_bytes and not _fused(owners, first, len(axes)):
                    best = SharedRun(first, axes, extent, handed, _by_rows(program, owners, first, axes))
    return best


def _run(program: Program, owners: Sequence[Stage | None], first: int, axis: str) -> tuple[str, ...]:
    """The axis in each statement of the run that begins with this one."""
    start = owners[first]
    if start is None:
        return ()
    shared = {start.name: axis}
    touched = dict(_dimensions(start, axis))
    for stage in owners[first + 1 :]:
        own = None if stage is None else _same(stage, touched)
        if stage is None or own is None or not may_share(program, shared | {stage.name: own}):
            break
        shared[stage.name] = own
        touched |= _dimensions(stage, own)
    return tuple(shared.values())


def _dimensions(stage: Stage, axis: str) -> Iterator[tuple[str, int]]:
    """The tensors that a stage touches, each with the dimension that is the axis."""
    for access in (stage.target, *stage.reads):
        for d, index in enumerate(access.index):
            if index == Var(axis):
                yield access.tensor, d


def _same(stage: Stage, touched: Mapping[str, int]) -> str | None:
    """The axis of a stage that stands where stages before it have the shared one: in what they hand on, or read too."""
    for read in stage.reads:
        index = read.index[touched[read.tensor]] if read.tensor in touched else None
        if isinstance(index, Var):
            return index.name
    return None


def _handed_bytes(program: Program, owners: Sequence[Stage | None], first: int, count: int) -> int:
    run = [s for s in owners[first : first + count] if s is not None]
    read = {r.tensor for s in run for r in s.reads}
    tensors = {s.assign.tensor: program.tensors[s.assign.tensor] for s in run if s.assign.tensor in read}
    return sum(prod(t.extents) * t.dtype.bits // 8 for t in tensors.values() if t.intermediate)


def _fused(owners: Sequence[Stage | None], first: int, count: int) -> bool:
    """Whether all stages of the run may be computed on each finished element of the first, in registers."""
    start, *behind = (s for s in owners[first : first + count] if s is not None)
    return len(epilogue_chain(start, behind)) == len(behind)


def _by_rows(program: Program, owners: Sequence[Stage | None], first: int, axes: Sequence[str]) -> dict[str, int]:
    """Intermediates that only the run touches, each by rows, with their dimension that is the axis."""
    run = [s for s in owners[first : first + len(axes)] if s is not None]
    own = {s.name: a for s, a in zip(run, axes, strict=True)}
    written = dict.fromkeys(s.assign.tensor for s in run if program.tensors[s.assign.tensor].intermediate)
    found = {t: row_dimension(own, program, t) for t in written}
    return {t: d for t, d in found.items() if d is not None}


def _owners(program: Program) -> list[Stage | None]:
    """For each top-level statement the stage that it is; None where it is of several, or a part of one."""
    stages = {s.name: s for s in program.stages}
    each = iter(statements(program))
    found: list[Stage | None] = []
    for stmt in program.body:
        names = {next(each).stage for _ in range(_assignments(stmt))}
        found.append(stages[names.pop()] if len(names) == 1 else None)
    once = [s.name for s in found if s is not None]
    return [s if s is not None and once.count(s.name) == 1 else None for s in found]


def _assignments(stmt: Statement) -> int:
    return 1 if isinstance(stmt, Assign) else sum(map(_assignments, stmt.body))


def _extents(stmt: Statement) -> dict[str, int]:
    """Loops of constant bounds that are nested around all of a statement, with their lengths."""
    found: dict[str, int] = {}
    while isinstance(stmt, Loop):
        if _constant(stmt.axis):
            found[stmt.axis.name] = stmt.axis.extent
        if len(stmt.body) != 1:
            break
        (stmt,) = stmt.body
    return found


def _constant(axis: Axis) -> bool:
    return isinstance(axis.lower, Const) and isinstance(axis.upper, Const)
