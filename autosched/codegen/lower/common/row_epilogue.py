"""Fused stages of many steps behind a register tile: a loop over its rows in place of as many copies of their code.

    acc[i, j, :16]  for i in 0..6, j in 0..4, unrolled      the sums, stored together
    for i in 0..6:                                          what follows, a row at a time
      P[i, j, :16] = gelu(waiting[i, j, :16])  unrolled over j

While sums are in registers, few are left for what a function's polynomial is made of: each copy of it loads its
constants anew, and those of all registers are more code than a core decodes in time. The tile is in the first cache.
"""

from __future__ import annotations

from math import prod

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.common.sums import Sums
from autosched.ir.value import UNARY_FUNCTIONS, Call, Value, walk
from autosched.tiling.plans.plan import TensorPart
from autosched.tiling.steps import tiled_axes
from autosched.tiling.steps.cpu.register_transpose import transposed_row

LEAST_VECTORS = 8
"""Registers of a tile: those of fewer are not worth a loop."""
LEAST_BYTES = 64
"""Of a register: machines with those have 32, and a loop over a row keeps a function's constants in them."""
SIMPLE = {*UNARY_FUNCTIONS, "fma"}


def waiting(part: TensorPart, ctx: Context, threads: int) -> Sums | None:
    """Where a tile's sums wait for a loop over its rows; None where what follows is computed in registers."""
    nest, tiled = part.nest, tiled_axes(part.nest)
    factors = [ctx.values[part.names.register(a)] for a in tiled]
    elements, dtype = nest.intrinsic.accumulator.elements, nest.intrinsic.accumulator.dtype
    few = prod(factors) < LEAST_VECTORS or factors[0] == 1 or elements * dtype.bytes < LEAST_BYTES
    if few or transposed_row(nest) is not None or not any(_long(f.stage.assign.value) for f in part.epilogue):
        return None
    shape = (threads, *factors, elements)
    buffer = ctx.declare(f"{nest.stage.assign.tensor}_tile", dtype, shape, "workspace")
    return Sums(buffer.name, (), threads)


def _long(value: Value) -> bool:
    """Whether it has a function that steps of a formula compute."""
    return any(isinstance(node, Call) and node.function not in SIMPLE for node in walk(value))
