"""What the register tiles of a nest take on one core of a CPU, in cycles: issuing their instructions, loading operands,
starting and finishing tiles. What the caches move comes on top (`analytic.clock`)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import gcd, prod

import numpy as np
import numpy.typing as npt

from autosched.costmodel.analytic.cpu.tlb import page_bytes, pages_apart
from autosched.logic import TRUE, Var, evaluate
from autosched.machine.target import Target
from autosched.tiling.analysis.nontemporal import LINE_BYTES
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.nest import Nest
from autosched.tiling.space.values import rows_of
from autosched.tiling.steps import (
    APART,
    DIRECT,
    EACH,
    INTERLEAVED,
    PADDED,
    PANELS,
    StepNames,
    apart,
    conditions,
    interleave,
    offered,
    tiled_axes,
    vectorises,
)
from autosched.tiling.steps.common.computed import loaded, operations, sources
from autosched.tiling.steps.common.layout import (
    crossings,
    even_rows,
    flat_offset,
    line_crossings,
    row_stride,
    rows_apart,
    rows_held,
    runs,
)
from autosched.tiling.steps.cpu.by_lane import asked_by_lane, copied_by_lane
from autosched.tiling.steps.cpu.computed_once import ONCE, once_of, sharing_axis
from autosched.tiling.steps.cpu.fills import copied_offset
from autosched.tiling.steps.cpu.interleave import interleaved_offset
from autosched.tiling.steps.cpu.register_transpose import store_cycles, transposed_row

# Constants of the code generator, not of a machine: what its code costs beyond the instructions it is made for.
TILE_CYCLES = 24.0  # starting and finishing a register tile: branches, address set-up, the pipeline filling
TILE_LEAST = 6.0  # what is left of it where the next tile starts before this one ends
WINDOW = 448.0  # operations that a core looks ahead (Zen 5's retire queue): short tiles hide each other's latency
GUARD_CYCLES = 0.5  # a load behind a branch (Zen 5, depthwise: 0.5 to 0.75 rank best)
GUARD_OUTSIDE = 0.4  # part of it that is left where the condition does not change along the depth: it is asked outside
ELEMENT_CYCLES = 1.0  # one element of a register filled or stored element by element
ALIAS_SLOTS = 1.0  # load slots lost where a tile's rows fall into one set of the first cache (16 rows 16 KiB apart)
ALIAS_SHARE = 0.75  # part of the ways of a set that these rows may take
SUM_CYCLES = 2.0  # one register of sums stored and loaded between two blocks of the reduction
SPLIT_SLOTS = 5.5  # load slots lost by a row of a matrix that touches two lines (Emerald Rapids: 50 cycles for 16 such)
VECTORS_BESIDE = 1.5  # vector operations of any kind a cycle, as a multiple of what an instruction is issued at (Zen 5)
PAGE_SLOTS = 2.0  # load slots lost where each step along the depth is on another page (f32 1024³ on Zen 5: one cycle)
ROW_CYCLES = 2.0  # one row of sums that goes through memory: a load and a store (unverified)
LEFT_SLOTS = 1.0  # load slots of a register that a tile leaves in the first cache for others (as one store; unverified)
LANE_CYCLES = 3.0  # one lane of a register, behind a branch of its own (u8 depthwise, NCHW: 3.3 on Zen 5, 2.9 on Zen 3)
RUN_SLOTS = 1.2  # load slots of one run of a register that is put together from several: a load and a shuffle
LOADS_PER_CYCLE = 2.0  # where a target does not say

Columns = Mapping[str, npt.NDArray[np.int64]]
Column = npt.NDArray[np.float64]


def nest_cycles(nest: Nest, names: StepNames, v: Columns, target: Target) -> tuple[npt.NDArray[np.float64], ...]:
    """Cycles for issuing (or latency), for loading, and for starting and finishing tiles, over all tile variants."""
    tiled = tiled_axes(nest)
    n = rows_of(v)
    intrinsic = nest.intrinsic
    rate = target.issues(intrinsic)
    latency = float(intrinsic.chain_cycles(4.0))
    outside = float(prod(a.units for a in nest.rows if a not in tiled))
    steps = float(prod(a.units for a in nest.reduction))
    visits = np.ones(n)
    unroll = np.ones(n)
    if nest.depth is not None and nest.blocked_reduction is not None:
        visits = v[names(f"blocks_{nest.blocked_reduction.name}")].astype(np.float64)
        unroll = v[names("unroll")].astype(np.float64)
    windows = offered(nest, target)
    for k, window in windows.items():
        unroll = np.where(v[names("loads")] == k, float(window.steps), unroll)
    sizes = []  # per tiled axis: (how many tiles, units in each) of whole tiles and of the last
    for a in tiled:
        r = v[names.register(a)].astype(np.float64)
        full = np.floor(a.full_units / r)
        sizes.append(((full, r), (np.where(a.units > full * r, 1.0, 0.0), a.units - full * r)))
    kinds = {o.name: v[names.pack(o.name)] for o in intrinsic.inputs}
    computing = {o.name: _computing(nest, names, o.name, v) for o in intrinsic.inputs}
    per_load = {o.name: _load_cost(nest, names, o.name, v, target, computing[o.name]) for o in intrinsic.inputs}
    beside = _vectors_a_cycle(nest, rate, target)
    scatter = _store_cost(nest)
    turned = transposed_row(nest)
    width = float(target.limits.get("issue_width", 6))
    slots = target.rates.get("load", LOADS_PER_CYCLE)
    compute, load, tile = np.zeros(n), np.zeros(n), np.zeros(n)
    for variant in product(*sizes):
        count: npt.NDArray[np.float64] = np.ones(n) * outside
        acc: npt.NDArray[np.float64] = np.ones(n)
        units = {}
        for axis, (how_many, size) in zip(tiled, variant, strict=True):
            count, acc = count * how_many, acc * size
            units[axis.name] = size
        loads: npt.NDArray[np.float64] = np.zeros(n)
        computed: npt.NDArray[np.float64] = np.zeros(n)
        for o in intrinsic.inputs:
            own: npt.NDArray[np.float64] = np.ones(n)
            for axis in tiled:
                if axis in nest.operand_axes(o.name):
                    own = own * units[axis.name]
            for k, window in windows.items():
                tile_loads = evaluate(
                    window.loads(nest, o.name, names), {names.register(a): units[a.name] for a in tiled}
                )
                own = np.where(v[names("loads")] == k, tile_loads / window.steps, own)
                if k == EACH + 1 and o.name == window.operand:  # the depth alone: unrolled, equal loads are one too
                    merged = (v[names("loads")] == EACH) & (unroll == window.steps) & ~np.isin(kinds[o.name], PANELS)
                    own = np.where(merged, tile_loads / window.steps, own)
            loads = loads + own * per_load[o.name]
            computed = computed + own * operations(nest, o.name) * computing[o.name]
        issued = acc + loads + computed + 3.0 / unroll
        issue = np.maximum(np.maximum(acc / rate, (acc + computed) / beside), issued / width)
        ahead = np.maximum(1.0, WINDOW / (steps * np.maximum(issued, 1.0) + acc))  # tiles under way at a time
        compute += count * steps * np.maximum(issue, np.where(acc > 0, latency / ahead, 0.0))
        load += count * steps * loads / slots
        left = scatter if turned is None else store_cycles(units[turned.name], scatter)
        # Between blocks sums wait in the output, or, where its lanes lie apart, in registers' order
        # (`codegen.lower.common.sums`).
        strided = intrinsic.matrices is None and not vectorises(nest, intrinsic.accumulator.name)
        again = SUM_CYCLES if strided else left + scatter
        stores = acc * (left + again * (visits - 1.0))
        tile += count * visits * np.maximum(TILE_LEAST, TILE_CYCLES / ahead) + count * stores
    return compute, load, tile


def _store_cost(nest: Nest) -> float:
    """Cycles to store one register of sums."""
    o = nest.intrinsic.accumulator
    rows = rows_held(nest, o.name) if nest.intrinsic.matrices else 0
    if rows and rows_apart(nest, o.name) is not None:
        return float(rows)
    if vectorises(nest, o.name):
        return rows * (1.0 + ROW_CYCLES) or 1.0
    return rows + ELEMENT_CYCLES * o.elements


def _matrix_load_cost(nest: Nest, operand: str, kind: npt.NDArray[np.int64], target: Target) -> Column:
    """Load slots that one register of the operand takes that holds a matrix: one for each row."""
    rows = rows_held(nest, operand)
    slots = np.full(len(kind), float(rows))
    for way, (stride, crossed) in _from_rows(nest, operand).items():
        aliased = _aliased(stride, np.array([rows]), target)[0]
        slots = np.where(kind == way, rows * (1.0 + SPLIT_SLOTS * crossed + ALIAS_SLOTS * aliased), slots)
    return slots


@of_nest
def _from_rows(nest: Nest, operand: str) -> dict[int, tuple[int, float]]:
    """Where a register that holds a matrix is not loaded from a panel: bytes from one row to the next, and the share of
    rows that touch two lines."""
    size = nest.intrinsic.operands[operand].dtype.bytes
    offsets = {DIRECT: flat_offset(nest, operand, Var("e")), PADDED: copied_offset(nest, operand)}
    if (how := interleave(nest, operand)) is not None:
        offsets[INTERLEAVED] = interleaved_offset(nest, operand, how, Var("e"))
    pitch = {kind: even_rows(nest, operand, offset) for kind, offset in offsets.items()}
    return {k: (size * (pitch[k] or 0), crossings(nest, operand, offsets[k], LINE_BYTES)) for k in offsets}


def _load_cost(
    nest: Nest, names: StepNames, operand: str, v: Columns, target: Target, computing: Column
) -> npt.NDArray[np.float64]:
    """Load slots that one register of the operand takes; `computing`: the share of tiles that compute it."""
    kind = v[names.pack(operand)]
    if nest.intrinsic.matrices is not None:
        return _matrix_load_cost(nest, operand, kind, target)
    if loaded(nest, operand):
        own = float(sum(s.moves(operand) for s in sources(nest, operand) or ()))
        return np.where(computing < 1.0, computing * (own + LEFT_SLOTS) + (1.0 - computing), own)
    elements = nest.intrinsic.operands[operand].elements
    few = None if vectorises(nest, operand) else runs(nest, operand)
    crossed = line_crossings(nest, operand, LINE_BYTES)
    plain = 1.0 + crossed if vectorises(nest, operand) else ELEMENT_CYCLES * LOADS_PER_CYCLE * elements
    if few is not None:
        plain = RUN_SLOTS * few
    plain += PAGE_SLOTS * pages_apart(nest, operand, target)
    guard = GUARD_CYCLES * LOADS_PER_CYCLE if nest.guarded[operand] != TRUE else 0.0
    guard *= 1.0 if _asked_inside(nest, operand) else GUARD_OUTSIDE
    if asked_by_lane(nest, operand):
        guard += LANE_CYCLES * LOADS_PER_CYCLE * elements
    lost: npt.NDArray[np.float64] = np.zeros(len(kind))
    for axis in tiled_axes(nest):
        if not axis.intrinsic_axis:
            lost = lost + ALIAS_SLOTS * _aliased(row_stride(nest, operand, axis), v[names.register(axis)], target)
    direct = plain + lost + guard * _checked(nest, names, operand, v)
    padded = plain + LANE_CYCLES * LOADS_PER_CYCLE * elements * copied_by_lane(nest, operand)
    return np.where(kind == DIRECT, direct, np.where(kind == PADDED, padded, 1.0))


def _vectors_a_cycle(nest: Nest, rate: float, target: Target) -> float:
    """Vector operations of any kind a cycle, the instruction's own among them: no more than the target says for its
    widest vectors, where the instruction's are these."""
    most, sums = VECTORS_BESIDE * rate, nest.intrinsic.accumulator
    widest = sums.elements * sums.dtype.bytes == target.limits.get("vector_bytes")
    return max(rate, min(most, target.rates["vector"])) if widest and "vector" in target.rates else most


def _computing(nest: Nest, names: StepNames, operand: str, v: Columns) -> npt.NDArray[np.float64]:
    """The share of register tiles that compute an operand, where it is computed in the load; others load what the first
    has left."""
    once = v.get(names(once_of(operand).name)) if loaded(nest, operand) else None
    if once is None or (shared := sharing_axis(nest, operand)) is None:
        return np.ones(rows_of(v))
    return np.where(once == ONCE, 1.0 / v[names.tiles(shared)], 1.0)


def _asked_inside(nest: Nest, operand: str) -> bool:
    """Whether an operand's guard may change along the depth, so that no compiler asks it outside of that loop."""
    forms, depth = nest.guarded_sums[operand], nest.depth
    return depth is None or any(form is None or form.coefficient(depth.name) != 0 for form in forms)


def _checked(nest: Nest, names: StepNames, operand: str, v: Columns) -> npt.NDArray[np.float64]:
    """The share of register tiles whose guarded loads are checked: all, or (edges apart) those at an edge."""
    everywhere = np.ones(rows_of(v))
    forms = conditions(nest, operand) if apart(nest) else None
    if not forms:
        return everywhere
    inside = everywhere
    tiled = tiled_axes(nest)
    for axis in nest.spatial:
        ends = sum(form.coefficient(axis.name) != 0 for form in forms)
        tiles = v[names.tiles(axis)].astype(np.float64) if axis in tiled else everywhere * axis.units
        inside = inside * np.maximum(0.0, 1.0 - ends / tiles)
    return np.where(v[names("edges")] == APART, 1.0 - inside, 1.0)


def _aliased(pitch: int, rows: npt.NDArray[np.int64], target: Target) -> npt.NDArray[np.bool_]:
    """Whether so many rows, `pitch` bytes apart, are more than the ways of the sets that their lines fall into."""
    page = page_bytes(target)
    first = next((m.bytes for m in target.memories if m.name == "L1"), 8 * page)
    return rows * gcd(pitch, page) > ALIAS_SHARE * first if pitch else np.zeros(len(rows), bool)
