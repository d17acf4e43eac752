"""Lowering: a plan and a row become a `Kernel`. Read `tensor_nest` (loops), then `microkernel` (one register tile)."""

from __future__ import annotations

from typing import assert_never

from autosched.codegen.kernel import Function, Kernel, Stmt
from autosched.codegen.lower.context import Context, called_functions, used_buffers
from autosched.codegen.lower.gpu_nest import lower_gpu
from autosched.codegen.lower.literal import lower_literal
from autosched.codegen.lower.scalar import lower_rows, lower_scalar, prepare_scalar
from autosched.codegen.lower.tensor_nest import lower_tensor
from autosched.tiling.plan import LiteralPart, Plan, RowsPart, ScalarPart, TensorPart
from autosched.tiling.schedule import Schedule


def lower(plan: Plan, schedule: Schedule) -> Kernel:
    """The kernel of one row. Every legal row lowers."""
    ctx = Context(plan.program, schedule.values)
    for name in plan.program.parameters:
        if name in plan.program.tensors:
            ctx.tensor(name)
    body: list[Stmt] = []
    for part in plan.parts:
        match part:
            case ScalarPart(prepared=True):
                prepare_scalar(part, ctx)
            case TensorPart():
                body += lower_gpu(part, ctx) if part.scheme == "gpu" else lower_tensor(part, ctx)
            case ScalarPart():
                body += lower_scalar(part, ctx)
            case RowsPart():
                body += lower_rows(part, ctx)
            case LiteralPart():
                body += lower_literal(part, ctx)
            case _:
                assert_never(part)
    used = set(used_buffers(tuple(body)))
    scopes = ("global", "packed", "workspace")
    order = sorted(
        (b for b in ctx.buffers.values() if b.scope in scopes and b.name in used), key=lambda b: scopes.index(b.scope)
    )
    prepared = {name for f in ctx.prepare for name in (*f.buffers, *used_buffers(f.body))}
    needed = {n: b for n, b in ctx.buffers.items() if n in used | prepared}
    main = Function("main", tuple(b.name for b in order), tuple(body))
    called = set(called_functions((*body, *(s for f in ctx.prepare for s in f.body))))
    counts = [schedule.values.get(p.names("threads"), 1) for p in plan.parts if not isinstance(p, LiteralPart)]
    return Kernel(
        plan.program.name,
        plan.program,
        needed,
        tuple(ctx.prepare),
        main,
        max(counts, default=1),
        dict(schedule.named),
        plan.target.isa,
        {f.name: f for f in plan.formulas.values() if f.name in called},
    )


__all__ = ["lower"]
