"""Lowering: a plan and a row become a `Kernel`.

Read `cpu.tensor_nest` (loops), then `common.register_tile` (one register tile).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from autosched.codegen.analysis.held_states import prove_states
from autosched.codegen.lower.common.checks import choose
from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.common.tile_loops import lower_tile_loops
from autosched.codegen.lower.cpu.tensor_nest import lower_tensor
from autosched.codegen.lower.scalar.literal import lower_literal
from autosched.codegen.lower.scalar.row_loops import lower_rows
from autosched.codegen.lower.scalar.scalar import lower_scalar, prepare_scalar
from autosched.codegen.lower.spatial.spatial_nest import lower_spatial
from autosched.codegen.passes.configured_once import configure_once
from autosched.codegen.passes.shared_panels import share_panels
from autosched.codegen.passes.transposed_copies import transpose_copies
from autosched.codegen.tree.kernel import Function, Kernel, Stmt
from autosched.codegen.tree.uses import called_functions, used_buffers
from autosched.ir.program import Program
from autosched.tiling.plans.plan import (
    FusedLoopsPart,
    LiteralPart,
    Otherwise,
    Part,
    Plan,
    ScalarPart,
    TensorPart,
    TileLoopsPart,
    WarpCooperativePart,
)
from autosched.tiling.space.schedule import Schedule
from autosched.tiling.steps.gpu.occupancy import REGISTER_LIMIT
from autosched.tiling.steps.scalar import handles


def lower(plan: Plan, schedule: Schedule) -> Kernel:
    """The kernel of one row. Every legal row lowers."""
    program = _with_tensors(plan.program, plan.otherwise.plan.program) if plan.otherwise else plan.program
    registers = plan.target.limits.get("registers_per_core", 65536)
    limits = _limits(plan, schedule)
    lanes = plan.target.limits.get("warp_threads", 1)
    ctx = Context(program, schedule.values, cores=plan.target.cores, lanes=lanes, registers=registers, limits=limits)
    for name in plan.program.parameters:
        if name in plan.program.tensors:
            ctx.tensor(name)
    body = _lower_parts(plan, ctx, bare=plan.otherwise is not None)
    counts = _thread_counts(plan, schedule.values)
    if plan.otherwise is not None:
        instead = _standing_by(plan.otherwise, ctx)
        body = choose([p.nest for p in plan.own_tensor_parts if p.guards], body, instead, ctx)
        counts += _thread_counts(plan.otherwise.plan, plan.otherwise.values)
    used = used_buffers(body)
    scopes = ("global", "packed", "workspace")
    order = sorted(
        (b for b in ctx.buffers.values() if b.scope in scopes and b.name in used), key=lambda b: scopes.index(b.scope)
    )
    prepared = {name for f in ctx.prepare for name in (*f.buffers, *used_buffers(f.body))}
    needed = {n: b for n, b in ctx.buffers.items() if n in used | prepared}
    main = Function("main", tuple(b.name for b in order), body)
    called = called_functions((*body, *(s for f in ctx.prepare for s in f.body))) if plan.formulas else set()
    kernel = Kernel(
        plan.program.name,
        program,
        needed,
        tuple(ctx.prepare),
        main,
        max(counts, default=1),
        dict(schedule.named),
        plan.target.isa,
        plan.relies,
        {f.name: f for f in plan.formulas.values() if f.name in called},
        plan.target.limits.get("vector_bytes", 16),
        ctx.barriers,
    )
    if on_vectors(plan):
        return transpose_copies(configure_once(share_panels(kernel)))
    prove_states(kernel)
    return kernel


def on_vectors(plan: Plan) -> bool:
    """Whether the kernel is a CPU's: its copies are vector code."""
    return plan.target.limits.get("warp_threads", 1) == 1 and all(p.scheme != "spatial" for p in plan.tensor_parts)


def _lower_parts(plan: Plan, ctx: Context, bare: bool = False) -> tuple[Stmt, ...]:
    """The statements of all parts."""
    return tuple(s for part in plan.parts for s in _lower_part(part, ctx, bare))


def _thread_counts(plan: Plan, values: Mapping[str, int]) -> list[int]:
    """The threads of each part."""
    return [_threads(p, values) for p in plan.parts]


def _standing_by(otherwise: Otherwise, ctx: Context) -> tuple[Stmt, ...]:
    """The statements of what stands by, in the kernel of what it stands by for. They are the same (one object, so that
    printers know them again) in all kernels that have taken the same names before."""
    before, prepared = dict(ctx.buffers), len(ctx.prepare)
    key = frozenset((b.name, b.scope) for b in before.values()), frozenset(ctx.barriers.items())
    if key not in otherwise.cache:
        program = _with_tensors(otherwise.plan.program, ctx.program)
        other = replace(ctx, program=program, values=otherwise.values, limits={})
        lowered = _lower_parts(otherwise.plan, other)
        more = {n: b for n, b in ctx.buffers.items() if before.get(n) is not b}
        otherwise.cache[key] = lowered, more, dict(ctx.barriers), tuple(ctx.prepare[prepared:])
    body: tuple[Stmt, ...]
    body, buffers, barriers, prepare = otherwise.cache[key]
    ctx.buffers |= buffers
    ctx.barriers |= barriers
    ctx.prepare[prepared:] = prepare
    return body


def _limits(plan: Plan, schedule: Schedule) -> dict[str, int]:
    """Registers that threads of each GPU nest may take."""
    names = [n for p in plan.tensor_parts if (n := p.names(REGISTER_LIMIT.name)) in plan.space.derived]
    values = plan.space.values(schedule.row) if names else {}
    return {n: int(values[n][0]) for n in names}


def _with_tensors(program: Program, other: Program) -> Program:
    """The program, knowing the names of another's tensors too: both live in one kernel."""
    return replace(program, tensors={**other.tensors, **program.tensors})


def _lower_part(part: Part, ctx: Context, bare: bool = False) -> tuple[Stmt, ...]:
    """The part's statements; `bare`: without the choice that its own fallback asks for."""
    match part:
        case ScalarPart(prepared=True):
            prepare_scalar(part, ctx)
            return ()
        case TensorPart(scheme="gpu"):  # a process that prints for a CPU loads nothing of it, nor of teams
            from autosched.codegen.lower.gpu.gpu_nest import lower_gpu

            return lower_gpu(part, ctx, ctx.cores)
        case TensorPart(scheme="spatial"):
            return lower_spatial(part, ctx)
        case TensorPart():
            body = lower_tensor(part, ctx)
            if part.fallback is None or bare:
                return body
            # Its buffers and preparations are the kernel's too.
            other = replace(ctx, values=part.fallback.values, limits={})
            otherwise = tuple(s for p in part.fallback.parts for s in _lower_part(p, other))
            return choose([part.nest], body, otherwise, ctx)
        case ScalarPart():
            return lower_scalar(part, ctx)
        case FusedLoopsPart():
            return lower_rows(part, ctx)
        case WarpCooperativePart():
            from autosched.codegen.lower.gpu_scalar.along_columns import lower_column_team
            from autosched.codegen.lower.gpu_scalar.along_rows import lower_row_team
            from autosched.codegen.lower.gpu_scalar.team import team_of

            lower_team = lower_row_team if part.across else lower_column_team
            return lower_team(part, ctx, team_of(part, ctx.values, ctx.lanes))
        case LiteralPart():
            return lower_literal(part, ctx)
        case TileLoopsPart() if ctx.lanes > 1:
            from autosched.codegen.lower.gpu.bodies.tile_loops import lower_block_loops

            return lower_block_loops(part, ctx, _lower_part)
        case TileLoopsPart():
            return lower_tile_loops(part, ctx, _lower_part)
        case _:
            assert_never(part)


def _threads(part: Part, values: Mapping[str, int]) -> int:
    """Threads of a part's parallel loops, those of its fallback included."""
    if isinstance(part, LiteralPart):
        return 1
    own = handles.THREADS.of(part.names, values)
    fallback = part.fallback if isinstance(part, TensorPart) else None
    return max([own, *(_threads(p, fallback.values) for p in fallback.parts)]) if fallback else own


__all__ = ["lower"]
