"""How much of what products compute masks leave out: register tiles and blocks reach across a mask's edges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from autosched.costmodel.analytic.cpu.guard_work import drops, useful_share
from autosched.ir.program import Program
from autosched.ir.work import share_needed
from autosched.tensorize.explanation.padding import WORTH_SAYING
from autosched.tiling.analysis.left_behind import left_behind
from autosched.tiling.plans.plan import Plan, TensorPart, TileLoopsPart


def masked_lines(plan: Plan, row: int) -> list[str]:
    """For each product whose row computes much that a mask leaves out: the share within the mask."""
    said = {(of, part.nest.intrinsic.name): useful for of, part, useful in _under_masks(plan, row)}
    return [
        f"about {useful:.0%} of what {name} computes of {of} is within the mask, {1 - useful:.0%} beyond"
        for (of, name), useful in said.items()
        if useful < WORTH_SAYING
    ]


def useful_json(plan: Plan, row: int) -> dict[str, dict[str, float]]:
    """Two fields of `show --json`: by stage the share of an instruction's work that is no padding; by product (a stage,
    `S_block in j_block_2` in a tile loop) the share that no mask leaves out, of those of which it is known."""
    return {
        "useful": {m.stage.name: round(m.utilisation, 6) for m in plan.mappings},
        "useful_under_mask": {of: round(useful, 6) for of, _, useful in _under_masks(plan, row)},
    }


def _under_masks(plan: Plan, row: int) -> Iterator[tuple[str, TensorPart, float]]:
    """Each product of which that is known, its part, and the share of what it computes that no mask leaves out."""
    values = plan.space.values([row])
    for part, around, program in _products(plan, (), plan.program):
        useful = None
        if part.scheme == "cpu":
            useful = useful_share(part.nest, part.names, values, around)
        elif part.scheme == "gpu" and not drops(part.nest):  # its blocks are computed whole
            stage = next((s for s in program.stages if s.name == part.nest.stage.name), None)
            useful = share_needed(program, stage, [t.axis for p in around for t in p.loops]) if stage else None
        if useful is not None:
            where = f" in {around[-1].loops[-1].name}" if around else ""
            yield f"{part.nest.stage.name}{where}", part, useful


def _products(
    plan: Plan, around: tuple[TileLoopsPart, ...], program: Program
) -> Iterator[tuple[TensorPart, tuple[TileLoopsPart, ...], Program]]:
    """The products of a plan, each with the loops around it, and the program of the innermost one's body."""
    for part in plan.parts:
        if isinstance(part, TensorPart):
            yield part, around, program
        elif isinstance(part, TileLoopsPart):
            yield from _products(part.member, (*around, part), _body(part, program))


def _body(part: TileLoopsPart, around: Program) -> Program:
    """The program of a loop's body, whose own are also the intermediates of the program around of which no other stage
    reads what the loop leaves there."""
    body, tensors = part.member.program, dict[str, bool]()
    for name, window in part.windows.items():
        if around.tensors[window.tensor].intermediate:
            tensors[name] = not left_behind(around, window.tensor, part.stages)
    own = {n: replace(t, intermediate=t.intermediate or tensors.get(n, False)) for n, t in body.tensors.items()}
    return replace(body, tensors=own)
