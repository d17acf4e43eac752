"""Software prefetch: of the operand that streams through the depth loop, and of the output tile."""

from __future__ import annotations

from autosched.logic import Int, Var, all_of, where
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.step_names import StepNames, blocked_axes, tiled_axes
from autosched.tiling.step import Decision, Handle, Rule, Step
from autosched.tiling.steps.common.computed import element_bytes, loaded
from autosched.tiling.steps.common.layout import tensor_elements
from autosched.tiling.steps.cpu.block_panel import cache_bytes
from autosched.tiling.steps.cpu.columns import STREAMED_BYTES
from autosched.tiling.steps.cpu.pack import PANEL
from autosched.tiling.steps.cpu.parallel import split_axes

NO, NEXT, NEAR, FAR = 0, 1, 8, 64
"""`NEAR` and `FAR` are depth units ahead: of what comes from the second level of cache, and of what streams from
memory. `NEXT` is the next block of a panel, shared out among the passes of the rows over this one."""
FAR_BYTES = 16 << 10
"""As far ahead at least, in a panel: a tile of 16 rows and one register (64 bytes a unit) reads 64 MiB at 23 GB/s from
4 KiB ahead, at 27 from 16 KiB (f32, Zen 5)."""
NEXT_SHARE = 4
"""This block and the next one may fill one part in so many of the second level of cache each. Two passes of 8 rows and
two registers: 29 GB/s with blocks of 128 KiB, 28 with 256 KiB, 25 with 512 KiB, and 24 from `FAR`."""
PREFETCH = Handle("prefetch", NO)
PREFETCH_OUT = Handle("prefetch_out", 0)


def streams(nest: Nest) -> bool:
    """Whether an operand is so large that it is taken to come from memory."""
    return streamed_bytes(nest) > STREAMED_BYTES


def streamed_bytes(nest: Nest) -> int:
    """Bytes of the largest operand."""
    return int(max(tensor_elements(nest, o.name) * element_bytes(nest, o.name) for o in nest.intrinsic.inputs))


def passed_over(nest: Nest) -> str | None:
    """The operand whose panel each tile of the rows reads anew: it has the lanes and the depth, and there are no other
    loops. None where there is no such operand."""
    lanes, rows, depth = blocked_axes(nest)
    if nest.intrinsic.matrices is not None:
        return None
    if lanes is None or rows is None or depth is None or depth is not nest.depth:
        return None
    if [a for a in nest.rows if a.units > 1] != [rows]:
        return None
    tiled = [a for a in tiled_axes(nest) if a is not rows]
    axes = {o.name: nest.operand_axes(o.name) for o in nest.intrinsic.inputs}
    found = [o for o, mine in axes.items() if depth in mine and lanes in mine and rows not in mine]
    return found[0] if len(found) == 1 and tiled == [lanes] else None


def _held_in_cache(nest: Nest) -> bool:
    """Whether the output is a tile of loops around that nothing outside of them reads. Attention on AMX took 6 % of its
    time to ask for lines that were there."""
    program = nest.mapping.program
    return bool(program.names_around) and program.tensors[nest.stage.assign.tensor].intermediate


def prefetch(nest: Nest, target: Target, threads: int, names: StepNames, keep: bool) -> Step:
    """`prefetch`: how far ahead the operand on the lanes is asked for; `prefetch_out`: whether the output tile is asked
    for before its reduction starts, where sums are kept (`keep`) and do not stay in a cache anyway. Asking for the next
    block wants several passes over this one. Where a space has too many rows to search `prefetch`, kernels prefetch
    streamed operands far ahead; that excludes no value of another decision."""
    domain = (0,) if _held_in_cache(nest) else (0, 1)
    out = (Decision(names(PREFETCH_OUT.name), domain, ("no", "yes")[: len(domain)]),) if keep else ()
    if nest.depth is None or not nest.lanes:
        return Step("prefetch", out)
    column = names(PREFETCH.name)
    if nest.intrinsic.matrices is not None:
        return Step("prefetch", (Decision(column, (NO,)), *out))  # asking for rows of matrices ahead gained nothing
    if any(loaded(nest, o.name) for o in nest.intrinsic.inputs):
        inside = bool(nest.mapping.program.names_around)  # of loops, whose next windows lie behind this one in a panel
        beyond = (inside or streamed_bytes(nest) > cache_bytes(target)) and nest.depth.units > FAR
        far = Decision(column, (NO, FAR), ("no", "far")) if beyond else Decision(column, (NO,), ("no",))
        return Step("prefetch", (far, *out))
    if not streams(nest):
        near = Decision(column, (NO, NEAR), ("no", "near")) if nest.depth.units > NEAR else Decision(column, (NO,))
        return Step("prefetch", (near, *out))
    far = Decision(column, (NO, FAR), ("no", "far"), late=FAR) if nest.depth.units > FAR else Decision(column, (NO,))
    operand, (lanes, rows, depth) = passed_over(nest), blocked_axes(nest)
    if operand is None or lanes is None or rows is None or depth is None or len(far.domain) == 1:
        return Step("prefetch", (far, *out))
    several = [Var(names.pack(operand)).eq(PANEL), names.var("inner").eq(0), Var(names.tiles(rows)) > 1]
    several.append(names.var(f"blocks_{rows.name}").eq(1))
    if threads > 1 and rows in split_axes(nest):
        several.append(names.var("threads").eq(1) | names.var("split").ne(split_axes(nest).index(rows)))
    o, block = nest.intrinsic.operands[operand], Var(names.block(depth))
    units = where(block.eq(0), depth.units, block)
    size, most = names("next_bytes"), cache_bytes(target) // NEXT_SHARE
    asking = Var(column).eq(NEXT)
    rules = (
        Rule(column, asking.implies(all_of(*several)), "one pass of rows over each block of a panel"),
        Rule(size, asking.implies(Var(size) <= most), f"a block of {{{size}}} bytes is asked for (at most {most:,})"),
    )
    derived: dict[str, Int] = {size: units * Var(names.register(lanes)) * (o.elements * o.dtype.bytes)}
    return Step("prefetch", (Decision(column, (NO, FAR, NEXT), ("no", "far", "next"), late=FAR), *out), rules, derived)
