"""Panels that hold the same elements of a tensor in the same order become one.

Two nests that read one operand in registers of the same shape pack it alike: the blocks of attention that a mask cuts
and those that it does not, the gate and the up product of an MLP. A panel of fewer tiles is the beginning of one of
more:

    K_panel[j_block, t, p, r, :16]  = K[j_block * 128 + (t * 4 + r) * 16 + e, p]     3 x 2 tiles
    K_panel_2[j_block_2, p, r, :16] = K[j_block_2 * 64 + r * 16 + e, p]              8 tiles

So do copies that convert alike: `V_f32[j_block, j, e] = f32(V[j_block * 128 + j, e])`, and in blocks of 64.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from autosched.codegen.analysis.access import at_lane, classify, flat_offset, plain
from autosched.codegen.tree.kernel import (
    Assign,
    Buffer,
    For,
    Kernel,
    Lane,
    Prefetch,
    Stmt,
    bodies,
    statements,
    with_bodies,
)
from autosched.codegen.tree.uses import places
from autosched.ir.value import Cast, Index, Read, Value, blank, is_plain, map_value
from autosched.logic import TRUE, Affine, Const, Int, Var, affine

OWNER = Var("thread")
"""The first subscript of panels of which each thread has its own."""


def share_panels(kernel: Kernel) -> Kernel:
    """The kernel with panels of its main function that hold the same filled once."""
    made = Counter(b.origin for b in kernel.buffers.values() if b.scope == "workspace" and b.origin is not None)
    if max(made.values(), default=0) < 2:  # most kernels
        return kernel
    while (pair := _pair(kernel)) is not None:
        kernel = _merged(kernel, *pair)
    return kernel


@dataclass(frozen=True)
class _Filling:
    """A loop nest that fills a panel, alone. `source` is what it copies, as read or as converted. `digits`: extents of
    its loops, and of lanes, with how far each moves in the panel and in the source, the nearest first; neighbours that
    move on from each other are one."""

    stmt: For
    panel: Buffer
    owned: bool
    source: tuple[str, Cast | None]
    start: tuple[tuple[tuple[str, int], ...], int]
    digits: tuple[tuple[int, int, int], ...]

    def holds(self, other: _Filling) -> bool:
        """Whether the other's panel is the beginning of this one."""
        mine, its = self.digits, other.digits
        same = (self.source, self.start, self.owned) == (other.source, other.start, other.owned)
        return same and mine[:-1] == its[:-1] and mine[-1][1:] == its[-1][1:] and mine[-1][0] >= its[-1][0]


def _pair(kernel: Kernel) -> tuple[_Filling, _Filling] | None:
    """Two fillings one behind the other in one body, in order, of which one holds what the other does."""
    every = list(statements(kernel.main.body))
    writes = Counter(s.buffer for s in every if isinstance(s, Assign))
    others = {name for s in every if not isinstance(s, Assign) for name, _ in places(s)}  # read by an instruction
    constant = {b.name for b in kernel.buffers.values() if b.scope == "global" and not writes[b.name]}
    for body in (kernel.main.body, *(b for s in every for b in bodies(s))):
        known: list[_Filling] = []
        for stmt in body:
            found = _filling(stmt, kernel, constant) if isinstance(stmt, For) else None
            if found is None or writes[found.panel.name] > 1 or found.panel.name in others:
                continue
            other = next((f for f in known if f.holds(found) or found.holds(f)), None)
            if other is not None:
                return other, found
            known.append(found)
    return None


def _filling(stmt: For, kernel: Kernel, constant: set[str]) -> _Filling | None:
    """The loop nest as one that copies into a panel a tensor that the kernel only reads; None where it is none."""
    loops: list[tuple[str, int, int]] = []
    inner: Stmt = stmt
    while isinstance(inner, For) and inner.kind in ("serial", "unrolled") and len(inner.body) == 1:
        if inner.lower != Const(0) or not isinstance(inner.upper, Const) or inner.upper.value % inner.step:
            return None
        loops.append((inner.var, inner.upper.value // inner.step, inner.step))
        (inner,) = inner.body
    if not isinstance(inner, Assign) or inner.valid != TRUE:
        return None
    converted = inner.value if isinstance(inner.value, Cast) else None
    read = inner.value if converted is None else converted.operand
    if not isinstance(read, Read):
        return None
    lane, panel = inner.lane or Lane("", 1), kernel.buffers[inner.buffer]
    if read.tensor not in constant or panel.scope != "workspace" or panel.origin is None or not is_plain(read.index):
        return None
    source = kernel.buffers[read.tensor]
    reached, target = classify(read.index, source.shape, lane), classify(inner.index, panel.shape, lane)
    owned = inner.index[0] == OWNER
    there = _of_lane_0(inner.index[owned:], replace(panel, shape=panel.shape[owned:]), lane)
    here = _of_lane_0(read.index, source, lane)
    apart_there = target.offsets is None or target.offsets != tuple(range(lane.width))
    if reached.offsets is None or apart_there or there is None or here is None:
        return None
    own = {name for name, _, _ in loops}
    if there.constant or any(name not in own for name in there.coefficients):
        return None
    group = next((e for e, o in enumerate(reached.offsets) if o != e), lane.width)
    apart = reached.offsets[group] if group < lane.width else 0
    if any(o != e // group * apart + e % group for e, o in enumerate(reached.offsets)):
        return None
    digits = [(group, 1, 1), (lane.width // group, group, apart)]
    digits += [(extent, step * there.coefficient(name), step * here.coefficient(name)) for name, extent, step in loops]
    joined = _joined(digits)
    outside = tuple(sorted((n, c) for n, c in here.coefficients.items() if n not in own))
    dense = joined is not None and prod(d[0] for d in joined) == prod(panel.shape[owned:])
    if joined is None or not dense:
        return None
    kind = None if converted is None else replace(converted, operand=blank(read.dtype))
    return _Filling(stmt, panel, owned, (read.tensor, kind), (outside, here.constant), joined)


def _common(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """How many of the last extents are the same, but for the first of all."""
    most = min(len(a), len(b)) - 1
    return next((k for k in range(most) if a[-1 - k] != b[-1 - k]), most)


def _of_lane_0(index: tuple[Index, ...], buffer: Buffer, lane: Lane) -> Affine | None:
    """The flat offset of lane 0 as a sum."""
    return affine(flat_offset(buffer, at_lane(plain(buffer.name, index), lane.var)))


def _joined(digits: list[tuple[int, int, int]]) -> tuple[tuple[int, int, int], ...] | None:
    """The digits by how far they move in the panel, joined where one goes on from the one before; None where they leave
    gaps."""
    found: list[tuple[int, int, int]] = []
    for extent, there, here in sorted((d for d in digits if d[0] > 1), key=lambda d: d[1]):
        reached = found[-1][0] * found[-1][1] if found else 1
        if there != reached:
            return None
        if found and here == found[-1][0] * found[-1][2]:
            found[-1] = (found[-1][0] * extent, *found[-1][1:])
        else:
            found.append((extent, there, here))
    return tuple(found)


def _merged(kernel: Kernel, first: _Filling, second: _Filling) -> Kernel:
    """The kernel with one panel in place of two, filled where the first was."""
    kept, gone = (first, second) if first.holds(second) else (second, first)
    owned = int(kept.owned)
    inside = _common(kept.panel.shape[owned:], gone.panel.shape[owned:])
    tail = kept.panel.shape[len(kept.panel.shape) - inside :]
    lead = prod(kept.panel.shape[owned:]) // prod(tail)
    panel = replace(kept.panel, shape=(*kept.panel.shape[:owned], lead, *tail))
    old = {f.panel.name: f.panel for f in (kept, gone)}

    def placed(name: str, index: tuple[Index, ...]) -> tuple[str, tuple[Int, ...]]:
        """Where an element lies now: tiles are counted in one subscript, the others stay."""
        shape, subscripts = old[name].shape, plain(name, index)
        cut = len(shape) - inside
        tile: Int = Const(0)
        for subscript, extent in zip(subscripts[owned:cut], shape[owned:cut], strict=True):
            tile = tile * extent + subscript
        return panel.name, (*subscripts[:owned], tile, *subscripts[cut:])

    def value(node: Value) -> Value:
        if not isinstance(node, Read) or node.tensor not in old:
            return node
        name, index = placed(node.tensor, node.index)
        return Read(name, index, node.dtype)

    def moved(stmt: Stmt) -> Iterator[Stmt]:
        match stmt:
            case Assign():
                name, index = placed(stmt.buffer, stmt.index) if stmt.buffer in old else (stmt.buffer, stmt.index)
                yield replace(stmt, buffer=name, index=index, value=map_value(stmt.value, value))
            case Prefetch() if stmt.buffer in old:
                name, index = placed(stmt.buffer, stmt.index)
                yield replace(stmt, buffer=name, index=index)
            case _:
                yield stmt

    def body(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """With the filling that is kept in the place of the first."""
        return tuple(kept.stmt if s is first.stmt else with_bodies(s, body) or s for s in stmts if s is not second.stmt)

    main = replace(kernel.main, body=body(kernel.main.body))
    names = tuple(n for n in main.buffers if n != gone.panel.name)
    buffers = {n: panel if n == panel.name else b for n, b in kernel.buffers.items() if n != gone.panel.name}
    return replace(kernel, main=replace(main, buffers=names), buffers=buffers).rewritten(moved)
