"""The register tile: how many intrinsic tiles of the output stay in registers while the reduction runs."""

from __future__ import annotations

from autosched.logic import Const, Int, Var, ceil_div
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Operand
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames, tiled_axes
from autosched.tiling.step import Decision, Rule, Step
from autosched.tiling.steps.common.computed import kept_parts, loaded, long_words

ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28)
OUTER_ROWS = (1, 2, 4)
LANES = (1, 2, 3, 4, 5, 6, 8)


def register_tile(nest: Nest, target: Target, names: StepNames) -> Step:
    """One decision per tiled axis (in intrinsic tiles), and the rule that accumulators and operands fit the registers.

    Axes are unrolled in order, rows outside lanes: an operand that varies only with an inner axis is held in registers
    for all of it, any other needs one at a time.
    """
    tiled = tiled_axes(nest)
    rows = [a for a in tiled if not a.intrinsic_axis]
    decisions: list[Decision] = []
    derived: dict[str, Int] = {}
    for axis in tiled:
        values = LANES if axis.intrinsic_axis else ROWS if axis is rows[-1] else OUTER_ROWS
        decisions.append(Decision(names.register(axis), tuple(v for v in values if v <= axis.units)))
        derived[names.tiles(axis)] = ceil_div(axis.units, Var(names.register(axis)))

    accumulators: Int = Const(1)
    for axis in tiled:
        accumulators = accumulators * Var(names.register(axis))
    wide = {o.name: registers_of(nest, o, target) for o in nest.intrinsic.operands.values()}
    accumulator = nest.intrinsic.accumulator.name
    registers = accumulators * wide[accumulator]
    for operand in nest.intrinsic.inputs:
        registers = registers + held_tiles(nest, tiled, operand.name, names) * wide[operand.name]
        if loaded(nest, operand.name):
            kept = len(kept_parts(nest, operand.name)) + long_words(nest, operand.name)
            registers = registers + kept * operand_tiles(nest, tiled, operand.name, names) * wide[operand.name] + 1
    derived[names("accumulators")] = accumulators
    derived[names("registers")] = registers
    limit = register_limit(nest, target)
    kind = "vector" if nest.intrinsic.matrices is None else "matrix"
    sentence = "{" + names("registers") + f"}} {kind} registers > {limit}"
    return Step(
        "register tile",
        tuple(decisions),
        (Rule(names("registers"), Var(names("registers")) <= limit, sentence),),
        derived,
    )


def held_tiles(nest: Nest, tiled: tuple[NestAxis, ...], operand: str, names: StepNames) -> Int:
    """How many registers of an input are live at once: those along the axes it has, unless they are the outermost."""
    held = [a for a in tiled if a in nest.operand_axes(operand)]
    total: Int = Const(1)
    if held != list(tiled[: len(held)]):
        for axis in held:
            total = total * Var(names.register(axis))
    return total


def operand_tiles(nest: Nest, tiled: tuple[NestAxis, ...], operand: str, names: StepNames) -> Int:
    """How many intrinsic tiles of an input a register tile has."""
    total: Int = Const(1)
    for axis in tiled:
        if axis in nest.operand_axes(operand):
            total = total * Var(names.register(axis))
    return total


def registers_of(nest: Nest, operand: Operand, target: Target) -> int:
    """Machine registers that one value of the operand fills."""
    if nest.intrinsic.matrices is not None:
        return 1
    width = target.limits.get("vector_bytes", 16)
    return max(1, -(-operand.elements * operand.dtype.bits // 8 // width))


def register_limit(nest: Nest, target: Target) -> int:
    """Registers that one register tile may fill: the instruction's own, or vector registers."""
    if nest.intrinsic.matrices is not None:
        return nest.intrinsic.matrices.count
    return int(target.limits.get("vector_registers", 16))


def one_tile_fits(nest: Nest, target: Target) -> bool:
    """Whether the smallest register tile is legal: one register value of each operand."""
    operands = nest.intrinsic.operands.values()
    return sum(registers_of(nest, o, target) for o in operands) <= register_limit(nest, target)
