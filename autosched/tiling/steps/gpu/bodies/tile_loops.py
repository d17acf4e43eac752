"""Tile loops on a GPU: blocks of the grid share the parallel loops; the threads of a block compute what is inside.

Each part of the body keeps the decisions of its own kind that make sense within one block: its tiles are computed one
after the other, nothing is left to other blocks, and no engine or producer works beside. What the body keeps for itself
lies in shared memory or in memory (`place_X`), or in registers of the warps that share its rows (`held_rows`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from autosched.ir.nodes import Tensor
from autosched.logic import Const, Int, Var, maximum, minimum, where
from autosched.machine.target import Target
from autosched.tiling.plans.find_warp_rows import rows_inside
from autosched.tiling.plans.plan import Part, Plan, TensorPart, TileLoopsPart, WarpCooperativePart
from autosched.tiling.plans.warp_rows import WarpRows
from autosched.tiling.step import Decision, Handle, Rule, Step, deciding_steps
from autosched.tiling.steps.gpu.block_results import DIRECT, EPILOGUE
from autosched.tiling.steps.gpu.block_tile import RASTER
from autosched.tiling.steps.gpu.bodies.held_rows import (
    AHEAD,
    MEETING,
    MOST_TILES,
    ROWS,
    decided,
    fetches,
    from_registers,
    held_rows_step,
    meets_late,
    whole_rows,
)
from autosched.tiling.steps.gpu.bodies.kept_tensors import kept_inside, tensor_bytes
from autosched.tiling.steps.gpu.bodies.only_nest import allowed_alone, blocks_of, blocks_of_nest, only_nest
from autosched.tiling.steps.gpu.bodies.uneven_grid import order_of_blocks
from autosched.tiling.steps.gpu.grid_order import CLUSTER_SHAPE, GROUP, PERSISTENT
from autosched.tiling.steps.gpu.operands.operand_sources import GLOBAL, LABELS, stage_name
from autosched.tiling.steps.gpu.operands.slice_copies import ASYNC, COPY, STAGE_COUNT, SYNC
from autosched.tiling.steps.gpu.split_k import GATHER, SPLIT
from autosched.tiling.steps.gpu.warp_roles import ROLES, TOGETHER
from autosched.tiling.steps.scalar import handles

SHARED, MEMORY = 0, 1
PLACES = ("shared", "memory")
LEAST_PLACED = 512
"""Bytes of an intermediate from which on its place is a decision; smaller ones are in shared memory."""
ALIGNED = 1024
"""Bytes that a buffer in shared memory may lose to alignment."""
MOST_STAGES = 4
"""Stages of slices within a block: the reduction of a tile is short."""
BESIDE = 2
"""Blocks of a core that hide each other's latency: more of them add little."""
PARTIAL_BYTES = 8
"""Of one number that the warps of a team pass to each other."""

MOST_THREADS = 256
"""Of a block: with as many registers as a thread may have, they take those of a core."""
VECTORS = (1, 2, 4)
"""Elements that a lane of a team takes at once: tiles are small."""
OPERANDS = 2
"""Of a product, that have slices."""

Allowed = dict[str, tuple[int, ...]]


def place_of(tensor: str) -> Handle:
    """Where an intermediate of the body lies."""
    return Handle(f"place_{tensor}", SHARED)


def grid_steps(
    part: TileLoopsPart, steps: Sequence[Step], tensors: Mapping[str, Tensor], target: Target
) -> list[Step]:
    """The `steps` of the body's parts, as they are within one block, and what the block needs in all; `tensors`: those
    of the program around."""
    allowed = {name: values for inner in parts_inside(part.member) for name, values in _within_block(inner)}
    if (nest := only_nest(part)) is not None:
        allowed |= dict(allowed_alone(part, nest, tensors))
    wider = {name: (n, "") for rows in rows_inside(part) for name, n in whole_rows(rows) if n <= MOST_TILES}
    wider |= {name: (GLOBAL, LABELS[GLOBAL]) for rows in rows_inside(part) for name in from_registers(rows)}
    sources = {name for inner in parts_inside(part.member) for name in _sources(inner)}
    inside = [_settled(step, allowed, wider, sources) for step in deciding_steps(steps)]
    if not part.grid:
        return [
            *inside,
            Step("tile loops", (), (), dict.fromkeys((part.names("threads"), part.names("shares")), Const(1))),
        ]
    found = [*rows_inside(part)]
    computed = (inner for rows in found for inner in rows.loops.member.parts if rows.computes(inner))
    beside = {name for inner in computed for name in decided(inner, inside)}
    inside = [_giving_way(step, beside) for step in inside]
    holding = [held_rows_step(rows, _placed(rows, part), inside, target, meets_late(rows, part)) for rows in found]
    held = [rows for rows, step in zip(found, holding, strict=True) if step is not None]
    if nest is not None:
        return [*inside, blocks_of_nest(part, nest, target)]
    places, block = _block(part, held, target)
    return [places, *(step for step in holding if step is not None), *inside, block]


def _placed(rows: WarpRows, grid: TileLoopsPart) -> list[str]:
    """The decisions where tensors of a body lie that its warps may hold."""
    inside = kept_inside(rows.loops.member)
    own = (n for n in rows.held if n in inside and n not in rows.carried)
    return [grid.names(place_of(n).name) for n in own if tensor_bytes(inside[n]) >= LEAST_PLACED]


def parts_inside(plan: Plan) -> Iterator[Part]:
    """The parts of a body, those of tile loops in it among them."""
    for part in plan.parts:
        yield part
        if isinstance(part, TileLoopsPart):
            yield from parts_inside(part.member)


def _within_block(part: Part) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The values that a part's decisions may take within a block."""
    match part:
        case TensorPart(scheme="gpu"):
            yield part.names(COPY.name), (SYNC, ASYNC)
            yield part.names(STAGE_COUNT.name), tuple(range(1, MOST_STAGES + 1))
            yield part.names(ROLES.name), (TOGETHER,)
            yield part.names(EPILOGUE.name), (DIRECT,)
            for handle, value in (
                (PERSISTENT, 0),
                (GROUP, 1),
                (CLUSTER_SHAPE, 0),
                (SPLIT, 1),
                (GATHER, 0),
                (RASTER, 0),
            ):
                yield part.names(handle.name), (value,)
        case WarpCooperativePart():
            yield part.names(handles.SPLIT.name), (1,)
            yield part.names(handles.TILE.name), (0,)
            yield part.names(handles.VECTOR.name), VECTORS
        case _:
            pass


def _giving_way(step: Step, names: Collection[str]) -> Step:
    """The step, of which decisions of these names give way first where a space has too many rows."""
    kept = (replace(d, held=d.domain[0]) if d.name in names else d for d in step.decisions)
    return replace(step, decisions=tuple(kept))


def _sources(part: Part) -> Iterator[str]:
    """Names of the decisions from where a product's operands come, and how."""
    if isinstance(part, TensorPart):
        yield part.names(COPY.name)
        yield from (stage_name(part.names, o.name) for o in part.nest.intrinsic.inputs)


def _settled(
    step: Step, allowed: Allowed, wider: Mapping[str, tuple[int, str]], sources: Collection[str]
) -> Step:
    """The step with the values that are allowed, at least the first that is; `wider`: values that decisions have beside
    theirs, and their labels. What rows hold decides on `sources`, which are not held early."""
    kept = []
    for decision in step.decisions:
        value, label = wider.get(decision.name, (None, ""))
        if value is not None and value not in decision.domain and bool(label) == bool(decision.labels):
            labels = (*decision.labels, label) if label else ()
            decision = replace(decision, domain=(*decision.domain, value), labels=labels)
        values = [v for v in decision.domain if v in allowed.get(decision.name, decision.domain)]
        values = values or [decision.domain[0]]
        labels = tuple(str(decision.label(v)) for v in values) if decision.labels else ()
        held = decision.held if decision.held in values and decision.name not in sources else None
        kept.append(Decision(decision.name, tuple(values), labels, decision.note, held))
    return Step(step.name, tuple(kept), step.rules, step.derived, step.inert)


def _block(part: TileLoopsPart, held: Collection[WarpRows], target: Target) -> tuple[Step, Step]:
    """What a block needs in all, by a rule for each part, so that parts are chosen one by one: intermediates have up to
    half of shared memory, slices the rest, in equal shares; `held`: bodies whose rows warps may hold.

    Decisions `place_X`, and `order` of blocks that take unequally long. Derived: `block_threads`, `block_shared`
    (bytes, at most), `block_memory` (of intermediates in memory), `blocks_at_once` of a core, `threads` (cores that
    have blocks: the clock takes each part by itself) and `shares`."""
    names, limits = part.names, target.limits
    lanes, most = limits["warp_threads"], limits.get("shared_bytes", 0)
    inside = list(parts_inside(part.member))
    tensors = [p for p in inside if isinstance(p, TensorPart)]
    teams = [p for p in inside if isinstance(p, WarpCooperativePart)]
    sizes = {n: tensor_bytes(t) for n, t in kept_inside(part.member).items()}
    large = {n: size for n, size in sizes.items() if size >= LEAST_PLACED}
    fixed = sum(size + ALIGNED for n, size in sizes.items() if n not in large)
    fixed += sum(map(_passed_bytes, teams)) + OPERANDS * ALIGNED * len(tensors)
    room = max(0, most - fixed) // 2
    decisions: list[Decision] = []
    placed: Int = Const(0)
    in_memory: Int = Const(0)
    left = room
    holding = {n: Var(r.loops.names(ROWS.name)) for r in held for n in r.held if n not in r.carried}
    for name, size in sorted(large.items(), key=lambda item: item[1]):
        fits = size + ALIGNED <= left
        left -= size + ALIGNED if fits else 0
        place = Var(names(place_of(name).name))
        values = (SHARED, MEMORY) if fits else (MEMORY, SHARED)
        decisions.append(Decision(place.name, values, PLACES if fits else PLACES[::-1]))
        nowhere = holding.get(name, Const(0)) > 0
        placed = placed + where(place.eq(SHARED) & ~nowhere, size + ALIGNED, 0)
        in_memory = in_memory + where(place.eq(MEMORY) & ~nowhere, size, 0)
    kept = names("kept_shared")
    places = Rule(kept, Var(kept) <= room, f"{{{kept}}} bytes of intermediates in shared memory > {room:,}")
    rules: list[Rule] = []

    share = max(0, (most - fixed - min(room, sum(size + ALIGNED for size in large.values()))) // max(1, len(tensors)))

    threads: Int = Const(lanes)
    slices: Int = Const(0)
    several: list[TensorPart | WarpCooperativePart] = [*tensors, *teams]
    for inner in several:
        own = inner.names("threads_in_block")
        threads = maximum(threads, Var(own))
        sentence = f"{{{own}}} threads in a block that has other parts > {MOST_THREADS}"
        rules.append(Rule(f"{own} beside others", Var(own) <= MOST_THREADS, sentence))
    of = {id(p.part): rows for rows in held for p in rows.products}
    for tensor in tensors:
        own, rows = tensor.names("shared_bytes"), of.get(id(tensor))
        bytes_: Int = Var(own)
        room_here: Int = Const(share)
        if rows is not None:  # what registers hold leaves room
            bytes_ = bytes_ * (1 + (minimum(Var(rows.loops.names(AHEAD.name)), 1) if fetches(rows) else Const(0)))
            bytes_ = bytes_ * (1 + (Var(rows.loops.names(MEETING.name)) if meets_late(rows, part) else Const(0)))
            others = [n for n in large if n not in rows.held or n in rows.carried]
            beside = (where(Var(names(place_of(n).name)).eq(SHARED), large[n] + ALIGNED, 0) for n in others)
            left_here = (most - fixed - sum(beside, start=Const(0))) // len(tensors)
            room_here = where(Var(rows.loops.names(ROWS.name)) > 0, left_here, room_here)
        slices = slices + bytes_
        sentence = f"{{{own}}} bytes of slices, or twice as many, are more than other parts of the block leave"
        rules.append(Rule(f"{own} beside others", bytes_ <= room_here, sentence))
    shared, at_once = names("block_shared"), names("blocks_at_once")
    of_core = target.memory("shared").bytes if any(m.name == "shared" for m in target.memories) else most
    reserved = limits.get("shared_bytes_reserved_per_block", 0)
    blocks = blocks_of(part)
    derived: dict[str, Int] = {
        names("block_threads"): threads,
        shared: Var(kept) + slices + fixed,
        at_once: maximum(1, minimum(BESIDE, of_core // maximum(1, Var(shared) + reserved))),
        names("threads"): Const(min(blocks, target.cores)),
        names("shares"): Const(blocks),
    }
    decisions += order_of_blocks(part)
    first = Step("places", tuple(decisions), (places,), {kept: placed, names("block_memory"): in_memory})
    return first, Step("tile loops", (), tuple(rules), derived)


def _passed_bytes(part: WarpCooperativePart) -> int:
    """Bytes, at most, through which the warps of a team pass sums to each other."""
    if not any(m.reduction for m in part.members):
        return 0
    if part.across:
        return len(part.members) * ALIGNED
    return MOST_THREADS * max(VECTORS) * PARTIAL_BYTES
