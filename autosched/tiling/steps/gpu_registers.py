"""Registers of a thread: what a printed kernel takes, term by term, and what a launch and its roles can give.

A thread holds its sums, the fragments that are on their way to its next calls, what copies through it carry, and
addresses. How much of each the compiler keeps at a time is a matter of the code generator: `TAKEN` was fitted to what
NVRTC reports of printed kernels, for each kind of instruction (`docs/spaces.md` has how far off it is). Sums count in
full; nothing here is of one instruction or shape.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from autosched.logic import TRUE, Bool, Const, Int, Var, ceil_div, evaluate, free_vars, maximum, minimum, where
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Operand
from autosched.tiling.nest import Nest
from autosched.tiling.steps.gpu_copy import BULK, SYNC
from autosched.tiling.steps.gpu_layout import chunk_elements
from autosched.tiling.steps.gpu_operand import from_shared, layout_major
from autosched.tiling.steps.gpu_roles import PRODUCER_WARPS
from autosched.tiling.steps.gpu_stage import DESCRIPTOR, GLOBAL, stage_name
from autosched.tiling.steps.gpu_tile import gpu_pair, worker_threads
from autosched.tiling.steps.layout import flat_offset
from autosched.tiling.steps.names import StepNames
from autosched.tiling.steps.register_tile import held_tiles

REGISTER_STEP = 8  # of what a launch gives a thread
PRODUCER_REGISTERS = 40
"""Registers that a producer's threads keep when they give up the rest (`setmaxnreg 40`, as public kernels set it)."""
MOST_HANDED = 240
"""Beyond so many nothing is gained: a thread addresses 255."""
MOST_PIECES = 16
"""Pieces of a slice that a thread copies in one unrolled loop."""
MOST_TURNED = 8
"""Depth units of a slice whose places in swizzled rows are kept."""


@dataclass(frozen=True)
class Taken:
    """Hundredths of a register for each unit of a term; `base` in registers."""

    base: int
    held: int = 0
    unit: int = 0
    wide: int = 0
    ahead: int = 0
    direct: int = 0
    copies: int = 0
    checked: int = 0
    carried: int = 0
    turned: int = 0
    persistent: int = 0


THREAD = Taken(33, unit=37, wide=26, ahead=10, direct=72, copies=43, turned=53, persistent=1350)
WARPS = Taken(10, held=146, unit=27, ahead=107, copies=55, checked=317, turned=38, persistent=880)
OPAQUE = Taken(22, held=18, unit=3, ahead=156, direct=384, copies=155, persistent=418)
DESCRIBED = Taken(26, held=74, unit=30, copies=28, carried=28, turned=6, persistent=256)


def thread_registers(operand: Operand, threads: int) -> int:
    """32-bit registers of each thread that one fragment of the operand fills."""
    return -(-operand.elements * operand.dtype.bits // (32 * threads))


def entry_registers(per_lane: int, warps: Int) -> Int:
    """Registers of a thread that a core with one block of so many warps gives each as the kernel begins, where it has
    `per_lane` for all threads of one place in their warps."""
    return per_lane // warps // REGISTER_STEP * REGISTER_STEP


def hands_over(per_lane: int, workers: Int) -> Bool:
    """Whether a producer beside so many warps returns registers, and they take them: whole warpgroups do that, and
    only where a launch cannot give all as many as one may have."""
    few = entry_registers(per_lane, workers + PRODUCER_WARPS) < MOST_HANDED
    return few & (workers % PRODUCER_WARPS).eq(0)


def worker_registers(per_lane: int, workers: Int) -> Int:
    """Registers of a worker's thread once the producer has returned its own."""
    entry = entry_registers(per_lane, workers + PRODUCER_WARPS)
    share = (entry - PRODUCER_REGISTERS) * PRODUCER_WARPS // workers
    return minimum(MOST_HANDED, (entry + share) // REGISTER_STEP * REGISTER_STEP)


def distinct_registers(nest: Nest, operand: Operand, threads: int) -> int:
    """32-bit registers of each thread that a fragment fills; an element for all lanes of a thread is there once."""
    offset = flat_offset(nest, operand.name, Var("e"))
    env: dict[str, object] = dict.fromkeys(free_vars(offset), 0)
    places = np.broadcast_to(evaluate(offset, env | {"e": np.arange(operand.elements)}), (operand.elements,))
    count = len(np.unique(places)) if threads == 1 else operand.elements
    return -(-count * operand.dtype.bits // (32 * threads))


def terms(nest: Nest, target: Target, names: StepNames) -> dict[str, Int]:
    """What the fields of `Taken` count, for a row. `held`, `unit`: registers of the fragments that outlive a call, and
    of all of a depth unit; `wide`: of further depth units that one load brings; `ahead`: beside them, where fragments
    are loaded ahead; `direct`: fragments straight from memory; `copies`: pieces of a slice that a thread copies;
    `checked`: those whose places are asked about; `carried`: registers between a copy's load and its store; `turned`:
    depth units of swizzled rows."""
    pair, depth = gpu_pair(nest), nest.depth
    threads = worker_threads(nest.intrinsic, target)
    found: dict[str, Int] = dict.fromkeys((f.name for f in fields(Taken) if f.name != "base"), Const(0))
    if depth is None:
        return found
    for operand in nest.intrinsic.inputs:
        source = Var(stage_name(names, operand.name))
        tiles: Int = Const(1)
        for axis in pair:
            if axis in nest.operand_axes(operand.name):
                tiles = tiles * Var(names.register(axis))
        each = distinct_registers(nest, operand, threads)
        loaded = where(source.eq(DESCRIPTOR), 0, 1) if operand.name in from_shared(nest.intrinsic) else Const(1)
        found["held"] = found["held"] + held_tiles(nest, pair, operand.name, names) * each * loaded
        found["unit"] = found["unit"] + tiles * each * loaded
        found["direct"] = found["direct"] + where(source.eq(GLOBAL), tiles, 0)
        if threads == 1 and layout_major(nest, operand.name) is depth:
            run = maximum(1, chunk_elements(operand.dtype.bits) // depth.unit)
            units = minimum(run, Var(names.block(depth)))
            found["wide"] = found["wide"] + where(source.eq(GLOBAL), 0, (units - 1) * tiles * each)
    copy, staged = Var(names("copy")), Var(names("staged"))
    width = maximum(Var(names("vector")), max(1, min(o.dtype.bits for o in nest.intrinsic.inputs) // 8))
    bytes_ = Var(names("slice_bytes"))
    pieces = minimum(MOST_PIECES, ceil_div(bytes_, width * Var(names("threads_in_block"))))
    by_threads = where(copy.eq(BULK), 0, minimum(1, staged))
    found["copies"] = pieces * by_threads
    guarded = any(nest.guarded[o.name] != TRUE for o in nest.intrinsic.inputs)
    found["checked"] = pieces * by_threads if guarded else Const(0)
    found["carried"] = where(copy.eq(SYNC), pieces * ceil_div(width, 4), 0) * minimum(1, staged)
    found["turned"] = where(Var(names("swizzle")).eq(0), 0, minimum(MOST_TURNED, Var(names.block(depth))))
    found["ahead"] = Var(names("ahead_registers"))
    found["persistent"] = Var(names("persistent"))
    return found


def taken_by(nest: Nest) -> Taken:
    """What a kernel of the nest's instruction takes."""
    if from_shared(nest.intrinsic) and nest.depth is not None:
        return DESCRIBED
    if nest.intrinsic.accumulator.opaque is not None:
        return OPAQUE
    return THREAD if nest.intrinsic.scope == "thread" else WARPS


def registers_taken(nest: Nest, target: Target, names: StepNames) -> Int:
    """Registers of a thread."""
    taken, accumulator = taken_by(nest), nest.intrinsic.accumulator
    sums = thread_registers(accumulator, worker_threads(nest.intrinsic, target)) * (1 + Var(names("promoted")))
    hundredths: Int = Const(0)
    for name, count in terms(nest, target, names).items():
        if each := getattr(taken, name):
            hundredths = hundredths + count * each
    return taken.base + Var(names("accumulators")) * sums + ceil_div(hundredths, 100)
