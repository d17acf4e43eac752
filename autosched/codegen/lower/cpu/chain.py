"""Lowering of a chain: a loop over tiles of rows, which threads share, and in it each part's nest for these rows.

What the chain hands on is written to and read from a tile of each thread's own, where the schedule places it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.cpu.tensor_nest import AxisRange, begin_nest, whole_ranges
from autosched.codegen.tree.kernel import Assign, Comment, For, If, IntrinsicCall, Prefetch, Stmt
from autosched.ir.value import Read, Value, map_value
from autosched.logic import Const, Int, Var, minimum
from autosched.tiling.plans.chain import Chain
from autosched.tiling.plans.plan import TensorPart
from autosched.tiling.steps import tiled_axes
from autosched.tiling.steps.cpu.chain import CHAIN_THREADS, PLACE, ROWS, TILE, rows_axis

VARIABLE = "tile"
"""The loop over tiles of rows. No axis has its name (`context.identifier`)."""


def lower_chain(chain: Chain, parts: Sequence[TensorPart], ctx: Context) -> tuple[Stmt, ...]:
    """All parts of the chain: what they pack, then the loop over tiles."""
    threads, rows = CHAIN_THREADS.of(chain.names, ctx.values), ROWS.of(chain.names, ctx.values)
    tiles = -(-chain.extent // rows)
    fills: list[Stmt] = []
    body: tuple[Stmt, ...] = ()
    for part in parts:
        before, nest = begin_nest(part, ctx, threads, _ranges(chain, part, ctx, rows))
        fills += before
        body += nest.outside()
    if PLACE.of(chain.names, ctx.values) == TILE:
        body = _in_tiles(chain, body, ctx, threads, rows)
    note = f"tiles of {rows} rows, all stages"
    if threads == 1:
        return (*fills, For(VARIABLE, Const(0), Const(tiles), body, note=note))
    thread = Var("thread")
    own = For(VARIABLE, thread * tiles // threads, (thread + 1) * tiles // threads, body, note=note)
    return (*fills, For(thread.name, Const(0), Const(threads), (own,), "parallel", note="threads share tiles of rows"))


def _ranges(chain: Chain, part: TensorPart, ctx: Context, rows: int) -> dict[str, AxisRange]:
    """What a part's nest covers in one tile of the chain."""
    axis = rows_axis(part.nest, chain)
    height = ctx.values[part.names.register(axis)] if axis in tiled_axes(part.nest) else 1
    each, whole = rows // height, -(-axis.units // height)
    lower, upper = Var(VARIABLE) * each, (Var(VARIABLE) + 1) * each
    here = AxisRange(lower, upper if whole % each == 0 else minimum(upper, whole))
    return whole_ranges(part, ctx) | {axis.name: here}


def _in_tiles(chain: Chain, body: tuple[Stmt, ...], ctx: Context, threads: int, rows: int) -> tuple[Stmt, ...]:
    """The statements with all that is handed on in a tile of each thread's own."""
    for handed in chain.handed:
        if handed.tensor not in ctx.buffers:
            continue  # it stays in registers
        whole = ctx.buffers[handed.tensor]
        shape = tuple(rows if d == handed.dimension else n for d, n in enumerate(whole.shape))
        owners: tuple[Int, ...] = (Var("thread"),) if threads > 1 else ()
        ctx.buffers[whole.name] = replace(whole, shape=(*((threads,) if owners else ()), *shape))
        body = _Tile(whole.name, handed.dimension, owners, rows).of(body)
    return body


@dataclass(frozen=True)
class _Tile:
    """A tensor of which a thread holds `rows` along a dimension: those of its tile."""

    tensor: str
    dimension: int
    owners: tuple[Int, ...]
    rows: int

    def of(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The statements, with the tile where they have the tensor."""
        return tuple(map(self._statement, body))

    def _statement(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For() | If():
                return replace(stmt, body=self.of(stmt.body))
            case Assign():
                stmt = replace(stmt, value=map_value(stmt.value, self._read))
                return replace(stmt, index=self._index(stmt.index)) if stmt.buffer == self.tensor else stmt
            case Prefetch(buffer=self.tensor):
                return replace(stmt, index=self._index(stmt.index))
            case Prefetch() | IntrinsicCall() | Comment():  # instructions on vectors take registers alone
                return stmt
            case _:
                raise AssertionError(f"{type(stmt).__name__} in a nest on vectors")

    def _read(self, value: Value) -> Value:
        if not isinstance(value, Read) or value.tensor != self.tensor:
            return value
        return replace(value, index=self._index(tuple(i for i in value.index if isinstance(i, Int))))

    def _index(self, index: tuple[Int, ...]) -> tuple[Int, ...]:
        begins = Var(VARIABLE) * self.rows
        return (*self.owners, *(i - begins if d == self.dimension else i for d, i in enumerate(index)))
