"""A candidate cut down until an interpreter can run it: the same plan and schedule for a program whose loops are
shorter, and its tensors no longer than these reach; guards and address formulas stay. Decisions that the shorter loops
do not have take their nearest value."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from autosched.device.simulator.verify.cut_alike import cut_as_reductions
from autosched.ir.nodes import Axis, Guard, Loop, Statement
from autosched.ir.program import Program
from autosched.ir.value import reads
from autosched.logic import Const, Int, interval
from autosched.tiling.analysis.dependence import analyse
from autosched.tiling.plans.fallback import scalar_fallback
from autosched.tiling.plans.float_policy import FloatPolicy
from autosched.tiling.plans.nest import make_nest
from autosched.tiling.plans.plan import (
    FusedLoopsPart,
    LiteralPart,
    Part,
    Plan,
    ScalarPart,
    TensorPart,
    TileLoopsPart,
    WarpCooperativePart,
)
from autosched.tiling.space.schedule import Schedule
from autosched.tiling.space.space import Space
from autosched.tiling.steps.part_steps import part_steps

CAPS = ((70, 68), (54, 52), (37, 36), (27, 28), (19, 20), (13, 12), (9, 8), (5, 4), (64, 128))
"""Longest spatial and reduction loops of cut-down programs, in the order in which they are tried: such that
tiles do not divide the spatial ones, and unrolling does divide the others. The last is for a GPU's large tiles and wide
copies, which need lengths that they divide."""
MOST_REPAIRS = 24
"""Steps by which decisions may be lowered until a schedule fits a cut-down program."""


def smaller(plan: Plan, most: tuple[int, int], threads: int) -> Plan | None:
    """The plan cut down; None where that cannot be, or where what one stage reads another would no longer write."""
    small = cut(plan.program, most, cut_as_reductions(plan))
    if unwritten(small) - unwritten(plan.program):
        return None
    try:
        return cut_plan(plan, small, threads)
    except (ValueError, LookupError):
        return None


def cut(program: Program, most: tuple[int, int], summed: Collection[str] = ()) -> Program:
    """The program with no spatial, no reduction loop of constant bounds longer than `most`, and smaller tensors;
    addresses and guards stay. `summed`: loops that are cut as reductions are."""
    reduced = {a.name for s in program.stages for a in s.reduction} | set(summed)

    def shorter(stmt: Statement) -> Statement:
        match stmt:
            case Loop(axis, body):
                if isinstance(axis.lower, Const) and isinstance(axis.upper, Const):
                    limit = axis.lower.value + most[axis.name in reduced]
                    axis = Axis(axis.name, axis.lower, Const(min(axis.upper.value, limit)))
                return replace(stmt, axis=axis, body=tuple(map(shorter, body)))
            case Guard(_, body):
                return replace(stmt, body=tuple(map(shorter, body)))
            case _:
                return stmt

    return narrowed(replace(program, body=tuple(map(shorter, program.body))))


def narrowed(program: Program) -> Program:
    """The program with tensors no longer than its loops reach; data-dependent subscripts reach anywhere."""
    written, read = _reach(program, True), _reach(program, False)
    tensors = {}
    for name, tensor in program.tensors.items():
        both = zip(written[name], read[name], tensor.extents, strict=True)
        tensors[name] = replace(tensor, shape=tuple(Const(max(1, min(extent, max(w, r)))) for w, r, extent in both))
    return replace(program, tensors=tensors)


def unwritten(program: Program) -> set[str]:
    """Tensors that the program writes, and reads beyond what its loops write."""
    written, read = _reach(program, True), _reach(program, False)
    return {
        name for name in (s.target.tensor for s in program.stages)
        if any(r > w for w, r in zip(written[name], read[name], strict=True))
    }  # fmt: skip


def _reach(program: Program, writes: bool) -> dict[str, list[int]]:
    """How far the program's loops write, or read, each tensor: one past the last index of each dimension."""
    reach = {name: [0] * len(t.shape) for name, t in program.tensors.items()}
    for stage in program.stages:
        ranges: dict[str, tuple[int, int]] = {}
        for axis in stage.axes:
            low, high = interval(axis.lower, ranges)[0], interval(axis.upper, ranges)[1] - 1
            ranges[axis.name] = low, max(low, high)
        start = () if stage.init is None else tuple(reads(stage.init))
        for at in (stage.target,) if writes else (*stage.reads, *start):
            extents = program.tensors[at.tensor].extents
            for d, part in enumerate(at.index):
                high = interval(part, ranges)[1] + 1 if isinstance(part, Int) else extents[d]
                reach[at.tensor][d] = max(reach[at.tensor][d], high)
    return reach


def cut_plan(plan: Plan, program: Program, threads: int) -> Plan:
    """The same plan for a cut-down program. ValueError or LookupError where its nests cannot be cut."""
    stages = {s.name: s for s in program.stages}
    parts: list[Part] = []
    for part in plan.parts:
        match part:
            case TensorPart() if part.nest.computed:
                raise ValueError("operands computed on the way are not cut")
            case TensorPart() if part.nest.groups is not None:
                raise ValueError("sums of groups are not cut")
            case TensorPart():
                mapping = replace(part.nest.mapping, program=program, stage=stages[part.nest.stage.name])
                behind = tuple(replace(f, stage=stages[f.stage.name]) for f in part.epilogue)
                start = part.start and replace(part.start, stage=stages[part.start.stage.name])
                part = replace(part, nest=make_nest(mapping), epilogue=behind, start=start)
                if part.fallback is not None:
                    policy = FloatPolicy(formulas=plan.formulas)
                    spare = scalar_fallback(program, part.computed_stages, analyse(program), threads, policy)
                    part = replace(part, fallback=spare)
            case ScalarPart():
                part = replace(part, stage=stages[part.stage.name])
            case FusedLoopsPart():
                part = replace(part, members=tuple(replace(m, stage=stages[m.stage.name]) for m in part.members))
            case WarpCooperativePart():
                part = replace(part, members=tuple(stages[m.name] for m in part.members))
            case LiteralPart():
                whole = [s for s, old in zip(program.body, plan.program.body, strict=True) if old in part.body]
                part = replace(part, body=tuple(whole))
            case TileLoopsPart():
                raise ValueError("tile loops are not cut")
        parts.append(part)
    space = Space(plan.name, part_steps(parts, program, plan.target, threads))
    return Plan(plan.name, program, plan.target, tuple(parts), space, formulas=plan.formulas)


def nearest_row(space: Space, schedule: Schedule) -> tuple[int, list[str]] | None:
    """A legal row with the schedule's values where the space has them, and the decisions that had to differ. Where
    rules are broken, decisions they depend on are lowered one step at a time; None where that does not help."""
    values: dict[str, int] = {}
    for d in space.decisions:
        want = schedule.values.get(d.name, d.domain[0])
        values[d.name] = want if want in d.domain else max((v for v in d.domain if v <= want), default=d.domain[0])
    for _ in range(MOST_REPAIRS):
        row = int(space.canonical([space.row_of(values)])[0])
        broken = space.violated(row)
        if not broken:
            chosen = space.schedule(row)
            return row, [f"{k}={v}" for k, v in chosen.named.items() if chosen.values[k] != schedule.values.get(k)]
        tries = []
        for k in sorted(space.depends_on(broken[0].holds)):
            d = space.decisions[k]
            at = d.domain.index(values[d.name])
            if at > 0:
                lower = values | {d.name: d.domain[at - 1]}
                tries.append((len(space.violated(int(space.canonical([space.row_of(lower)])[0]))), -at, k, lower))
        if not tries:
            return None
        values = min(tries, key=lambda t: t[:3])[3]
    return None
