"""What a block takes of its core: registers and barriers, and with them how many blocks a core holds at once."""

from __future__ import annotations

from autosched.logic import Bool, Const, Int, Var, all_of, ceil_div, evaluate, maximum, minimum, where
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.step import Handle, Rule, Step
from autosched.tiling.steps.gpu.block_tile import worker_threads
from autosched.tiling.steps.gpu.thread_registers import (
    REGISTER_STEP,
    entry_registers,
    hands_over,
    register_limit,
    registers_taken,
    thread_registers,
    worker_registers,
)
from autosched.tiling.steps.gpu.warp_roles import PRODUCER_WARPS

ISSUE_REGISTERS = 30
"""Registers that one such instruction needs beside its accumulators, in what a thread has as the kernel begins (ptxas
C7602: with 104 accumulators it asks for 130)."""
MOST_WARPS = 32  # of a block
BARRIERS = 16
"""At which threads of a block can meet (PTX ISA, `barrier`). In printed kernels 0 is of all of them, 1 of the workers
beside a producer, and those behind are of single workers that leave their results by themselves."""
REGISTER_LIMIT = Handle("register_limit", 0)


def gpu_limits(nest: Nest, target: Target, names: StepNames) -> Step:
    """Rules on registers of a thread and of a block, and on barriers. Derived: `registers` (that a thread needs) and
    `register_limit` (that it may take), `warps`, `barriers`, `blocks_at_once` (of a core), `waves`."""
    limits = target.limits
    threads = worker_threads(nest.intrinsic, target)
    per_thread, per_core = limits.get("registers_per_thread", 255), limits.get("registers_per_core", 65536)
    used, warps, at_once, entry = (names(n) for n in ("registers", "warps", "blocks_at_once", "entry_registers"))
    lanes, own, apart = limits["warp_threads"], names("worker_registers"), Var(names("worker_barriers"))
    producer, workers = Var(names("producer_warps")), ceil_div(Var(names("threads_in_block")), lanes)
    handed = producer.ne(0) & hands_over(per_core // lanes, workers)
    launched = where(handed, Var(entry), ceil_div(Var(used), REGISTER_STEP) * REGISTER_STEP)
    of_block = launched * Var(warps) * lanes
    shared = target.memory("shared").bytes if any(m.name == "shared" for m in target.memories) else 0
    reserved = limits.get("shared_bytes_reserved_per_block", 0)
    blocks: Int = minimum(limits.get("blocks_per_core", 32), limits.get("warps_per_core", 64) // Var(warps))
    blocks = minimum(blocks, per_core // of_block)
    if shared:
        blocks = minimum(blocks, shared // maximum(1, Var(names("shared_bytes")) + reserved))
    derived = {
        warps: ceil_div(Var(names("threads_in_block")), lanes) + Var(names("producer_warps")),
        used: registers_taken(nest, target, names),
        entry: entry_registers(per_core // lanes, Var(warps)),
        own: where(handed, worker_registers(per_core // lanes, workers), per_thread),
        names("block_registers"): of_block,
        at_once: maximum(1, blocks),
        names(REGISTER_LIMIT.name): where(
            handed, 0, register_limit(nest, Var(used), per_core // lanes, Var(warps), Var(at_once))
        ),
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
            _fits(Var(used), workers, producer, per_core // lanes),
            "{" + names("block_registers") + f"}} registers in a block > {per_core:,}",
        ),
        Rule(
            own,
            _fits_role(Var(used), workers, producer, per_core // lanes),
            "{" + used + "} registers a thread > {" + own + "} beside a producer",
        ),
        Rule(
            names("barriers"), Var(names("barriers")) <= BARRIERS, "{" + names("barriers") + f"}} barriers > {BARRIERS}"
        ),
    )
    if nest.intrinsic.shared_memory and nest.depth is not None:
        each = thread_registers(nest.intrinsic.accumulator, threads) + ISSUE_REGISTERS
        sentence = f"an instruction needs {each} registers a thread, and a launch gives {{{entry}}}"
        rules += (Rule(entry, Var(entry) >= each, sentence),)
    return Step("gpu limits", (), rules, derived)


def _fits(used: Int, workers: Int, producer: Int, per_lane: int) -> Bool:
    """Whether a core has the registers of one block. Each part is known before the roles are: a space is then counted
    with few states (`tiling.space.counting`)."""
    each = ceil_div(used, REGISTER_STEP) * REGISTER_STEP
    beside = hands_over(per_lane, workers) | (each * (workers + PRODUCER_WARPS) <= per_lane)
    return all_of(producer.ne(0) | (each * workers <= per_lane), producer.eq(0) | beside)


def _fits_role(used: Int, workers: Int, producer: Int, per_lane: int) -> Bool:
    """Whether the workers have enough of what a producer returns."""
    enough: list[Bool] = []
    for n in range(PRODUCER_WARPS, MOST_WARPS, PRODUCER_WARPS):
        if evaluate(hands_over(per_lane, Const(n)), {}):
            share = int(evaluate(worker_registers(per_lane, Const(n)), {}))
            enough.append(workers.ne(n) | (used <= share))
    return producer.eq(0) | all_of(*enough)
