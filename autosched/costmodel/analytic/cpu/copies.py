"""What filling copies of operands costs inside the timed call: panels, whole or a block at a time, and copies of
tensors in another shape.

Cycles a register of a panel were measured on Zen 5 over matrices of 128² to 512² elements: f32 rows 4 to 6, pairs of
bf16 5 and groups of four bytes 6 to 7 from two and four runs, single elements and groups that are splat 0.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.codegen.lower.common.invariant import split_invariant
from autosched.costmodel.analytic.cpu.scalar_cycles import CALL_CYCLES, PER_CYCLE, SLOW, formula_cycles
from autosched.ir.formula import NO_FORMULAS, Formulas
from autosched.ir.value import Call, Literal, Read, blank, walk
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.steps import (
    BLOCK,
    DIRECT,
    INTERLEAVED,
    PADDED,
    PANEL,
    WHOLE,
    StepNames,
    last_tiles,
    vectorises,
)
from autosched.tiling.steps.common.computed import loaded
from autosched.tiling.steps.common.layout import filled, panel_elements, runs, tensor_elements
from autosched.tiling.steps.cpu.copy_granularity import copy_of
from autosched.tiling.steps.cpu.parallel import split_axes

ELEMENT_CYCLES = 0.8  # one element, or one group of neighbours that is splat, copied by itself
VECTOR_CYCLES = 4.5  # one vector of neighbours: a load, a store, and lines that come from the second level of cache
AGAIN_CYCLES = 1.5  # the same where another place of the window has just read it (depthwise 3x3: nine times)
RUN_CYCLES = 2.0  # one run of a vector that is put together from several
PAD_CYCLES = 0.03  # one byte of a padded copy (vector moves)
GROUP_CYCLES = 0.06  # one byte of an interleaved copy (loads of neighbours, shuffles)
LAST_SHARE = 0.75  # part of the last cache that a tensor and its copy may fill
READ_AND_WRITE = 3.0  # times that a panel which outgrows a cache moves: its line fetched, written back, the tensor read

Columns = Mapping[str, npt.NDArray[Any]]
Column = npt.NDArray[np.float64]


def copy_seconds(
    nest: Nest, names: StepNames, v: Columns, target: Target, formulas: Formulas = NO_FORMULAS, *, least: bool = False
) -> Column:
    """Seconds that the busiest thread fills copies inside the timed call; `const` operands are filled before it.
    `formulas` are those that functions in what is computed on the way may be replaced by.

    Whole copies are shared by the threads. A panel of a block belongs to one thread: what several threads work on alike
    each of them packs. With `least`, a lower bound that reads nothing about blocks: filled once, by all threads.
    """
    threads = v[names("threads")].astype(np.float64)
    seconds = np.zeros(len(threads))
    for o in nest.intrinsic.inputs:
        if o.name not in nest.computed and nest.mapping.program.known(nest.mapping.operands[o.name].tensor):
            continue
        kind = v[names.pack(o.name)]
        cycles = register_cycles(nest, o.name) + computing_cycles(nest, o.name, formulas)
        once = cycles * registers(nest, o.name) / target.clock_hz
        size = tensor_elements(nest, o.name) * o.dtype.bytes
        panel = panel_elements(nest, o.name) * o.dtype.bytes
        far = READ_AND_WRITE * panel / outside_caches(nest, o.name, target, panel)
        seconds += np.where(kind == PANEL, (once + far) / threads, 0.0)
        if (kind == BLOCK).any():
            refills = 1 if least else v[names(f"refills_{o.name}")]
            sharing = threads if least else _sharing(nest, names, o.name, v)
            seconds += np.where(kind == BLOCK, once * np.maximum(refills, 1) / sharing, 0.0)
        seconds += np.where(kind == DIRECT, once * _ends_share(nest, names, o.name, v) / threads, 0.0)
        seconds += np.where(kind == PADDED, PAD_CYCLES * size / target.clock_hz / threads, 0.0)
        seconds += np.where(kind == INTERLEAVED, GROUP_CYCLES * size / target.clock_hz / threads, 0.0)
        if not least:
            granularity = v.get(names(copy_of(o.name).name))
            outside = outside_last if granularity is None else outside_caches
            rate = outside(nest, o.name, target, size)
            whole = np.isin(kind, (PADDED, INTERLEAVED)) & (True if granularity is None else granularity == WHOLE)
            seconds += np.where(whole, READ_AND_WRITE * size / rate / threads, 0.0)
    return seconds


def _ends_share(nest: Nest, names: StepNames, operand: str, v: Columns) -> Column | float:
    """The share of a panel of all of the operand that those of the ends of its axes are, where registers that are cut
    there come from such."""
    ends = last_tiles(nest, names, operand, v)
    return sum(((axis.units - full * size) / axis.units for axis, size, full in ends), 0.0)


def register_cycles(nest: Nest, operand: str) -> float:
    """Cycles to copy one register of the operand into a panel, what is splat only once."""
    inside = width(nest, operand)
    if vectorises(nest, operand):
        if inside != filled(nest, operand) or inside == 1:
            return ELEMENT_CYCLES
        fresh = min(1.0, tensor_elements(nest, operand) / panel_elements(nest, operand))
        return fresh * VECTOR_CYCLES + (1.0 - fresh) * AGAIN_CYCLES
    few = runs(nest, operand)
    return ELEMENT_CYCLES * inside if few is None else RUN_CYCLES * few


def computing_cycles(nest: Nest, operand: str, formulas: Formulas) -> float:
    """Cycles to compute what one register of a panel holds, but for what stays along the depth. A formula takes its
    steps for each register, where that is splat for each element (silu of 96x2048 in rows of a panel: some 0.6 ms more
    than in vectors behind a product, on an Emerald Rapids); a library is called for each element."""
    if operand not in nest.computed or loaded(nest, operand):
        return 0.0
    depth = frozenset(m for a in nest.reduction for m, _, _ in a.members)
    split = split_invariant(nest.computed[operand].value, depth, "")
    changing = split.with_parts(tuple(blank(p.dtype) for p in split.parts))
    nodes = [v for v in walk(changing) if not isinstance(v, Read | Literal)]
    known = {formula.name: formula for formula in formulas.values()}
    cycles = len(nodes) / PER_CYCLE
    for call in (v for v in nodes if isinstance(v, Call)):
        if call.function in known:
            cycles += formula_cycles(known[call.function])
        elif call.function in SLOW:
            cycles += CALL_CYCLES * width(nest, operand)
    return cycles


def width(nest: Nest, operand: str) -> int:
    """Distinct elements of one register, or of one row where it holds a matrix."""
    if nest.intrinsic.matrices is not None:
        return filled(nest, operand)
    if operand in nest.intrinsic.windows:
        return nest.intrinsic.operands[operand].elements
    names = nest.intrinsic.operand_axes[operand]
    return prod(a.unit for a in nest.operand_axes(operand) if a.intrinsic_axis in names)


def registers(nest: Nest, operand: str) -> float:
    """Registers (or rows of them) of a panel of all of the operand."""
    return panel_elements(nest, operand) / width(nest, operand)


def outside_caches(nest: Nest, operand: str, target: Target, copy: int) -> float:
    """Bytes a second of the innermost level, past the second, that holds the tensor and a copy of so many bytes;
    without end where the second does."""
    both = copy + tensor_elements(nest, operand) * nest.intrinsic.operands[operand].dtype.bytes
    for level in target.memories:
        if level.bytes >= both and level.name not in ("registers", "L1"):
            return float("inf") if level.name == "L2" else level.bandwidth_bytes_per_s or 4.0 * target.clock_hz
    return 4.0 * target.clock_hz


def outside_last(nest: Nest, operand: str, target: Target, copy: int) -> float:
    """Bytes a second of main memory where the last cache does not hold the tensor and a copy of so many bytes; without
    end where it does (interleaving 16 MiB takes five times as long a byte as GROUP_CYCLES; Zen 5, 32 MiB of L3)."""
    both = copy + tensor_elements(nest, operand) * nest.intrinsic.operands[operand].dtype.bytes
    caches = [m for m in target.memories if m.name.startswith("L") and m.bytes]
    memory = target.memories[-1] if target.memories else None
    if not caches or memory is None or both <= LAST_SHARE * max(m.bytes for m in caches):
        return float("inf")
    return memory.core_bandwidth_bytes_per_s or memory.bandwidth_bytes_per_s or 4.0 * target.clock_hz


def _sharing(nest: Nest, names: StepNames, operand: str, v: Columns) -> Column:
    """Threads that share out the packing of an operand's blocks: all, where they split one of its axes, else none."""
    threads = v[names("threads")].astype(np.float64)
    if int(threads.max(initial=1)) == 1:
        return threads
    mine = nest.operand_axes(operand)
    own = [k for k, axis in enumerate(split_axes(nest)) if axis in mine]
    return np.where(np.isin(v[names("split")], own), threads, 1.0)
