"""Operands computed where registers are loaded: a value of elements from narrow panels, or from their tensors."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from math import prod

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.lower.common.operands.left_behind import LeftBehind, left_behind
from autosched.codegen.lower.common.operands.panels import panel
from autosched.codegen.lower.common.operands.sources import MemorySource, OperandSource
from autosched.codegen.lower.common.operands.words import PlaceInWord, in_float, in_word
from autosched.codegen.lower.common.positions import Position, elements
from autosched.codegen.tree.kernel import Buffer, Function, Prefetch
from autosched.codegen.tree.rename import place
from autosched.ir.dtypes import dtype
from autosched.ir.value import Arith, Cast, FromIndex, Read, Value, map_value, walk
from autosched.logic import Binary, Bool, Const, Int, Var, all_of, free_vars, interval
from autosched.logic.walk import substitute_int
from autosched.tiling.analysis.nontemporal import LINE_BYTES
from autosched.tiling.plans.integer_differences import lifted, map_differences
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.plan import TensorPart
from autosched.tiling.steps import DIRECT, PANEL, tiled_axes
from autosched.tiling.steps.common.computed import PAIR, SourceElement, group_units, kept_parts, sources
from autosched.tiling.steps.cpu.computed_once import ONCE, once_of
from autosched.tiling.steps.cpu.prefetch import FAR_BYTES


@dataclass(frozen=True)
class ComputedSource:
    """An operand's source that computes each element of `held`: what it is computed from, and where that lies. `kept`:
    parts of the value with the registers that hold them for a group of depth units, one for each of the operand's;
    `behind`: where registers stay for other tiles."""

    nest: Nest
    operand: str
    held: Mapping[Read, tuple[SourceElement, MemorySource]]
    kept: Mapping[Value, str]
    tiled: tuple[NestAxis, ...]
    behind: LeftBehind | None = None

    def keep(self, at: dict[str, Position], element: Int) -> list[tuple[Read, Value, Bool]]:
        """For each part that is kept: the register's element, its value at a place, and where that is real."""
        return [
            (Read(name, (*self.register, element), part.dtype), *self.value(part, at, element))
            for part, name in self.kept.items()
        ]

    @property
    def register(self) -> tuple[Int, ...]:
        return tuple(Var(f"{identifier(a.name)}r") for a in self.tiled)

    def load(self, at: dict[str, Position], element: Int) -> tuple[Value, Bool]:
        """The value of register element `element` at a place, and under which condition it is real (else zero)."""
        held = {part: Read(name, (*self.register, element), part.dtype) for part, name in self.kept.items()}
        wanted = map_differences(self.nest.computed[self.operand].value, lambda a, b: self.in_floats(a, b, at))
        return self.value(_with(wanted, held), at, element, {*held.values()})

    def in_floats(self, left: Value, right: Value, at: dict[str, Position]) -> tuple[Value, Value] | None:
        """The sides of a difference of integers as floats, with an element of a long word where it stands in that."""
        for k, (side, other) in enumerate(((left, right), (right, left))):
            match lifted(side):
                case (Read() as read, base) if read in self.held and self.held[read][0].joined:
                    source = self.held[read][0]
                    if source.word > PAIR:
                        new, moved = in_float(read), self.place_in(source, at).moved(other, base)
                        return (new, moved) if k == 0 else (moved, new)
        return None

    def place_in(self, source: SourceElement, at: dict[str, Position]) -> PlaceInWord:
        """Where the element of a depth unit stands in its word."""
        assert self.nest.depth is not None
        return PlaceInWord(source, in_word(at[self.nest.depth.name], source.word)[1])

    def value(
        self, wanted: Value, at: dict[str, Position], element: Int, registers: Set[Value] = frozenset()
    ) -> tuple[Value, Bool]:
        """A value over the program's axes at a place; `registers` are reads of registers in it."""
        axes = self.nest.at(elements(self.nest, at, self.nest.lane_coordinates(self.operand, element)))
        # An axis of the program may have the lane's name, which registers are addressed by.
        apart: dict[Value, Read] = {
            r: Read(f"{r.tensor} of a group", (), r.dtype) for r in registers if isinstance(r, Read)
        }
        elements_of: dict[Value, Value] = {stand_in: r for r, stand_in in apart.items()}
        valid: list[Bool] = []
        inside = {v for v in walk(wanted) if isinstance(v, Read)} - registers
        wanted = self.in_pair(_with(wanted, apart), at)
        for read, (source, memory) in self.held.items():
            if not {read, in_float(read)} & inside:
                continue
            found, real = memory.load(self.seen_by(source, at), element)
            elements_of[place(read, axes)] = self.place_in(source, at).element(found) if source.joined else found
            if source.joined:
                elements_of[place(in_float(read), axes)] = self.place_in(source, at).in_float(found)
            valid.append(real)
        return place(wanted, axes, lambda r: elements_of.get(r, r)), all_of(*valid)

    def ahead(self, at: dict[str, Position], counts: Mapping[str, int], units: int) -> tuple[Prefetch, ...]:
        """Ask for the lines of the narrow panels that a trip of so many depth units reads of a register tile, FAR_BYTES
        and more after the trip that begins at `at`."""
        depth, stmts = self.nest.depth, list[Prefetch]()
        assert depth is not None
        registers = prod(counts.get(a.name, 1) for a in self.tiled)
        elements = self.nest.intrinsic.operands[self.operand].elements
        for source, memory in self.held.values():
            if not (source.panel and source.moves(self.operand)):
                continue
            size = memory.buffer.dtype.bytes
            span = registers * elements * size * units // source.word
            later = Position(None, at[depth.name].unit + max(1, -(-FAR_BYTES // max(1, span))) * units)
            read, _ = memory.load(self.seen_by(source, at | {depth.name: later}), Const(0))
            assert isinstance(read, Read)
            first = {f"{identifier(a.name)}r": Const(0) for a in self.tiled}
            index = [substitute_int(i, first) for i in read.index if isinstance(i, Int)]
            for line in range(-(-span // LINE_BYTES)):
                stmts.append(Prefetch(read.tensor, (*index[:-1], index[-1] + line * (LINE_BYTES // size))))
        return tuple(stmts)

    def seen_by(self, source: SourceElement, at: dict[str, Position]) -> dict[str, Position]:
        """The place as a source's nest has it: with the number of the group in place of the depth unit."""
        depth = self.nest.depth
        if depth is None or not (source.grouped or source.word > 1):
            return at
        here = at[depth.name]
        if source.word > 1:
            return at | {depth.name: Position(None, in_word(here, source.word)[0])}
        first = here.unit if here.group is None else here.group
        return at | {depth.name: Position(None, _quotient(first, group_units(self.nest, self.operand)))}


    def in_pair(self, value: Value, at: dict[str, Position]) -> Value:
        """The value with its place in a pair of depth units (`p % 2`) as the trip knows it: mostly a constant, by which
        shifting costs less. Bytes are shifted in words: vectors of bytes have no shift, and both units share a word."""
        if not any(source.word > 1 and not source.joined for source, _ in self.held.values()):
            return value
        assert self.nest.depth is not None
        [(name, _, _)] = self.nest.depth.members
        ranges, word = {name: (0, self.nest.depth.extent - 1)}, dtype("u32")
        _, place = in_word(at[self.nest.depth.name], PAIR)

        def placed(node: Int) -> Int:
            match node:
                case Binary("%", Var(inner), Const(2)) if inner == name:
                    return place
                case Binary(op, left, right):
                    return Binary(op, placed(left), placed(right))
            return node

        def on_value(node: Value) -> Value:
            match node:
                case Arith(">>", left, FromIndex(by), kept) if kept.kind == "uint" and free_vars(by) <= ranges.keys():
                    least, most = interval(by, ranges)
                    if least >= 0 and most < kept.bits < word.bits:
                        return Cast(Arith(">>", Cast(left, word), FromIndex(by, word), word), kept)
            return node

        def on_index(node: Value) -> Value:
            return FromIndex(placed(node.index), node.dtype) if isinstance(node, FromIndex) else node

        return map_value(map_value(value, on_value), on_index)


def _quotient(first: Int, units: int) -> Int:
    """Which group of so many units begins with, or has, this one."""
    match first:
        case Binary("*", number, Const(size)) if size == units:
            return number
    return first // units


def _with(value: Value, parts: Mapping[Value, Read]) -> Value:
    """The value with these parts read from registers."""
    return map_value(value, lambda v: parts.get(v, v)) if parts else value


def computed_source(part: TensorPart, operand: str, ctx: Context) -> ComputedSource:
    """The source of an operand that is computed in the load; `prepare` functions fill its narrow panels."""
    nest = part.nest
    register = {a.name: ctx.values[part.names.register(a)] for a in tiled_axes(nest)}
    held: dict[Read, tuple[SourceElement, MemorySource]] = {}
    for source in sources(nest, operand) or ():
        tensor = ctx.tensor(source.read.tensor)
        if source.panel:
            buffer, body = panel(source.nest, operand, register, tensor, ctx)
            buffer = ctx.buffers[buffer.name] = Buffer(buffer.name, buffer.dtype, buffer.shape, "packed", tensor.name)
            ctx.prepare.append(Function(f"prepare_{buffer.name}", (tensor.name, buffer.name), body))
            memory = MemorySource(source.nest, operand, PANEL, buffer)
        else:
            memory = replace(MemorySource(source.nest, operand, DIRECT, tensor), inside=True)
        held[source.read] = source, memory
    tiled = tuple(a for a in tiled_axes(nest) if a in nest.operand_axes(operand))
    shape = (*(register[a.name] for a in tiled), nest.intrinsic.operands[operand].elements)
    kept = {p: ctx.declare(f"{operand}_kept", p.dtype, shape, "register").name for p in kept_parts(nest, operand)}
    once = once_of(operand).of(part.names, ctx.values) == ONCE
    behind = left_behind(part, operand, tiled, ctx) if once else None
    return ComputedSource(nest, operand, held, kept, tiled, behind)


def computed_first(
    sources: Mapping[str, OperandSource], first: Int
) -> tuple[dict[str, OperandSource], dict[str, OperandSource]] | None:
    """The sources of the first tile that visits the depth from unit `first` on, and of those behind it; None where all
    tiles are alike."""
    own, behind = dict[str, OperandSource](), dict[str, OperandSource]()
    for name, source in sources.items():
        if isinstance(source, ComputedSource) and source.behind is not None:
            behind[name] = left = replace(source.behind, first=first)
            own[name] = replace(source, behind=left)
    return ({**sources, **own}, {**sources, **behind}) if own else None
