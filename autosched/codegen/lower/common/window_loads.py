"""One register tile and a whole window, unrolled: equal loads become one, each right before its first use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, product

from autosched.codegen.lower.common.context import identifier
from autosched.codegen.lower.common.operands.sources import OperandSource
from autosched.codegen.lower.common.positions import LANE, Position
from autosched.codegen.tree.kernel import Assign, IntrinsicCall, Lane, RegisterRef, Stmt
from autosched.codegen.tree.rename import place
from autosched.ir.value import Read, Value
from autosched.logic import Affine, Binary, Bool, Compare, Const, Int, Var, conjuncts, free_vars
from autosched.logic.walk import substitute_bool
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.steps import StreamedWindow

Point = dict[str, int]
"""Loop variable to value: register units of the tile (`xr`) and units of the window (`su`)."""
Key = tuple[int, ...]


@dataclass(frozen=True)
class WindowRegisters:
    """A register buffer of (registers, elements) for each input, and of (…, elements) for the accumulator."""

    inputs: Mapping[str, str]
    accumulator: str
    accumulator_index: tuple[Int, ...]


@dataclass(frozen=True)
class Load:
    """An operand's load with the loop variables in it, and what of it depends on them."""

    value: Value
    valid: Bool
    forms: tuple[Affine, ...] | None

    def key(self, point: Point) -> Key:
        """Equal for two points only where they load the same."""
        if self.forms is None:
            return tuple(point.values())
        return tuple(sum(c * point.get(n, 0) for n, c in f.coefficients.items()) for f in self.forms)


def shared_step(
    window: StreamedWindow,
    intrinsic: Intrinsic,
    sources: Mapping[str, OperandSource],
    registers: WindowRegisters,
    at: Mapping[str, Position],
    tile: Sequence[tuple[NestAxis, int]],
) -> tuple[Stmt, ...]:
    """All calls of the tile (axes with their units), over the whole window.

    They are sorted by what they load of the operand that streams; each of its registers is then in use for one run of
    calls, and the other operands' registers stay for one position of the outer axes.
    """
    stmts: list[Stmt] = []
    for variant, partial in _variants(window):
        here = dict(at) | {
            a.name: Position(None, Const(a.full_units) if a in partial else Var(_unit(a)), a in partial)
            for a in window.axes
        }
        ranges = [(f"{identifier(a.name)}r", range(n)) for a, n in tile] + variant
        moving = frozenset(v for v, _ in ranges)
        loads = {o.name: _load(sources[o.name], here, o.elements, moving) for o in intrinsic.inputs}
        points = [dict(zip([v for v, _ in ranges], p, strict=True)) for p in product(*(r for _, r in ranges))]
        outer = [f"{identifier(a.name)}r" for a in window.outer]

        def group_of(point: Point, outer: list[str] = outer) -> Key:
            return tuple(point[v] for v in outer)

        streamed = loads[window.operand]
        points.sort(key=lambda p: (group_of(p), streamed.key(p)))
        for _, group in groupby(points, group_of):
            stmts += _group(list(group), window, intrinsic, loads, registers)
    return tuple(stmts)


def _group(
    points: list[Point],
    window: StreamedWindow,
    intrinsic: Intrinsic,
    loads: Mapping[str, Load],
    registers: WindowRegisters,
) -> list[Stmt]:
    """The calls of one position of the outer axes."""
    stmts: list[Stmt] = []
    held: dict[str, dict[Key, int]] = {o: {} for o in loads}
    for point in points:
        variables: dict[str, Int] = {v: Const(n) for v, n in point.items()}
        refs: dict[str, RegisterRef] = {}
        for operand, load in loads.items():
            slots, key = held[operand], load.key(point)
            if operand == window.operand and key not in slots:
                slots.clear()  # the one before has been used for the last time
            if key not in slots:
                slots[key] = len(slots)
                n = intrinsic.operands[operand].elements
                lane = Lane(LANE, n) if n > 1 else None
                index = (Const(slots[key]), Var(LANE) if lane else Const(0))
                value, valid = place(load.value, variables), substitute_bool(load.valid, variables)
                stmts.append(Assign(registers.inputs[operand], index, value, lane, valid))
            refs[operand] = RegisterRef(registers.inputs[operand], (Const(slots[key]),))
        sums = tuple(variables.get(i.name, i) if isinstance(i, Var) else i for i in registers.accumulator_index)
        refs[intrinsic.accumulator.name] = RegisterRef(registers.accumulator, sums)
        stmts.append(IntrinsicCall(intrinsic, refs))
    return stmts


def _variants(window: StreamedWindow) -> list[tuple[list[tuple[str, range]], tuple[NestAxis, ...]]]:
    """The window's whole units, then for each axis whose last unit is partial that unit: (ranges, partial axes)."""
    variants: list[tuple[list[tuple[str, range]], tuple[NestAxis, ...]]] = [([], ())]
    for axis in window.axes:
        parts: list[tuple[list[tuple[str, range]], tuple[NestAxis, ...]]] = []
        for ranges, partial in variants:
            if axis.full_units:
                parts.append(([*ranges, (_unit(axis), range(axis.full_units))], partial))
            if axis.extent % axis.unit:
                parts.append((ranges, (*partial, axis)))
        variants = parts
    return variants


def _unit(axis: NestAxis) -> str:
    return f"{identifier(axis.name)}u"


def _load(source: OperandSource, at: Mapping[str, Position], elements: int, moving: frozenset[str]) -> Load:
    """The operand's load at a place, where the variables `moving` are those of points."""
    value, valid = source.load(dict(at), Var(LANE) if elements > 1 else Const(0))
    if not isinstance(value, Read):
        return Load(value, valid, None)
    parts: list[Int | None] = [i if isinstance(i, Int) else None for i in value.index]
    parts += [p.left - p.right if isinstance(p, Compare) else None for p in conjuncts(valid)]
    forms = [None if part is None else _moves(part, moving) for part in parts]
    known = tuple(f for f in forms if f is not None)
    return Load(value, valid, known if len(known) == len(forms) else None)


def _moves(node: Int, moving: frozenset[str]) -> Affine | None:
    """How much `node` grows with the variables `moving`, whatever the others do; None where that is no plain sum."""
    if not free_vars(node) & moving:
        return Affine()
    match node:
        case Binary("+" | "-" as op, left, right):
            a, b = _moves(left, moving), _moves(right, moving)
            return None if a is None or b is None else a.plus(b, 1 if op == "+" else -1)
        case Binary("*", left, Const(factor)):
            a = _moves(left, moving)
            return None if a is None else a.scaled(factor)
        case Var(name):
            return Affine({name: 1})
        case _:
            return None
