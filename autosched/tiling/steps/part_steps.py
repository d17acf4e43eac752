"""The steps of a plan's parts, in order: together the plan's space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from math import prod

from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.tiling.plans.outputs import output_accesses
from autosched.tiling.plans.plan import (
    FusedLoopsPart,
    Part,
    ScalarPart,
    TensorPart,
    TileLoopsPart,
    WarpCooperativePart,
)
from autosched.tiling.space.base import MOST_ROWS
from autosched.tiling.step import NOTHING_TO_DECIDE, Decision, Step, deciding_steps
from autosched.tiling.steps.common.tile_loops import tile_loops_step
from autosched.tiling.steps.gpu.block_tile import is_gpu
from autosched.tiling.steps.gpu.bodies.held_rows import AHEAD, MEETING, RESIDENT, ROWS
from autosched.tiling.steps.gpu.bodies.tile_loops import grid_steps
from autosched.tiling.steps.nest_steps import nest_steps
from autosched.tiling.steps.scalar.scalar_steps import choices_of, rows_step, scalar_step
from autosched.tiling.steps.scalar.team_steps import team_choices, team_step

LAST = ("threads", ROWS.name, AHEAD.name, MEETING.name, RESIDENT.name)
"""Names of decisions that are held last where a space has too many rows."""


def part_steps(parts: Sequence[Part], program: Program, target: Target, threads: int) -> list[Step]:
    """The steps of all parts, with as many rows as an id numbers; what is prepared before a run, or stays as written,
    decides nothing."""
    steps = _steps(parts, program, target, threads)
    return numbered(steps) if steps else [NOTHING_TO_DECIDE]


def _steps(parts: Sequence[Part], program: Program, target: Target, threads: int) -> list[list[Step]]:
    """The steps of each part with all values."""
    choices = choices_of(parts, target)
    steps: list[list[Step]] = []
    for part in parts:
        match part:
            case TensorPart():
                steps.append(nest_steps(part.nest, target, threads, part.names, output_accesses(part), part.keep))
            case ScalarPart(prepared=False):
                steps.append([scalar_step(part, threads, choices)])
            case FusedLoopsPart():
                steps.append([rows_step(part, threads, choices)])
            case WarpCooperativePart():
                steps.append([team_step(part, program, target, team_choices(parts))])
            case TileLoopsPart() if is_gpu(target):
                # Of values that a block has: what the body alone would have held may be none of them.
                member = part.member
                inside = [s for own in _steps(member.parts, member.program, member.target, threads) for s in own]
                steps.append(grid_steps(part, inside, program.tensors, target))
            case TileLoopsPart():
                steps.append([tile_loops_step(part, threads), *deciding_steps(part.member.space.steps)])
            case _:
                pass
    return steps


def numbered(parts: Sequence[Sequence[Step]]) -> list[Step]:
    """The steps of all parts. Where they span more rows than an id numbers, decisions of several values are held at
    one until they do not: first those that matter little (`Decision.held`), then the last of each part in turn, inside
    tile loops too, since later steps refine what earlier ones lay out. Threads, which were asked for, and whether warps
    hold rows, on which most of a body hangs, come last."""
    rows = prod(len(d.domain) for steps in parts for s in steps for d in s.decisions)
    held = set()
    for decision in _refining([d for steps in parts for s in steps for d in s.decisions]):
        if rows < MOST_ROWS:
            break
        rows //= len(decision.domain)
        held.add(decision.name)

    def kept(decision: Decision) -> Decision:
        if decision.name not in held:
            return decision
        value = decision.late if decision.held is None else decision.held
        k = 0 if value is None else decision.domain.index(value)
        return replace(decision, domain=decision.domain[k : k + 1], labels=decision.labels[k : k + 1])

    return [replace(s, decisions=tuple(map(kept, s.decisions))) for steps in parts for s in steps]


def _refining(decisions: Sequence[Decision]) -> Iterator[Decision]:
    """Decisions of several values, those first that matter least. A part's have names alike up to the last dot."""
    several = [d for d in decisions if len(d.domain) > 1]
    last = [d for d in several if d.name.rpartition(".")[2] in LAST]
    others = [d for d in several if d not in last]
    for group in ([d for d in others if d.held is not None], [d for d in others if d.held is None], last):
        parts: dict[str, list[Decision]] = {}
        for d in group:
            parts.setdefault(d.name.rpartition(".")[0], []).append(d)
        yield from (d for turn in zip_longest(*map(reversed, parts.values())) for d in turn if d is not None)
