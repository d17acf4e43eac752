"""Cycles of scalar stages on a CPU: instructions of the vectors, chains of dependent additions.

A loop body takes as long as issuing it, or as the latency of its accumulators where there are too few; a stage (or a
row of stages) takes as long as that, or as moving its tensors (`scalar_memory`).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.codegen.lower.common.invariant import split_invariant
from autosched.codegen.passes.transposed_copies import FEWEST, MOST
from autosched.ir.formula import Formula, Formulas
from autosched.ir.nodes import Axis, Stage
from autosched.ir.program import Program
from autosched.ir.value import Arith, Call, Literal, Read, Scalar, Value, blank, is_plain, reads, walk
from autosched.ir.variables import index_vars
from autosched.logic import Const
from autosched.machine.target import Target
from autosched.tiling.analysis.nontemporal import LINE_BYTES
from autosched.tiling.plans.asked_once import asked_once
from autosched.tiling.plans.plan import ScalarPart
from autosched.tiling.plans.scalar_parts import is_constant, side_by_side, slope_along
from autosched.tiling.steps.scalar.scalar_steps import ACROSS, lanes_of

Column = npt.NDArray[np.float64]
LATENCY = 4.0  # of an addition or a fused product, cycles
PER_CYCLE = 2.0  # vector instructions, and loads, a cycle
CALL_CYCLES = 12.0  # a call into the math library, an element
FORMULA_PER_CYCLE = 3.0  # steps of a formula a cycle: half of them are products, the others go to other units
DIVISION_CYCLES = 4.0  # a quotient or a root, a register
STEP_CYCLES = 1.5  # a trip of a loop
GATHER_CYCLES = 6.0  # an element a line or more from the one before: most wait for a line of their own
TURN_CYCLES = 1.5  # one step of combining the lanes of a register beside other work (Zen 5: 200 rows of 77, 6.7 a row)
STRIDED = 2.0  # how much slower rows arrive when little of each is read before the next
SLOW = ("exp", "log", "tanh", "erf", "sigmoid", "rsqrt")
"""Functions that are a library call, or a formula where there is one."""
_ANY = float(1 << 20)  # elements: a multiple of every width, so that all vectors are full
EXTENT = 64  # a bound that depends on other axes: any guess ranks alike, since all rows share it


def scalar_cycles(part: ScalarPart, v: Mapping[str, Any], rows: int, program: Program, target: Target) -> Column:
    """Cycles of one thread for all of a stage, memory aside. Rows that ask the data once are taken not to compute."""
    stage, names = part.stage, part.names

    def column(name: str, default: float) -> Column:
        known = v[names(name)] if names(name) in v else np.full(rows, default)
        return np.asarray(known, np.float64)

    width, unroll = column("vector", 1), column("unroll", 1)
    across = column("lanes", ACROSS) * (width > 1) if part.across else np.zeros(rows)
    together = column("rows", 1)
    formulas = column("math", 0)
    element = max(stage.assign.value.dtype.bytes, *(r.dtype.bytes for r in stage.reads), 1)
    length = np.where(across > 0, *(_length(stage, axis) for axis in (part.across, part.vector)))
    filled = np.minimum(width, length)
    registers = np.maximum(1.0, filled * element / target.limits.get("vector_bytes", 16))
    changing = _changing(part)
    nodes = [n for n in walk(changing) if not isinstance(n, Read | Literal | Scalar)]
    slow = [n for n in nodes if isinstance(n, Call) and n.function in SLOW]
    quotients = sum(_divides(n) for n in nodes)
    issue = ((len(nodes) + 1.0) / PER_CYCLE + quotients * DIVISION_CYCLES) * registers
    for read in reads(changing):
        along = _load(read, part.across, filled, registers, program, _beside(read, part.rows, together))
        if part.rows and part.rows not in index_vars(read.index):
            along = along / together
        issue = issue + np.where(across > 0, along, _load(read, part.vector, filled, registers, program))
    if transposes(part):
        issue = np.where((width >= FEWEST) & (width <= MOST), (2.0 + np.log2(width)) / PER_CYCLE * registers, issue)
    known = part.policy.formulas
    for call in slow:
        library = CALL_CYCLES * filled
        formula = known.get((call.function, call.dtype.name)) or known.get((call.function, "f32"))
        cycles_ = formula_cycles(formula) * registers if formula else library
        issue = issue + np.where(formulas > 0, cycles_, library)
    issue = issue + STEP_CYCLES / np.where(width > 1, unroll * np.where(across > 0, together, 1.0), 1.0)
    chains = np.where(width > 1, unroll * np.where(across > 0, together, 1.0), 1.0)
    summed = bool(stage.reduction) and part.register
    block = column("block", 0)
    waits = LATENCY / chains if summed else np.zeros(rows)
    if part.carried:
        waits = LATENCY * max(1, len(nodes)) / together
    body = np.where(block > 0, issue + registers * 3.0 / PER_CYCLE / np.maximum(1.0, block), np.maximum(issue, waits))
    passed = stage.spatial if part.running else stage.axes  # a running sum takes each term once
    points = float(max(1, prod(extent(a) for a in passed)))
    cycles: Column = points / length * np.ceil(length / width) * body  # the last one may be filled in part
    results = float(prod(extent(a) for a in stage.spatial))
    combining = (np.log2(np.maximum(1.0, width)) + unroll) * TURN_CYCLES / np.minimum(together, 4.0)
    total: Column = cycles + np.where(across > 0, results * combining, 0.0)
    if asked := asked_once(stage):
        return np.where((width > 1) & (across == 0), total, results * (STEP_CYCLES + len(asked) / PER_CYCLE))
    return total


def element_cycles(value: Value, formulas: Formulas, target: Target) -> float:
    """Cycles to compute a value on one element of a register that holds finished sums: formulas in vectors, library
    calls one by one."""
    lanes = max(1.0, target.limits.get("vector_bytes", 16) / value.dtype.bytes)
    nodes = [n for n in walk(value) if not isinstance(n, Read | Literal | Scalar)]
    cycles = (len(nodes) / PER_CYCLE + DIVISION_CYCLES * sum(map(_divides, nodes))) / lanes
    for call in nodes:
        if isinstance(call, Call) and call.function in SLOW:
            formula = formulas.get((call.function, call.dtype.name)) or formulas.get((call.function, "f32"))
            cycles += formula_cycles(formula) / lanes if formula else CALL_CYCLES
    return cycles


def formula_cycles(formula: Formula) -> float:
    """Cycles of a formula for one register: its operations, divisions and roots apart; a number's bits cost nothing."""
    values = [*(step for _, step in formula.steps), formula.result]
    nodes = [n for v in values for n in walk(v) if not isinstance(n, Read | Literal | Scalar)]
    divisions = sum(_divides(n) for n in nodes)
    free = sum(isinstance(n, Call) and n.function.startswith("bits_") for n in nodes)
    return divisions * DIVISION_CYCLES + (len(nodes) - divisions - free) / FORMULA_PER_CYCLE


def _divides(node: Value) -> bool:
    """Whether a node is a quotient or a root of floats."""
    match node:
        case Arith("/", _, _, dtype):
            return dtype.is_float
        case Call("sqrt", _, _):
            return True
        case _:
            return False


def _length(stage: Stage, axis: str | None) -> float:
    """Elements along an axis that lies in the lanes; as many as anything where bounds depend on other axes."""
    known = next((a.extent for a in stage.axes if a.name == axis and is_constant(a)), 0)
    return float(known) if known > 0 else _ANY


def _load(
    read: Read, axis: str | None, width: Column, registers: Column, program: Program, beside: Column | float = 1.0
) -> Column:
    """Cycles to load one vector of what is read, with this axis in its lanes, where so many vectors `beside` each other
    are loaded.

    Elements less than a line apart come out of the vectors that span them, each with a load, which vectors beside each
    other share, and a shuffle. f32 on Zen 5, 16 that lie 4 apart: 3.7 cycles, and 2.0 each of four columns."""
    moving = axis is not None and axis in index_vars(read.index)
    if not moving:
        return np.full_like(width, 0.0 if axis else 1.0 / PER_CYCLE)
    assert axis is not None
    if side_by_side(read, axis):
        return registers / PER_CYCLE
    apart = apart_along(read, axis, program)
    if apart is None or apart * read.dtype.bytes >= LINE_BYTES:
        return np.where(width > 1, GATHER_CYCLES * width, 1.0)
    return np.where(width > 1, registers * apart * (1.0 + 1.0 / np.minimum(beside, max(1, apart))) / PER_CYCLE, 1.0)


def _beside(read: Read, axis: str | None, together: Column) -> Column:
    """How many of the rows that are computed together read neighbours."""
    return together if axis is not None and side_by_side(read, axis) else np.ones_like(together)


def apart_along(read: Read, axis: str, program: Program) -> int | None:
    """How many elements lie in memory from one read to the next along an axis; None where that is no constant."""
    elements = 0
    for index, length in zip(read.index, program.tensors[read.tensor].extents, strict=True):
        slope = slope_along(index, axis)
        if slope is None:
            return None
        elements = elements * length + slope
    return abs(elements)


def transposes(part: ScalarPart) -> bool:
    """Whether the stage copies elements that lie apart along its lanes and side by side along another axis: rows of
    vectors are transposed in registers then (`codegen.passes.transposed_copies`). A register takes a load, a store and
    a shuffle for each bit of the row's number: 512x512 of f32 some 6 cycles on Zen 5, misses in L1 among them."""
    stage, lane = part.stage, part.vector
    value = stage.assign.value
    if lane is None or not isinstance(value, Read) or not is_plain(value.index) or stage.guards or stage.reduction:
        return False
    moved = lane in index_vars(value.index) and not side_by_side(value, lane)
    return moved and any(side_by_side(value, a.name) for a in stage.spatial if a.name != lane and extent(a) >= MOST)


def _changing(part: ScalarPart) -> Value:
    """The value without the parts that are computed once before the inner loops."""
    assign = part.stage.assign
    inner = [a.name for a in part.stage.reduction] if part.register else [part.vector or ""]
    split = split_invariant(assign.value, frozenset(inner), assign.tensor)
    return split.with_parts(tuple(blank(p.dtype) for p in split.parts))


def scattered(part: ScalarPart, v: Mapping[str, Any], rows: int) -> Column:
    """How much slower memory is where vectors of results run down an operand: each of its rows gives a few bytes."""
    names = part.names
    down = part.register and any(side_by_side(r, part.vector or "") for r in part.stage.reads if part.stage.reduction)
    if not down or names("vector") not in v:
        return np.ones(rows)
    block = v[names("block")] if names("block") in v else np.zeros(rows)
    across = v[names("lanes")] if names("lanes") in v else np.full(rows, lanes_of(part, {}))
    return np.where((block == 0) & (across == 0), STRIDED, 1.0)


def extent(axis: Axis) -> int:
    if isinstance(axis.lower, Const) and isinstance(axis.upper, Const):
        return max(1, axis.extent)
    return EXTENT
