"""Elements below a byte, each a byte of its own in memory, gathered to the words that a fragment's load takes."""

from __future__ import annotations

from collections.abc import Iterator

from autosched.codegen.c_like.blocks import loop_head
from autosched.codegen.cuda.fragments.fragments import LANE, Layout
from autosched.codegen.cuda.scope import CudaScope
from autosched.codegen.tree.kernel import Buffer
from autosched.ir.value import Value, map_value
from autosched.logic import TRUE, Int, Var
from autosched.logic.walk import substitute_bool, substitute_int

TURN, INSIDE = ".turn", ".x"
WORD_BITS = 32


def gathered(
    scope: CudaScope, value: Value, lane: str, piece: Buffer, layout: Layout, warp: Int, by_columns: bool
) -> Iterator[str]:
    """Lines that fill a warp's piece of shared memory with a fragment: each lane makes a word at a time. `value` is the
    element whose row-major number is the variable `lane`; the first lies in the lowest bits."""
    rows, columns = layout.buffer_shape
    words, bits = piece.shape[-1], layout.dtype.bits
    each, turns = WORD_BITS // bits, -(-words // scope.lanes)
    with scope.ranged({TURN: (0, turns - 1), INSIDE: (0, each - 1)}):
        word = Var(TURN) * scope.lanes + Var(LANE)
        place = word * each + Var(INSIDE)
        here = {lane: place % rows * columns + place // rows if by_columns else place}
        mine = map_value(value, lambda v: v, lambda i: substitute_int(i, here), lambda b: substitute_bool(b, here))
        element = f"(static_cast<uint32_t>({scope.values.stored(mine)}) & {(1 << bits) - 1:#x}u)"
        x, turn = scope.spell(INSIDE), scope.spell(TURN)
        store = f"{scope.element(piece.name, (warp, word))} = word;"
        guard = scope.simplifier.condition(word < words)
        condition = "" if guard == TRUE else f"if ({scope.index.condition(guard)}) "
    yield "{" if turns == 1 else f"{loop_head('int', turn, turns)} {{"
    yield "    uint32_t word = 0;"
    yield "    #pragma unroll"
    yield f"    {loop_head('int', x, each)} word |= {element} << {x} * {bits};"
    yield f"    {condition}{store}"
    yield "}"
