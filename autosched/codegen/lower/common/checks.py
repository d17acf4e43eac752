"""Run-time checks of what a mapping relies on: loops that scan a tensor and leave 0 where all of it lies in a range.

    low[e] = min(low[e], B[p, j + e]); high[e] = max(high[e], B[p, j + e])     vectors along the last dimension
    check[0] = whether some low[e] < -64 or some high[e] > 64

Checks of `const` data, and of what is prepared from it, are prepare functions; others run in front of the choice.
"""

from __future__ import annotations

from collections.abc import Sequence

from autosched.codegen.lower.common.checks_group import scan_groups
from autosched.codegen.lower.common.context import Context
from autosched.codegen.tree.kernel import Assign, Buffer, For, Function, GuardedDispatch, Lane, Stmt
from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.nodes import Assume
from autosched.ir.value import Arith, Cast, Comparison, Literal, Read, Select, Value
from autosched.logic import Const, Int, Var
from autosched.tiling.plans.nest import Nest

LANE = "e"
WIDEST_BYTES = 32
"""A register that every vector machine has; a scan is bound by memory soon."""
S32 = DTYPES["s32"]


def choose(nests: Sequence[Nest], body: tuple[Stmt, ...], fallback: tuple[Stmt, ...], ctx: Context) -> tuple[Stmt, ...]:
    """`body` where the conditions of the nests' mappings hold, else `fallback`, with what finds that out in front."""
    checks, before, note = [], list[Stmt](), []
    for nest, condition in ((n, c) for n in nests for c in n.mapping.conditions):
        stated, rule = condition.assume, condition.rule
        if stated is None:
            continue
        if rule is not None and ctx.program.known(rule.read.tensor):
            tensor = ctx.tensor(rule.read.tensor)
            check = ctx.declare(f"{tensor.name}_check", S32, (1,), "packed", tensor.name)
            scan = scan_groups(rule, nest, check, ctx)
            ctx.prepare.append(Function(f"prepare_{check.name}", (tensor.name, check.name), scan))
            checks.append(check.name)
            note.append(str(rule))
            continue
        tensor = ctx.tensor(stated.subject)
        known = ctx.program.known(stated.subject)
        check = ctx.declare(f"{tensor.name}_check", S32, (1,), "packed" if known else "workspace", tensor.name)
        scan = _scan(tensor, stated, check, ctx)
        if known:
            ctx.prepare.append(Function(f"prepare_{check.name}", (tensor.name, check.name), scan))
        else:
            before += scan
        checks.append(check.name)
        note.append(condition.text)
    return (*before, GuardedDispatch(tuple(checks), body, fallback, " and ".join(note)))


def _scan(tensor: Buffer, condition: Assume, check: Buffer, ctx: Context) -> tuple[Stmt, ...]:
    """Statements that give `check` 0 where every element of the tensor meets the condition, else 1."""
    dtype = tensor.dtype if tensor.dtype.bits >= 8 else S32  # packed elements are compared unpacked
    width = _width(tensor, dtype)
    extremes = _extremes(condition, dtype)
    names = [ctx.declare(f"{tensor.name}_{op}", dtype, (width,), "register").name for op, _ in extremes]
    broken = ctx.declare(f"{tensor.name}_broken", S32, (1,), "register").name
    lane = Lane(LANE, width)
    held_in = list(zip(names, extremes, strict=True))
    start = [Assign(name, (Var(LANE),), Literal(bound, dtype), lane) for name, (_, bound) in held_in]
    found: list[Stmt] = [*start, *_loops(tensor, dtype, held_in, lane)]
    held = Read(broken, (Const(0),), S32)
    found.append(Assign(broken, (Const(0),), Literal(0, S32)))
    joins: list[Stmt] = []
    for name, (op, bound) in held_in:
        extreme = Read(name, (Var("u"),), dtype)
        past = Comparison("<" if op == "min" else ">", extreme, Literal(bound, dtype))
        joins.append(Assign(broken, (Const(0),), Select(past, Literal(1, S32), held, S32)))
    found.append(For("u", Const(0), Const(width), tuple(joins), "unrolled"))
    found.append(Assign(check.name, (Const(0),), held))
    return tuple(found)


def _extremes(condition: Assume, dtype: DType) -> list[tuple[str, int]]:
    """The minima and maxima to look for, with their bounds; those that the type itself keeps need no look."""
    low, high = dtype.limits
    found = []
    if condition.low is not None and condition.low > low:
        found.append(("min", int(condition.low)))
    if condition.high is not None and condition.high < high:
        found.append(("max", int(condition.high)))
    return found


def _width(tensor: Buffer, dtype: DType) -> int:
    """Elements looked at together: a register's worth, but no more than the last dimension has."""
    width, most = WIDEST_BYTES // dtype.bytes, tensor.shape[-1] if tensor.shape else 1
    while width > most:
        width //= 2
    return max(1, width)


def _loops(tensor: Buffer, dtype: DType, extremes: list[tuple[str, tuple[str, int]]], lane: Lane) -> list[Stmt]:
    """Loops over all elements, the last dimension in vectors and one partial vector."""
    outer = [Var(f"i{d}") for d in range(len(tensor.shape) - 1)]
    full, rest = divmod(tensor.shape[-1], lane.width) if tensor.shape else (0, 1)

    def update(at: Int | None, partial: int) -> tuple[Stmt, ...]:
        index: tuple[Int, ...] = () if at is None else (*outer, at + Var(LANE))
        element: Value = Read(tensor.name, index, tensor.dtype)
        element = element if tensor.dtype == dtype else Cast(element, dtype)
        stmts: list[Stmt] = []
        for name, (op, _) in extremes:
            held = Read(name, (Var(LANE),), dtype)
            value: Value = Arith(op, held, element, dtype)
            if partial:  # other lanes keep what they have found
                value = Select(Var(LANE) < partial, value, held, dtype)
            stmts.append(Assign(name, (Var(LANE),), value, lane))
        return tuple(stmts)

    if not tensor.shape:
        return list(update(None, 0))
    inner: list[Stmt] = []
    if full:
        step = lane.width
        inner.append(For("j", Const(0), Const(full * step), update(Var("j"), 0), step=step))
    if rest:
        inner += update(Const(full * lane.width), rest)
    for var, extent in zip(reversed(outer), reversed(tensor.shape[:-1]), strict=True):
        inner = [For(var.name, Const(0), Const(extent), tuple(inner))]
    return inner
