"""What a block takes of its core: registers and barriers, and with them how many blocks a core holds at once."""

from __future__ import annotations

from autosched.logic import Const, Int, Var, ceil_div, maximum, minimum, where
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Operand
from autosched.tiling.nest import Nest
from autosched.tiling.step import Rule, Step
from autosched.tiling.steps.gpu_copy import BULK
from autosched.tiling.steps.gpu_operand import from_shared
from autosched.tiling.steps.gpu_roles import gives_registers
from autosched.tiling.steps.gpu_stage import DESCRIPTOR, stage_name
from autosched.tiling.steps.gpu_tile import gpu_pair, worker_threads
from autosched.tiling.steps.names import StepNames
from autosched.tiling.steps.register_tile import held_tiles

OWN_REGISTERS = 48
"""Registers of a thread for addresses, counters and constants beside its fragments: a round figure for such code."""


BULK_REGISTERS = 32
"""The same of an instruction that takes its operands from shared memory, where the copy engine brings them: compiled,
such kernels take 26 beside their sums."""
ISSUE_REGISTERS = 30
"""Registers that one such instruction needs beside its accumulators, in what a thread has as the kernel begins (ptxas
C7602: with 104 accumulators it asks for 130)."""
REGISTER_STEP = 8  # of what a launch gives a thread
PRODUCER_REGISTERS = 40
"""Registers that a producer's threads keep when they give up the rest (`setmaxnreg 40`, as public kernels set it)."""

BARRIERS = 16
"""At which threads of a block can meet (PTX ISA, `barrier`). In printed kernels 0 is of all of them, 1 of the workers
beside a producer, and those behind are of single workers that leave their results by themselves."""


def thread_registers(operand: Operand, threads: int) -> int:
    """32-bit registers of each thread that one fragment of the operand fills."""
    return -(-operand.elements * operand.dtype.bits // (32 * threads))


def gpu_limits(nest: Nest, target: Target, names: StepNames) -> Step:
    """Rules on registers of a thread and of a block, and on barriers. Derived: `registers` (of a thread), `warps`,
    `barriers`, `blocks_at_once` (of a core), `waves`."""
    limits, pair = target.limits, gpu_pair(nest)
    threads = worker_threads(nest.intrinsic, target)
    accumulator = nest.intrinsic.accumulator
    sums = 1 + Var(names("promoted"))
    described = bool(from_shared(nest.intrinsic)) and nest.depth is not None
    own = where(Var(names("copy")).eq(BULK), BULK_REGISTERS, OWN_REGISTERS) if described else Const(OWN_REGISTERS)
    registers: Int = own + Var(names("accumulators")) * sums * thread_registers(accumulator, threads)
    for operand in nest.intrinsic.inputs:
        held = held_tiles(nest, pair, operand.name, names) * thread_registers(operand, threads)
        if operand.name in from_shared(nest.intrinsic) and nest.depth is not None:
            held = where(Var(stage_name(names, operand.name)).eq(DESCRIPTOR), 0, held)
        registers = registers + held
    registers = registers + Var(names("ahead_registers"))
    apart = Var(names("worker_barriers"))
    per_thread, per_core = limits.get("registers_per_thread", 255), limits.get("registers_per_core", 65536)
    used, warps, at_once = names("registers"), names("warps"), names("blocks_at_once")
    lanes = limits["warp_threads"]
    producer = Var(names("producer_warps"))
    kept = where(gives_registers(Var(warps) - producer), PRODUCER_REGISTERS, Var(used))
    of_block = (Var(used) * (Var(warps) - producer) + kept * producer) * lanes
    shared = target.memory("shared").bytes if any(m.name == "shared" for m in target.memories) else 0
    reserved = limits.get("shared_bytes_reserved_per_block", 0)
    blocks: Int = minimum(limits.get("blocks_per_core", 32), limits.get("warps_per_core", 64) // Var(warps))
    blocks = minimum(blocks, per_core // of_block)
    if shared:
        blocks = minimum(blocks, shared // maximum(1, Var(names("shared_bytes")) + reserved))
    derived = {
        warps: ceil_div(Var(names("threads_in_block")), lanes) + Var(names("producer_warps")),
        used: registers,
        names("block_registers"): of_block,
        at_once: maximum(1, blocks),
        names("waves"): ceil_div(Var(names("blocks")), target.cores * Var(at_once)),
        names("barriers"): 1 + minimum(1, apart + Var(names("producer_warps"))) + apart,
    }
    most = limits.get("threads_per_block", 1024)
    threads_name = names("threads_of_roles")
    derived = {threads_name: Var(names("threads_in_block")) + Var(names("producer_warps")) * lanes} | derived
    rules: tuple[Rule, ...] = (
        Rule(threads_name, Var(threads_name) <= most, "{" + threads_name + f"}} threads of all roles > {most:,}"),
        Rule(used, Var(used) <= per_thread, "{" + used + f"}} registers a thread > {per_thread}"),
        Rule(
            names("block_registers"),
            Var(names("block_registers")) <= per_core,
            "{" + names("block_registers") + f"}} registers in a block > {per_core:,}",
        ),
        Rule(
            names("barriers"), Var(names("barriers")) <= BARRIERS, "{" + names("barriers") + f"}} barriers > {BARRIERS}"
        ),
    )
    if described:
        each = thread_registers(accumulator, threads) + ISSUE_REGISTERS
        given = names("entry_registers")
        derived[given] = per_core // Var(threads_name) // REGISTER_STEP * REGISTER_STEP
        sentence = f"an instruction needs {each} registers a thread, and a launch gives {{{given}}}"
        rules += (Rule(given, Var(given) >= each, sentence),)
    return Step("gpu limits", (), rules, derived)
