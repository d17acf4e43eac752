"""How results leave a block: lane by lane from registers, or through shared memory as whole rows.

TMA stores the tile of a worker (a warp or warpgroup) while others go on. Where rows are longer than a span of 128
bytes, a worker may hold one span at a time: it waits until TMA has read a span before it writes the next, and leaves
shared memory for a further stage.
"""

from __future__ import annotations

from collections.abc import Sequence

from autosched.logic import FALSE, TRUE, Bool, Const, Int, Var, all_of, ceil_div, maximum, where
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.outputs import OutputAccess
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.step import Decision, Handle, Rule, Step
from autosched.tiling.steps.gpu.block_tile import SCOPE_WARPS, workers_name
from autosched.tiling.steps.gpu.operands.operand_paths import CHUNK_BYTES, stored_bytes, stored_in_boxes
from autosched.tiling.steps.gpu.operands.slice_copies import BOX
from autosched.tiling.steps.gpu.split_k import CLUSTER, may_gather, may_split

DIRECT, ROWS, BULK_STORE, SPAN_STORE = 0, 1, 2, 3
LABELS = ("direct", "shared", "TMA", "TMA by span")
BOX_STORES = (BULK_STORE, SPAN_STORE)
SPAN_BYTES = 128
EPILOGUE = Handle("epilogue", DIRECT)


def row_axis(nest: Nest, output: OutputAccess, pair: tuple[NestAxis, ...]) -> NestAxis:
    """The axis of the pair along which the output runs on, else the last."""
    size = nest.intrinsic.accumulator.dtype.bytes
    return next((a for a in reversed(pair) if stored_bytes(nest, output, a, size) > size), pair[-1])


def staging_bytes(nest: Nest) -> int:
    """Bytes of shared memory that each warp may need for fragments of which nobody knows what lies where: a piece for
    each type and size, packed below a byte. Where lines of memory are aligned and whole, they pass by it."""
    held = {(o.dtype, o.elements) for o in nest.intrinsic.operands.values() if o.opaque is not None}
    return sum(dtype.bits * elements // 8 for dtype, elements in held)


def gpu_epilogue(
    nest: Nest, target: Target, pair: tuple[NestAxis, ...], outputs: Sequence[OutputAccess], names: StepNames
) -> Step:
    """`epilogue`: registers go to memory lane by lane, or first to a tile in shared memory, from which all threads
    store whole rows, or each warp or warpgroup has TMA store its part, whole or span by span, while others go on.
    `outputs`: what the part writes. Derived: `out_bytes` of the tile in shared memory; `shared_bytes` of a block in
    all (at most, where fragments are opaque); `worker_barriers`, at which the threads of one worker meet."""
    before = _bytes_before(nest, target, names)
    limit = target.limits.get("shared_bytes", 0)
    total = names("shared_bytes")
    rules = [Rule(total, Var(total) <= limit, "{" + total + f"}} bytes of shared memory in a block > {limit:,}")]
    shares: Int = Var(names("share_bytes")) if nest.depth is not None else Const(0)
    gathers = nest.depth is not None and may_gather(nest, target)
    # Whether workers finish their tiles by themselves, in other blocks of a cluster.
    apart: Bool = Var(names("gather")).eq(CLUSTER) if gathers else FALSE
    lanes_inside = all(a in pair for a in nest.spatial if a.intrinsic_axis)
    # A stage that reads what another has stored would find it in memory, where a tile has not been stored yet.
    through_tile = len(outputs) == 1 and outputs[0].dtype.bits >= 8 and not outputs[0].again
    if not through_tile or not limit or not pair or not lanes_inside:
        meeting = _worker_barriers(nest, pair, apart, names) if pair else Const(0)
        nothing: dict[str, Int] = {names("out_bytes"): Const(0), names("worker_barriers"): meeting}
        return Step("gpu epilogue", (), tuple(rules), nothing | {total: before + shares})
    (output,) = outputs
    epilogue, row_along = Var(names(EPILOGUE.name)), row_axis(nest, output, pair)
    kinds = _kinds(nest, target, output, row_along)
    if gathers:
        sentence = "workers of a cluster that shares a reduction finish apart, and rows are stored by all together"
        rules.append(Rule(names("gather_rows"), epilogue.ne(ROWS) | ~apart, sentence))
    by_boxes: Bool = FALSE
    if BULK_STORE in kinds:
        by_boxes = epilogue >= BULK_STORE
        rules += _box_rules(nest, output, pair, row_along, names)
    # A share's block leaves its sums to a second grid, whose blocks hold the tile and nothing else.
    own = Const(1) if nest.depth is None or not may_split(nest) else Var(names("split"))
    out = Var(names("out_bytes"))
    tile = _tile_bytes(output, pair, row_along, names)
    one_span = tile // maximum(_row_bytes(output, row_along, names) // SPAN_BYTES, 1)
    held = where(epilogue.eq(SPAN_STORE), one_span, tile) if SPAN_STORE in kinds else tile
    derived = {
        names("out_bytes"): where(epilogue.eq(DIRECT), 0, held),
        names("worker_barriers"): _worker_barriers(nest, pair, by_boxes | apart, names),
        total: where(own.eq(1) | apart, before + out + shares, maximum(before, out)),
    }
    return Step(
        "gpu epilogue",
        (Decision(epilogue.name, tuple(kinds), tuple(LABELS[k] for k in kinds)),),
        tuple(rules),
        derived,
    )


def _bytes_before(nest: Nest, target: Target, names: StepNames) -> Int:
    """Bytes of shared memory that a block holds besides its results: slices, barriers, pieces of opaque fragments."""
    before = Var(names("slices_bytes")) + Var(names("barrier_bytes")) if nest.depth is not None else Const(0)
    if pieces := staging_bytes(nest):
        before = before + Var(names("threads_in_block")) // target.limits["warp_threads"] * pieces
    return before


def _kinds(nest: Nest, target: Target, output: OutputAccess, row_along: NestAxis) -> list[int]:
    """The ways that results may take: boxes of TMA where rows are aligned, whole and evenly apart."""
    aligned = stored_bytes(nest, output, row_along, output.dtype.bytes)
    whole = aligned == CHUNK_BYTES and nest.written == TRUE and nest.intrinsic.scope in SCOPE_WARPS
    boxes = target.bulk_copies and whole and stored_in_boxes(nest, output)
    return [DIRECT, ROWS, *BOX_STORES] if boxes else [DIRECT, ROWS]


def _row_bytes(output: OutputAccess, row_along: NestAxis, names: StepNames) -> Int:
    """Bytes of a row of a worker's tile of results."""
    return Var(names.register(row_along)) * (row_along.unit * output.dtype.bytes)


def _tile_bytes(output: OutputAccess, pair: tuple[NestAxis, ...], row_along: NestAxis, names: StepNames) -> Int:
    """Bytes of a block's tile of results: rows of whole chunks."""
    tile: Int = Const(1)
    for axis in pair:
        side = Var(names(f"tile_{axis.name}")) * axis.unit
        rows = ceil_div(side * output.dtype.bytes, CHUNK_BYTES) * CHUNK_BYTES
        tile = tile * (side if axis is not row_along else rows)
    return tile


def _box_rules(
    nest: Nest, output: OutputAccess, pair: tuple[NestAxis, ...], row_along: NestAxis, names: StepNames
) -> tuple[Rule, ...]:
    """What TMA asks of the box that it stores."""
    epilogue = Var(names(EPILOGUE.name))
    by_threads = epilogue < BULK_STORE
    sides = [Var(names.register(a)) * a.unit for a in pair if a is not row_along]
    small = all_of(*(side <= BOX for side in sides))
    long = f"a side of the box of {output.tensor} has {{side}} elements > {BOX}"
    # A box is whole chunks: with less than one, blocks would write beyond their own tiles.
    row = _row_bytes(output, row_along, names)
    uneven = f"a row of a tile of {output.tensor} has {{bytes}} bytes, no multiple of {CHUNK_BYTES}"
    several = (row > SPAN_BYTES) & (row % SPAN_BYTES).eq(0)
    single = f"a row of a tile of {output.tensor} has {{bytes}} bytes, not several times {SPAN_BYTES}"
    box, alone = row, all_of(*(Var(workers_name(nest, names, a)).eq(1) for a in pair))
    for side in sides:
        box = box * side
    apart = f"boxes of {output.tensor} of {{bytes}} bytes lie side by side, and begin at no multiple of {SPAN_BYTES}"
    longest = {"side": maximum(*sides) if sides else Const(0)}
    return (
        Rule(epilogue.name, by_threads | small, long, longest),
        Rule(names("box_row"), by_threads | (row % CHUNK_BYTES).eq(0), uneven, {"bytes": row}),
        Rule(names("box_start"), by_threads | alone | (box % SPAN_BYTES).eq(0), apart, {"bytes": box}),
        Rule(names("box_spans"), epilogue.ne(SPAN_STORE) | several, single, {"bytes": row}),
    )


def _worker_barriers(nest: Nest, pair: tuple[NestAxis, ...], alone: Bool, names: StepNames) -> Int:
    """Barriers of a block's workers where each of them stores `alone`; lanes of one warp need none."""
    if SCOPE_WARPS.get(nest.intrinsic.scope, 0) <= 1:
        return Const(0)
    workers: Int = Const(1)
    for axis in pair:
        workers = workers * Var(workers_name(nest, names, axis))
    return where(alone, workers, 0)
