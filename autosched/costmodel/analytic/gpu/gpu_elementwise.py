"""The analytic clock of a team's part on a GPU: bytes under way against latency, issue slots, waves of blocks.

Memory delivers what warps have asked for within its latency (Little's law), so a core with few reads under way, or
between passes over a row, leaves bandwidth unused; arithmetic is issued beside that. Lanes that are no neighbours in
memory take a line of the core's port each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.costmodel.analytic.cpu.scalar_cycles import SLOW
from autosched.costmodel.analytic.gpu.gpu_clock import LAUNCH_SECONDS
from autosched.costmodel.analytic.gpu.gpu_traffic import L2_SHARE
from autosched.costmodel.analytic.gpu.rates import DRAM_SHARE
from autosched.ir.formula import Formula, Formulas
from autosched.ir.nodes import Axis, Stage
from autosched.ir.program import Program
from autosched.ir.value import (
    Arith,
    Call,
    Cast,
    Comparison,
    Literal,
    Read,
    Scalar,
    Select,
    Unary,
    Value,
    reads,
    walk,
)
from autosched.ir.variables import value_vars
from autosched.logic import Int, affine, free_vars
from autosched.machine.target import Target
from autosched.tiling.plans.plan import WarpCooperativePart
from autosched.tiling.plans.teams import elements, inner_axes, numbered, reducing, serial_elements, team_rows
from autosched.tiling.steps.scalar.results_per_thread import apiece_axes, apiece_decision, moves, slides
from autosched.tiling.steps.scalar.shared_along_row import kept_values
from autosched.tiling.steps.scalar.team_steps import OWN_REGISTERS, lane_reads

Columns = Mapping[str, npt.NDArray[np.int64]]
Column = npt.NDArray[np.float64]

SHUFFLE_CYCLES = 30.0  # of a shuffle and the operation behind it, each waiting for the one before (a round figure)
MEET_CYCLES = 100.0  # of a block's barrier with a store and a load of shared memory around it (a round figure)
BLOCK_CYCLES = 400.0  # of a block's start and end beside its work (a round figure)
DISPATCH_CYCLES = 140.0  # from one block of a core to the next: 524,288 blocks of a few reads took 318 us on an H200
QUEUE = 1.5  # how much longer a read takes where memory is busy than on an idle device (a round figure)
SMALL_FLOAT_OPERATIONS = 4.0
"""Of a conversion of an 8-bit float: shift, mask, unpacking at half the rate, f16 to f32 (sm_90a). One row by
4096x4096 of e4m3 took 8.4 us on an H200."""
LIBRARY_OPERATIONS = 80.0  # of a function that is computed in double
QUOTIENT_OPERATIONS = 10.0  # of a division or a root of floats that rounds as IEEE says
RECIPROCAL_OPERATIONS = 5.0  # of a division by what a row has in common (`codegen.lower.scalar.quotient`)
ISSUERS = 4.0  # schedulers of a core, each an instruction of a warp a cycle (H100 whitepaper)
TILED_LINES = 3.0  # of what passes through a tile in shared memory: read, written there, and read again
LINE_BYTES = 128.0  # that a core's port moves a cycle
UNHIDDEN = 0.15  # share of the shorter of two units' work that does not overlap with the longer


def team_terms(part: WarpCooperativePart, v: Columns, program: Program, target: Target) -> dict[str, Column]:
    """Seconds of each row: `compute` (issuing), `memory`, `l2`, `overhead` (launches) and `total`."""
    names, n = part.names, len(v[part.names("vector")])

    def column(name: str, default: float = 1.0) -> Column:
        return v[names(name)].astype(np.float64) if names(name) in v else np.full(n, default)

    vector, unroll, warps, split = (column(c) for c in ("vector", "unroll", "warps", "split"))
    held, chunks, blocks, threads = column("held", 0.0), column("chunks"), column("blocks"), column("threads_in_block")
    hold = held > 0
    lanes, cores = float(target.limits["warp_threads"]), float(target.cores)
    latency = {m.name: (m.latency_s or 0.0) * target.clock_hz for m in target.memories}
    near, trip = latency.get("L2", 250.0), latency.get("DRAM", 500.0) * QUEUE
    serial = float(serial_elements(part))
    passes = float(max(1, sum(bool(inner_axes(part, m)) for m in part.members)))
    if part.across:
        steps = np.ceil(chunks / split / unroll)
        rounds = np.where(hold, 1.0, steps)
        again = np.where(hold, 0.0, steps * (passes - 1.0))
        levels = np.log2(lanes) + np.log2(warps)
        waits = len(reducing(part)) * (levels * SHUFFLE_CYCLES + np.where(warps > 1, MEET_CYCLES, 0.0))
    else:
        rounds = np.ceil(np.ceil(serial / warps / split) / unroll)
        again = np.zeros(n)
        waits = np.where(((warps > 1) & (serial > 1)) | (column("tile", 0.0) > 0), MEET_CYCLES, 0.0)

    each = column("each")
    groups = float(elements(part.members[0].reduction[:-1])) if part.members[0].reduction else 1.0
    rounds = np.where(each > 1, groups, rounds)  # a thread asks at once for all that a line of a window needs
    words = float(np.mean([max(1.0, r.dtype.bits / 32) for r in lane_reads(part)] or [1.0]))
    fetched = vector * np.where(each > 1, each, unroll) * words
    registers = np.ceil((OWN_REGISTERS + np.where(hold, held, fetched) + vector * each) / 8.0) * 8.0
    at_once = np.minimum(
        np.floor(target.limits.get("warps_per_core", 64) * lanes / threads),
        np.floor(target.limits.get("registers_per_core", 65536) / (registers * threads)),
    )
    at_once = np.clip(at_once, 1.0, float(target.limits.get("blocks_per_core", 32)))

    tile = column("tile", 0.0)
    sides = {part.members[0].spatial[k].name: column(apiece_decision(part, k).name) for k in apiece_axes(part)}
    first, later, port = moved_bytes(part, vector, tile > 0, sides, program)
    written = written_bytes(part, program)
    moved = first + written + np.where(hold, 0.0, later)
    l2_bytes = float(next((m.bytes for m in target.memories if m.name == "L2"), 0))
    # What members read again is in L2 where all rows under way are.
    own_rows = column("rows") if part.across else np.ones(n)
    at_work = np.minimum(blocks, cores * at_once) * own_rows * (first + written) / max(1.0, float(team_rows(part)))
    lost = np.clip(1.0 - L2_SHARE * l2_bytes / np.maximum(at_work, 1.0), 0.0, 1.0) if part.across else np.zeros(n)
    from_dram = first + written + np.where(hold, 0.0, later) * lost
    if serial > 1.0:  # lines of a matrix of which a warp reads less than it is moved in
        size = max((r.dtype.bytes for r in lane_reads(part)), default=4)
        from_dram = from_dram * np.maximum(1.0, 0.5 + 0.5 * LINE_BYTES / (lanes * vector * size))
    dram = from_dram / _speed(target, "DRAM") / DRAM_SHARE
    l2 = moved / _speed(target, "L2")

    arithmetic = np.where(hold, _operations(part, True), _operations(part, False))
    arithmetic = arithmetic - converted_once(part, sides)
    operations = arithmetic + (first + later + written) / 4.0 / vector  # reads, writes and their addresses
    issue = operations / lanes / blocks
    busy = np.maximum(issue / ISSUERS, port / LINE_BYTES / blocks)
    alone = issue / np.minimum(ISSUERS, threads / lanes) + rounds * trip + again * near + waits + BLOCK_CYCLES
    full = np.floor(blocks / (cores * at_once))
    rest = np.ceil((blocks - full * cores * at_once) / cores)
    on_core = full * np.maximum(at_once * busy, alone) + np.where(rest > 0, np.maximum(rest * busy, alone), 0.0)
    on_core = np.maximum(on_core, DISPATCH_CYCLES * np.ceil(blocks / cores)) / target.clock_hz
    memory = np.maximum(dram, l2)
    launches = np.where(split > 1, 2.0, 1.0) * LAUNCH_SECONDS
    # Of a block by itself nothing is read while it computes.
    unhidden = np.maximum(UNHIDDEN, at_once**-1.5) if part.across else np.full(n, UNHIDDEN)
    total = np.maximum(on_core, memory) + unhidden * np.minimum(on_core, memory) + launches
    compute = busy * blocks / np.minimum(blocks, cores) / target.clock_hz
    return {"compute": compute, "memory": memory, "l2": l2, "overhead": launches, "total": total}


def shared_part(part: WarpCooperativePart, read: Read, sides: Mapping[str, Column]) -> Column | float:
    """How often a thread's results read an element, over how often one result at a time would: `sides` says how many
    results a thread has along each axis."""
    found: Column | float = 1.0
    for axis, count in sides.items():
        terms = slides(part, read, axis) if moves(read, axis) else 0
        found = found * (np.minimum(1.0, (count + terms - 1.0) / (count * terms)) if terms else 1.0 / count)
    return found


def converted_once(part: WarpCooperativePart, sides: Mapping[str, Column]) -> Column | float:
    """Conversions that several results of a thread share."""
    member = part.members[0]
    read = [v.operand for v in walk(member.assign.value) if isinstance(v, Cast) and isinstance(v.operand, Read)]
    return elements(member.axes) * sum(1.0 - shared_part(part, r, sides) for r in read)


def moved_bytes(
    part: WarpCooperativePart,
    vector: Column,
    tiled: npt.NDArray[np.bool_],
    sides: Mapping[str, Column],
    program: Program,
) -> tuple[Column, Column, Column]:
    """Bytes read into the cores by the first member that reads an element, by later ones, and over a core's port: of
    lanes that are no neighbours a line each. What a window reads again is in a core's cache."""
    first, later, port = np.zeros_like(vector), np.zeros_like(vector), np.zeros_like(vector)
    seen: set[str] = set()
    for member in part.members:
        for read in dict.fromkeys(reads(member.assign.value)):
            size = read.dtype.bits / 8
            own = float(elements([a for a in member.axes if a.name in _vars(read)])) * size
            everything = float(prod(program.tensors[read.tensor].extents)) * size
            stride = lane_stride(part, member, read)
            lines = 1.0 if stride <= 1 else min(LINE_BYTES / size, float(stride))
            if read.tensor in seen:
                later = later + min(own, everything)
            else:
                first = first + min(own, everything)
                seen.add(read.tensor)
            asked = float(elements(member.axes)) * size if stride else own
            shared = shared_part(part, read, sides) if member is part.members[0] else 1.0
            joined = np.gcd(vector.astype(np.int64), _aligned(member, read)).astype(np.float64)
            each = np.where(stride == 1, vector / joined, np.where(tiled, TILED_LINES, lines))
            port = port + asked * shared * each
        seen.add(member.assign.tensor)
    return first, later, port


def written_bytes(part: WarpCooperativePart, program: Program) -> float:
    """Bytes of the program's own tensors that the part writes."""
    found = {m.assign.tensor: m for m in part.members if not program.tensors[m.assign.tensor].intermediate}
    return sum(float(elements(m.spatial)) * m.assign.value.dtype.bits / 8 for m in found.values())


def lane_stride(part: WarpCooperativePart, member: Stage, read: Read) -> int:
    """Elements from one lane's to the next one's along the innermost axis of lanes, 0 where all read one."""
    inner = [a for a in inner_axes(part, member) if a.extent > 1]
    if not inner:
        return 0
    steps = _steps(member, read, inner[-1])
    return abs(steps)


def _steps(member: Stage, read: Read, axis: Axis) -> int:
    """How far one step along the axis is, in elements; a large number where no formula says."""
    total, below = 0, 1
    extents = _extents(member, read)
    for index, extent in zip(reversed(read.index), reversed(extents), strict=True):
        form = affine(index) if isinstance(index, Int) else None
        if form is None:
            return 1 << 20
        total += form.coefficient(axis.name) * below
        below *= extent
    return total


def _extents(member: Stage, read: Read) -> list[int]:
    """What the subscripts run over, as far as the member's loops say: a tensor is at least as large."""
    found = []
    for index in read.index:
        form = affine(index) if isinstance(index, Int) else None
        names = {} if form is None else form.coefficients
        found.append(1 + sum(abs(names.get(a.name, 0)) * (a.extent - 1) for a in member.axes))
    return found


def _aligned(member: Stage, read: Read) -> int:
    """Elements that a row of what is read is a multiple of."""
    return _extents(member, read)[-1] if read.index else 1


def _vars(read: Read) -> frozenset[str]:
    return frozenset[str]().union(*(free_vars(i) for i in read.index if isinstance(i, Int)))


def _operations(part: WarpCooperativePart, kept: bool) -> float:
    """Instructions of all members together; with `kept`, what two of them compute alike counts once."""
    seen: set[Value] = set()
    common = kept_values(part) if kept else {}
    total = 0.0
    for member in part.members:
        moving = {a.name for a in (*inner_axes(part, member), *member.reduction)}
        again = {v for v in common.get(member.name, ()) if numbered(part, member, v) in seen}
        seen |= {numbered(part, member, v) for v in common.get(member.name, ())}
        total += elements(member.axes) * (1.0 + _each(member.assign.value, moving, again, part.policy.formulas))
    return total


def _each(value: Value, moving: set[str], again: set[Value], formulas: Formulas) -> float:
    """Instructions of one element, without what a row has in common."""
    if value in again or not value_vars(value) & moving:
        return 0.0
    inside = sum(_each(v, moving, again, formulas) for v in _operands(value))
    match value:
        case Read() | Literal() | Scalar():
            return 0.0
        case Call(function, _, dtype) if function in SLOW:
            known = formulas.get((function, dtype.name))
            return inside + (_steps_of(known) if known else LIBRARY_OPERATIONS)
        case Arith("/", _, right, dtype) if dtype.is_float:
            return inside + (QUOTIENT_OPERATIONS if value_vars(right) & moving else RECIPROCAL_OPERATIONS)
        case Cast(operand, _, _) if operand.dtype.is_float and operand.dtype.bits == 8:
            return inside + SMALL_FLOAT_OPERATIONS
        case Call("sqrt", _, _) | Arith("/", _, _, _):
            return inside + QUOTIENT_OPERATIONS
        case _:
            return inside + 1.0


def _operands(value: Value) -> Iterator[Value]:
    match value:
        case Unary() | Cast():
            yield value.operand
        case Arith() | Comparison():
            yield from (value.left, value.right)
        case Call(_, args, _):
            yield from args
        case Select(_, then, other, _):
            yield from (then, other)


def _steps_of(formula: Formula) -> float:
    values = [*(step for _, step in formula.steps), formula.result]
    return float(sum(not isinstance(n, Read | Literal | Scalar) for v in values for n in walk(v)))


def _speed(target: Target, name: str) -> float:
    """Bytes a second of a level that all cores share."""
    return next((m.bandwidth_bytes_per_s for m in target.memories if m.name == name and m.bandwidth_bytes_per_s), 1e30)
