"""What a mapping says, done literally in plain Python: tile by tile, operand by operand, the instruction's own program
on what the mapping says that its operands hold, and anything at all where it says nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Assign, Guard, Loop, Stage
from autosched.ir.program import Program
from autosched.ir.value import Logical
from autosched.logic import And, Const, Var
from autosched.logic.expr import Compare
from autosched.tensorize import Mapping

from .plain import Memory, Writer, formula, function, runner

MOST_LANES = 200_000
FILL = ("fill",)


class Wrong(Exception):
    """The mapping cannot mean what the program computes."""


class TooLarge(Exception):
    """More lanes than this walks."""


def any_number(rng: Random, dtype: DType) -> Any:
    """What a register may happen to hold."""
    if dtype.is_integer:
        low, high = dtype.limits
        return rng.choice((low, high, 0, -1 if low else 1, rng.randint(low, high)))
    if dtype.scale:
        return rng.choice((math.nan, dtype.greatest, dtype.blank, 1.0))
    return rng.choice((math.nan, math.inf, -math.inf, 1e30 if dtype.name != "f16" else 6e4, 1.0))


def assigns(body: tuple[Any, ...]) -> Iterator[Assign]:
    for node in body:
        if isinstance(node, Assign):
            yield node
        elif isinstance(node, Loop | Guard):
            yield from assigns(node.body)


def run_mapped(mapping: Mapping, memory: Memory, rng: Random, keep_order: bool) -> None:
    """The mapping's program on `memory`, each stage a nest of its own, the mapped one by the instruction.
    `keep_order`: tiles follow the program's loops; else any order."""
    program = mapping.program
    stages = {id(s.assign): s for s in program.stages}
    begun: list[int] = []
    for node in assigns(program.body):
        if id(node) not in stages:
            begun.append(id(node))  # the initial value of a later stage
            continue
        stage = stages[id(node)]
        mine = frozenset(k for k in begun if _tensor(program, k) == node.tensor) if stage.init is not None else ()
        begun = [k for k in begun if k not in mine]
        if mine:
            runner(program, frozenset(mine))(memory)
        if stage.name == mapping.stage.name:
            Tiles(mapping, rng).run(memory, keep_order)
        else:
            runner(program, frozenset({id(node)}))(memory)


def _tensor(program: Program, key: int) -> str:
    return next(a.tensor for a in assigns(program.body) if id(a) == key)


def conjuncts(condition: Any) -> list[Any]:
    if isinstance(condition, And) or (isinstance(condition, Logical) and condition.op == "and"):
        return [c for part in condition.parts for c in conjuncts(part)]
    return [condition]


def names_in(node: Any, known: set[str]) -> set[str]:
    """The axes that an expression's text names (those of subscripts in it, too)."""
    words = Writer().any(node)
    for sign in "()[],'\"+-*/%<>=!&|^~":
        words = words.replace(sign, " ")
    return set(words.split()) & known


def hold(tests: list[Any], point: tuple[int, ...], memory: Memory) -> bool:
    """Whether all of them hold, the outermost first. One that looks at no element, as another guard leaves the step
    out, does not."""
    try:
        return all(test(*point, memory) for test in tests)
    except KeyError:
        return False


class Tiles:
    """One mapping, with its subscripts and conditions as functions."""

    def __init__(self, mapping: Mapping, rng: Random) -> None:
        self.mapping, self.rng = mapping, rng
        stage = self.stage = mapping.stage
        self.names = tuple(a.name for a in stage.axes)
        self.low, self.count = hull(stage)
        intrinsic = mapping.intrinsic
        self.size = {a.name: a.extent for a in intrinsic.axes}
        self.lanes = tuple(mapping.axes)
        self.total = {x: math.prod(self.count[y] for y in fused) for x, fused in mapping.axes.items()}
        self.tiles = {x: -(-n // self.size[x]) for x, n in self.total.items()}
        lanes = math.prod(self.tiles[x] * self.size[x] for x in self.lanes) * math.prod(
            self.count[y] for y in mapping.outer
        )
        if lanes > MOST_LANES:
            raise TooLarge
        for x, (extent, padded) in mapping.padding.items():
            if (extent, padded) != (self.total[x], self.tiles[x] * self.size[x]):
                raise Wrong(f"padding of {x} is said to be {extent} to {padded}")
        self.accumulator = intrinsic.accumulator.name
        self.spatial = {a.name for a in intrinsic.spatial}
        self.cell = {o: function(tuple(map(_name, self.lanes)), self._pattern(o)) for o in intrinsic.operands}
        w = Writer()
        self.element = {o: function(self.names, w.key(r.index)) for o, r in mapping.operands.items()}
        self.run_once = runner(intrinsic.program)
        self._place_conditions()

    def _pattern(self, operand: str) -> str:
        """The coordinates in an operand of a lane; a dimension of constants is an axis of its own."""
        intrinsic = self.mapping.intrinsic
        stage = intrinsic.stage
        index = next(r.index for r in (*stage.reads, stage.target) if r.tensor == operand)
        named = zip(index, intrinsic.operand_axes[operand], strict=True)
        parts = [_name(n) if isinstance(p, Const) and n is not None else formula(p) for p, n in named]
        ones = tuple(a.name for a in stage.axes if a.extent == 1)
        lanes = ", ".join(f"{one}=0" for one in ones)
        key = "(" + "".join(f"{p}, " for p in parts) + ")"
        return f"(lambda {lanes}: {key})()" if ones else key

    def _place_conditions(self) -> None:
        """Each conjunct is staged where the mapping says, else decides whole tiles, else whole elements."""
        stage, known = self.stage, set(self.names)
        conditions: list[Any] = []
        for a in stage.axes:
            if names_in(a.lower, known) or names_in(a.upper, known):
                conditions += [Compare("<=", a.lower, Var(a.name)), Compare("<", Var(a.name), a.upper)]
        conditions += [c for g in stage.guards for c in conjuncts(g)]
        inner = {y for fused in self.mapping.axes.values() for y in fused}
        over_elements = {a.name for a in stage.spatial}
        self.staged: dict[str, list[Any]] = {o: [] for o in self.element}
        self.of_tiles: list[Any] = []
        self.of_elements: list[Any] = []
        self.all_conditions: list[Any] = []
        held = {o: [c for g in gs for c in conjuncts(g)] for o, gs in self.mapping.guards.items()}
        for c in dict.fromkeys(conditions):
            test = function(self.names, Writer().any(c))
            self.all_conditions.append(test)
            operands = [o for o, cs in held.items() if c in cs]
            for o in operands:
                self.staged[o].append(test)
            names = names_in(c, known)
            if operands:
                continue
            if not names & inner:
                self.of_tiles.append(test)
            elif names <= over_elements or c in self.mapping.left_out:
                self.of_elements.append(test)
            else:
                raise Wrong(f"nothing holds the condition {c}")

    def run(self, memory: Memory, keep_order: bool) -> None:
        outer = [range(self.low[y], self.low[y] + self.count[y]) for y in self.mapping.outer]
        issues = list(product(product(*outer), product(*(range(self.tiles[x]) for x in self.lanes))))
        if keep_order:
            issues.sort(key=self._first_point)
        else:
            self.rng.shuffle(issues)
        for outside, tile in issues:
            self.issue(dict(zip(self.mapping.outer, outside, strict=True)), tile, memory)

    def _first_point(self, issue: Any) -> tuple[int, ...]:
        outside, tile = issue
        env = dict(zip(self.mapping.outer, outside, strict=True))
        for x, t in zip(self.lanes, tile, strict=True):
            env |= self._decoded(x, t * self.size[x])
        return tuple(env[n] for n in self.names)

    def _decoded(self, x: str, number: int) -> dict[str, int]:
        found = {}
        for y in reversed(self.mapping.axes[x]):
            number, digit = divmod(number, self.count[y])
            found[y] = self.low[y] + digit
        return found

    def issue(self, outside: dict[str, int], tile: tuple[int, ...], memory: Memory) -> None:
        mapping = self.mapping
        held: dict[str, dict[tuple[int, ...], Any]] = {o: {} for o in mapping.intrinsic.operands}
        spare: list[tuple[str, tuple[int, ...], Any]] = []
        stored: dict[tuple[int, ...], tuple[int, ...]] = {}
        summed = set[tuple[int, ...]]()
        numbers = [
            [(t * self.size[x] + lane, lane) for lane in range(self.size[x])]
            for x, t in zip(self.lanes, tile, strict=True)
        ]
        decoded = [
            [(n < self.total[x], self._decoded(x, n)) for n, _ in ns] for x, ns in zip(self.lanes, numbers, strict=True)
        ]
        for lane in product(*(range(self.size[x]) for x in self.lanes)):
            env = dict(outside)
            inside: dict[str, bool] = {}
            for x, d, e in zip(self.lanes, lane, decoded, strict=True):
                inside[x], found = e[d]
                env |= found
            point = tuple(env[n] for n in self.names)
            if not all(inside[x] for x in self.lanes if x in self.spatial):
                continue  # its result is not stored
            past = [x for x in self.lanes if not inside[x]]
            if not past and not hold(self.of_tiles, point, memory):
                return
            if not past and not hold(self.of_elements, point, memory):
                continue  # what it sums is dropped
            counts = not past and hold(self.all_conditions, point, memory)
            for o in mapping.operands:
                cell = self.cell[o](*lane, None)
                if o == self.accumulator:
                    summed |= {cell} if counts else set()
                    element = self.element[o](*point, memory)
                    exists = not past and element in memory[mapping.stage.assign.tensor]
                    if exists and stored.setdefault(cell, element) != element:
                        raise Wrong(f"two elements in {o}{list(cell)}: {element} and {stored[cell]}")
                    continue
                if past:
                    wanted: Any = FILL if any(o in mapping.padded.get(x, ()) for x in past) else None
                elif not hold(self.staged[o], point, memory):
                    wanted = FILL
                else:
                    element = self.element[o](*point, memory)
                    exists = element in memory[mapping.operands[o].tensor]
                    wanted = ("element", element) if exists else FILL
                    if counts and not exists:
                        raise Wrong(f"{o} holds {element}, which does not exist")
                    if (
                        not counts
                    ):  # a fill in another operand takes the step away: this one's element, or a neighbour's
                        spare.append((o, cell, wanted))
                        continue
                if wanted is not None and held[o].setdefault(cell, wanted) != wanted:
                    raise Wrong(f"{o}{list(cell)} would hold {wanted} and {held[o][cell]}")
        for o, cell, wanted in spare:
            held[o].setdefault(cell, wanted)
        if mapping.intrinsic.from_zero:  # registers hold 0 first: where nothing counts it is what the program left
            stored = {cell: element for cell, element in stored.items() if cell in summed}
        self._compute(held, stored, memory)

    def _compute(
        self,
        held: dict[str, dict[tuple[int, ...], Any]],
        stored: dict[tuple[int, ...], tuple[int, ...]],
        memory: Memory,
    ) -> None:
        mapping = self.mapping
        target = memory[mapping.stage.assign.tensor]
        if len(set(stored.values())) != len(stored):
            raise Wrong("two lanes write one element")
        registers: Memory = {}
        for o, operand in mapping.intrinsic.operands.items():
            fill = mapping.fills[o].value if o in mapping.fills else operand.dtype.blank
            cells = registers[o] = {}
            for cell in product(*map(range, operand.shape)):
                what = held[o].get(cell)
                if o == self.accumulator and mapping.intrinsic.from_zero:
                    cells[cell] = 0.0 if operand.dtype.is_float else 0
                elif o == self.accumulator:
                    cells[cell] = target[stored[cell]] if cell in stored else any_number(self.rng, operand.dtype)
                elif what is None:
                    cells[cell] = any_number(self.rng, operand.dtype)
                else:
                    cells[cell] = fill if what == FILL else memory[mapping.operands[o].tensor][what[1]]
        self.run_once(registers)
        for cell, element in stored.items():
            target[element] = registers[self.accumulator][cell]


def _name(lane: str) -> str:
    """`a.1`, the axis of a dimension of constants, as a name."""
    return lane.replace(".", "_")


def hull(stage: Stage) -> tuple[dict[str, int], dict[str, int]]:
    """The least value of each axis and how many there are, where bounds depend on outer axes: over all of these."""
    low: dict[str, int] = {}
    count: dict[str, int] = {}
    for a in stage.axes:
        ends = [range(low[n], low[n] + count[n]) for n in low]
        first, last = function(tuple(low), formula(a.lower)), function(tuple(low), formula(a.upper))
        corners = [tuple(c) for c in product(*((e[0], e[-1]) for e in ends))]
        low[a.name] = min(first(*c, None) for c in corners)
        count[a.name] = max(last(*c, None) for c in corners) - low[a.name]
    return low, count
