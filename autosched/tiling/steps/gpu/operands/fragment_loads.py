"""When a worker's registers take what an instruction reads: just before its calls, or one depth unit ahead of them.

Ahead, a worker has the fragments of two units: while it issues the calls of one, the other is on its way from shared
memory, also where a slice ends and the next one begins, and the copies of a later slice are spread between the calls.
"""

from __future__ import annotations

from math import prod

from autosched.logic import Const, Int, Var
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.step import Decision, Handle, Rule, Step
from autosched.tiling.steps.common.register_tile import held_tiles
from autosched.tiling.steps.gpu.block_tile import gpu_pair, worker_threads
from autosched.tiling.steps.gpu.operands.operand_sources import BODY_LIMIT
from autosched.tiling.steps.gpu.operands.slice_copies import SYNC
from autosched.tiling.steps.gpu.thread_registers import thread_registers

IN_TURN, AHEAD = 0, 1
LABELS = ("in turn", "ahead")
FRAGMENTS = Handle("fragments", IN_TURN)


def may_load_ahead(nest: Nest, target: Target) -> bool:
    """Whether registers are loaded between calls, and copies run on beside them."""
    return nest.depth is not None and not nest.intrinsic.asynchronous and target.async_copies


def gpu_fragments(nest: Nest, target: Target, names: StepNames) -> Step:
    """`fragments`: loaded in turn with the calls, or one depth unit ahead. Derived: `ahead_registers`, which a thread
    needs for it beside those that it holds anyway."""
    more = names("ahead_registers")
    depth = nest.depth
    if depth is None or not may_load_ahead(nest, target):
        return Step("gpu fragments", (), (), {more: Const(0)})
    ahead, block = Var(names(FRAGMENTS.name)), Var(names.block(depth))
    in_turn = ahead.eq(IN_TURN)
    issues = names("slice_issues")
    label = "{" + block.name + "}"
    rules = (
        Rule(ahead.name, in_turn | Var(names("copy")).ne(SYNC), "copies through registers leave none to load ahead"),
        Rule(
            names("fragments_staged"),
            in_turn | Var(names("staged")).eq(len(nest.intrinsic.inputs)),
            "{" + names("staged") + "} operands come from shared memory, and all are loaded ahead",
        ),
        Rule(
            names("fragments_stages"),
            in_turn | (Var(names("stages")) >= 2),
            "the next slice's fragments are loaded ahead, and there is one stage",
        ),
        Rule(names("fragments_even"), in_turn | (block % 2).eq(0), label + " depth units of a slice: two take turns"),
        Rule(
            names("fragments_whole"),
            in_turn | (depth.units % block).eq(0),
            f"{depth.units} depth units are no whole slices of {label}",
        ),
        Rule(names("fragments_promoted"), in_turn | Var(names("promoted")).eq(0), "partial sums wait for their slice"),
        Rule(issues, in_turn | (Var(issues) <= BODY_LIMIT), "{" + issues + f"}} calls of one slice > {BODY_LIMIT}"),
    )  # fmt: skip
    extra: Int = Const(0)
    pair = gpu_pair(nest)
    for operand in nest.intrinsic.inputs:
        own = [a for a in pair if a in nest.operand_axes(operand.name)]
        each = thread_registers(operand, worker_threads(nest.intrinsic, target))
        both = 2 * prod((Var(names.register(a)) for a in own), start=Const(1))
        extra = extra + (both - held_tiles(nest, pair, operand.name, names)) * each
    return Step(
        "gpu fragments",
        (Decision(ahead.name, (IN_TURN, AHEAD), LABELS),),
        rules,
        {more: ahead * extra, issues: Var(names("accumulators")) * block},
        {ahead.name: Var(names("staged")).eq(0)},
    )
