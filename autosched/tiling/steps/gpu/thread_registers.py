"""Registers of a thread: what a printed kernel takes, term by term, and what a launch and its roles can give.

A thread holds its sums, fragments on their way to its next calls, what copies through it carry, and addresses. How much
of each the compiler keeps at a time is a matter of the code generator and of `ptxas`: the constants below were fitted
to what NVRTC 13.0 reported of 1,290 printed kernels, for each kind of instruction; `docs/spaces.md` says how far off
they are. Nothing here is of one instruction or shape.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from autosched.logic import TRUE, Bool, Const, Int, Var, ceil_div, maximum, minimum, where
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic, Operand
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.steps.common.register_tile import held_tiles
from autosched.tiling.steps.gpu.block_tile import gpu_pair, worker_threads
from autosched.tiling.steps.gpu.operands.operand_sources import DESCRIPTOR, GLOBAL, stage_name
from autosched.tiling.steps.gpu.operands.slice_copies import BULK
from autosched.tiling.steps.gpu.promotion import factor_registers
from autosched.tiling.steps.gpu.warp_roles import PRODUCER_WARPS

REGISTER_STEP = 8  # of what a launch gives a thread
PRODUCER_REGISTERS = 40
"""Registers that a producer's threads keep when they give up the rest (`setmaxnreg 40`, as public kernels set it)."""
MOST_HANDED = 240
"""Beyond so many nothing is gained: a thread addresses 255."""
MOST_ADDRESSED = 255
"""By a thread."""
ROOM = 12
"""Hundredths: with a limit close above what a kernel needs `ptxas` takes nearly all of it, and without one it settles
on any of several counts, often on fewer than would serve it."""
MOST_PIECES = 16
"""Pieces of a slice that a thread copies in one unrolled loop."""
MOST_SWIZZLED = 8
"""Depth units of a slice whose places in swizzled rows are kept."""


@dataclass(frozen=True)
class RegisterTerms:
    """Registers that are always taken, and hundredths of a register for each unit of a term beside the sums themselves.

    `sums`: for each of them, fragments and places that grow with the tile; `held`: registers of the fragments that
    outlive a call; `ahead`: of those that are loaded ahead; `direct`: fragments straight from memory; `copies`: pieces
    of a slice that a thread copies; `checked`: those whose places are asked about; `swizzle_offsets`: depth units of
    swizzled rows; `persistent`: where a block has several tiles; `sums_copied`, `persistent_copied`: where threads
    copy, too; `sequence`: what operands take beside their own where the machine runs others in an instruction's place.
    `limited`: whether a compiler is told how many there may be."""

    base: int
    sums: int = 0
    held: int = 0
    ahead: int = 0
    direct: int = 0
    copies: int = 0
    checked: int = 0
    swizzle_offsets: int = 0
    persistent: int = 0
    sums_copied: int = 0
    persistent_copied: int = 0
    sequence: int = 0
    limited: bool = False


TERMS = tuple(f.name for f in fields(RegisterTerms) if f.name not in ("base", "limited"))
THREAD = RegisterTerms(
    37, sums=17, sums_copied=15, ahead=7, copies=24, swizzle_offsets=47, persistent=985, limited=True
)
OPAQUE = RegisterTerms(
    22, sums=13, sums_copied=6, ahead=130, direct=219, copies=86, persistent=619, persistent_copied=343, limited=True
)
WARPS = RegisterTerms(
    20,
    sums=17,
    sums_copied=11,
    held=28,
    ahead=110,
    checked=127,
    swizzle_offsets=37,
    persistent=336,
    persistent_copied=722,
    sequence=45,
    limited=True,
)
DESCRIBED = RegisterTerms(26, held=50, copies=65, checked=180)
"""Of instructions of a thread, of a warp with opaque fragments, of a warp, and of those that read shared memory
(those of the last by 104 and 390 kernels more)."""


def thread_registers(operand: Operand, threads: int) -> int:
    """32-bit registers of each thread that one fragment of the operand fills."""
    return -(-operand.elements * operand.copies * operand.field_bits // (32 * threads))


def sequence_registers(intrinsic: Intrinsic, operand: Operand, own: int) -> int:
    """Registers that an operand takes beside its own where the machine runs a sequence of others."""
    return max(0, intrinsic.sequence.get(operand.name, own) - own)


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


def terms(nest: Nest, names: StepNames, threads: int, sums: Int) -> dict[str, Int]:
    """What the fields of `RegisterTerms` count in a row, `threads` issuing an instruction together."""
    found: dict[str, Int] = dict.fromkeys(TERMS, Const(0)) | {"sums": sums}
    if nest.depth is None:
        return found
    persistent, by_threads = Var(names("persistent")), _copied_by_threads(names)
    found |= _fragment_terms(nest, names, threads) | _copy_terms(nest, names, by_threads)
    swizzled = minimum(MOST_SWIZZLED, Var(names.block(nest.depth)))
    found["swizzle_offsets"] = where(Var(names("swizzle")).eq(0), 0, swizzled)
    found["ahead"] = Var(names("ahead_registers"))
    found["persistent"] = persistent
    found["sums_copied"], found["persistent_copied"] = sums * by_threads, persistent * by_threads
    return found


def _fragment_terms(nest: Nest, names: StepNames, threads: int) -> dict[str, Int]:
    """Of the operands' fragments: `held`, `direct`, and `sequence`, the accumulator's too."""
    pair, intrinsic = gpu_pair(nest), nest.intrinsic
    held: Int = Const(0)
    direct: Int = Const(0)
    sequence: Int = Const(0)
    for operand in intrinsic.inputs:
        source = Var(stage_name(names, operand.name))
        tiles: Int = Const(1)
        for axis in pair:
            if axis in nest.operand_axes(operand.name):
                tiles = tiles * Var(names.register(axis))
        each = thread_registers(operand, threads)
        loaded = where(source.eq(DESCRIPTOR), 0, 1) if operand.name in intrinsic.shared_memory else Const(1)
        held = held + held_tiles(nest, pair, operand.name, names) * each * loaded
        direct = direct + where(source.eq(GLOBAL), tiles, 0)
        sequence = sequence + tiles * sequence_registers(intrinsic, operand, each)
    more = sequence_registers(intrinsic, intrinsic.accumulator, thread_registers(intrinsic.accumulator, threads))
    return {"held": held, "direct": direct, "sequence": sequence + Var(names("accumulators")) * more}


def _copied_by_threads(names: StepNames) -> Int:
    """1 where threads copy slices, 0 where an engine does or nothing is staged."""
    return where(Var(names("copy")).eq(BULK), 0, minimum(1, Var(names("staged"))))


def _copy_terms(nest: Nest, names: StepNames, by_threads: Int) -> dict[str, Int]:
    """Of the pieces of a slice that a thread copies: `copies`, and `checked` where guards ask about their places."""
    width = maximum(Var(names("vector")), max(1, min(o.dtype.bits for o in nest.intrinsic.inputs) // 8))
    pieces = minimum(MOST_PIECES, ceil_div(Var(names("slice_bytes")), width * Var(names("threads_in_block"))))
    guarded = any(nest.guarded[o.name] != TRUE for o in nest.intrinsic.inputs)
    return {"copies": pieces * by_threads, "checked": pieces * by_threads if guarded else Const(0)}


def taken_by(nest: Nest) -> RegisterTerms:
    """What a kernel of the nest's instruction takes."""
    if nest.intrinsic.shared_memory and nest.depth is not None:
        return DESCRIBED
    if nest.intrinsic.accumulator.opaque is not None:
        return OPAQUE
    return THREAD if nest.intrinsic.scope == "thread" else WARPS


def registers_taken(nest: Nest, target: Target, names: StepNames) -> Int:
    """Registers of a thread."""
    taken, threads = taken_by(nest), worker_threads(nest.intrinsic, target)
    each = thread_registers(nest.intrinsic.accumulator, threads) * (1 + Var(names("promoted")))
    sums = Var(names("accumulators")) * each
    factors = factor_registers(nest, threads)
    whole: Int = taken.base + sums + Var(names("accumulators")) * factors if factors else taken.base + sums
    hundredths: Int = Const(0)
    for name, count in terms(nest, names, threads, sums).items():
        share = getattr(taken, name)
        whole = whole + count * (share // 100) if share >= 100 else whole
        hundredths = hundredths + count * (share % 100) if share % 100 else hundredths
    whole = whole if hundredths == Const(0) else whole + ceil_div(hundredths, 100)
    least = nest.intrinsic.least_registers
    return maximum(whole, least) if least else whole


def register_limit(nest: Nest, needed: Int, per_lane: int, warps: Int, blocks: Int) -> Int:
    """What a compiler is told that a thread may take: `ROOM` more than `needed`, as far as a core still holds so many
    `blocks` of so many `warps`; 0 where it is told nothing."""
    if not taken_by(nest).limited:
        return Const(0)
    fitting = per_lane // (warps * blocks) // REGISTER_STEP * REGISTER_STEP
    return minimum(MOST_ADDRESSED, minimum(fitting, needed + needed * ROOM // 100))
