"""What a block takes of its core: registers, and with them how many blocks a core holds at once."""

from __future__ import annotations

from autosched.logic import Const, Int, Var, ceil_div, maximum, minimum
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Operand
from autosched.tiling.nest import Nest
from autosched.tiling.step import Rule, Step
from autosched.tiling.steps.gpu_tile import gpu_pair, worker_threads
from autosched.tiling.steps.names import StepNames
from autosched.tiling.steps.register_tile import held_tiles

OWN_REGISTERS = 24
"""Registers of a thread for addresses, counters and constants beside its fragments: a round figure for such code."""


def thread_registers(operand: Operand, threads: int) -> int:
    """32-bit registers of each thread that one fragment of the operand fills."""
    return -(-operand.elements * operand.dtype.bits // (32 * threads))


def gpu_limits(nest: Nest, target: Target, names: StepNames) -> Step:
    """Rules on registers of a thread and of a block. Derived: `registers` (of a thread), `warps`, `blocks_at_once`
    (of a core), `waves`."""
    limits, pair = target.limits, gpu_pair(nest)
    threads = worker_threads(nest.intrinsic, target)
    accumulator = nest.intrinsic.accumulator
    registers: Int = Const(OWN_REGISTERS) + Var(names("accumulators")) * thread_registers(accumulator, threads)
    for operand in nest.intrinsic.inputs:
        registers = registers + held_tiles(nest, pair, operand.name, names) * thread_registers(operand, threads)
    per_thread, per_core = limits.get("registers_per_thread", 255), limits.get("registers_per_core", 65536)
    used, warps, at_once = names("registers"), names("warps"), names("blocks_at_once")
    of_block = Var(used) * Var(warps) * limits["warp_threads"]
    shared = target.memory("shared").bytes if any(m.name == "shared" for m in target.memories) else 0
    reserved = limits.get("shared_bytes_reserved_per_block", 0)
    blocks: Int = minimum(limits.get("blocks_per_core", 32), limits.get("warps_per_core", 64) // Var(warps))
    blocks = minimum(blocks, per_core // of_block)
    if shared:
        blocks = minimum(blocks, shared // maximum(1, Var(names("shared_bytes")) + reserved))
    derived = {
        warps: ceil_div(Var(names("threads_in_block")), limits["warp_threads"]),
        used: registers,
        names("block_registers"): of_block,
        at_once: maximum(1, blocks),
        names("waves"): ceil_div(Var(names("blocks")), target.cores * Var(at_once)),
    }
    rules = (
        Rule(used, Var(used) <= per_thread, "{" + used + f"}} registers a thread > {per_thread}"),
        Rule(
            names("block_registers"),
            Var(names("block_registers")) <= per_core,
            "{" + names("block_registers") + f"}} registers in a block > {per_core:,}",
        ),
    )
    return Step("gpu limits", (), rules, derived)
