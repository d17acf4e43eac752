"""The body of loops as a program of its own, over windows of the tensors that it touches.

    for b, i_tile in grid(4, 8):                        S[i, j], Q[i, p], K[j, p] of one iteration:
        for i, j, p in grid(32, 256, 64):                   for i, j, p in grid(32, 256, 64):
            S[b, i_tile * 32 + i, j] += …                       S[i, j] += Q[i, p] * K[j, p]

Within one iteration an address is a part of the loops around it, where the window starts, plus a part of the body's own
axes. What holds of the body for each iteration (matches, dependences, schedules) is asked of that program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from autosched.ir.nodes import Assign, Assume, Axis, Guard, Loop, Statement, Tensor
from autosched.ir.prepared import assigns
from autosched.ir.program import Program
from autosched.ir.rewrites.names import FreeNames
from autosched.ir.stages import stages_of
from autosched.ir.value import (
    Arith,
    Cast,
    Comparison,
    Condition,
    FromIndex,
    Index,
    Literal,
    Logical,
    Read,
    Scalar,
    Select,
    Value,
    is_value,
    map_value,
    reads,
    walk,
)
from autosched.ir.variables import condition_vars, value_vars
from autosched.logic import Binary, Bool, Const, Int, Var, affine, all_of, interval
from autosched.logic.affine import Affine
from autosched.logic.walk import free_vars
from autosched.tiling.analysis.variable_names import free_name

Ranges = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class ChosenSlice:
    """A subscript, or a bound in a guard, that data choose once in each iteration of the loops around: `name` stands
    for `value`, held to 0 … `extent` - 1, in windows' starts, in the body as a size that is not known, and in slices
    after this one. What it reads, no iteration writes. `moved_by`: axes of the loops around that it depends on."""

    name: str
    value: Value
    extent: int
    moved_by: frozenset[str]


@dataclass(frozen=True)
class TensorWindow:
    """Elements of `tensor` from `start` on, a subscript a dimension in the axes of the loops around and in names of
    chosen slices; of these the window has the dimensions `kept` (each of the others has one element)."""

    tensor: str
    start: tuple[Int, ...]
    kept: tuple[int, ...]

    def place(self, index: Sequence[Int]) -> tuple[Int, ...]:
        """The subscripts in the tensor of an element of the window."""
        inner = dict(zip(self.kept, index, strict=True))
        return tuple(at + inner.get(d, 0) for d, at in enumerate(self.start))


@dataclass(frozen=True)
class Windowed:
    """`program` computes one iteration's body. `windows`: of which tensor each of its parameters is a part; `const`
    ones are the same in several iterations (or were so in the program), and only read. What is no window is an
    intermediate of the body's own, which no iteration takes from another. `chosen`: slices of which windows are."""

    program: Program
    windows: dict[str, TensorWindow]
    chosen: tuple[ChosenSlice, ...] = ()


def windowed(
    program: Program, loops: Sequence[Axis], body: tuple[Statement, ...], choose: bool = False
) -> Windowed | None:
    """The body of perfectly nested `loops` as a program. None where it touches one tensor in two places of which one is
    written, or where a window is not of one size, or would leave its tensor. `choose`: a subscript from data that are
    the same in all of an iteration is where a window begins; else windows have the whole dimension."""
    return _Windows(program, tuple(loops), choose).of(body)


def nested(
    body: tuple[Statement, ...], kept: Collection[str] = ()
) -> tuple[tuple[Axis, ...], tuple[Statement, ...]]:
    """Loops around several statements, perfectly nested, and these; no loops where there are none. Of loops of which
    some are named in `kept`, those up to the last of these, around any statements."""
    loops: list[Axis] = []
    inside = [body]
    while len(body) == 1 and isinstance(body[0], Loop):
        loops.append(body[0].axis)
        body = body[0].body
        inside.append(body)
    last = max((n for n, a in enumerate(loops, 1) if a.name in kept), default=0)
    if last:
        return tuple(loops[:last]), inside[last]
    return (tuple(loops), body) if len(body) > 1 else ((), body)


def new_loops(before: Program, after: Program) -> frozenset[str]:
    """Axes of the top-level loops around several stages that the one program has and the other has not."""
    made = [stmt for stmt in after.body if stmt not in before.body and len(stages_of((stmt,))) > 1]
    found = [nested((stmt,))[0] for stmt in made]
    return frozenset(a.name for loops in found for a in loops)


@dataclass
class _Seen:
    """One way to touch a tensor: its starts, and least and greatest distance from there along each dimension."""

    start: tuple[Int, ...]
    low: list[int]
    high: list[int]
    moves: list[bool]
    name: str = ""
    written: bool = False


class _Unfit(Exception):
    """The body has no windows."""


@dataclass
class _Windows:
    program: Program
    loops: tuple[Axis, ...]
    choose: bool = False
    seen: dict[str, list[_Seen]] = field(default_factory=dict)
    chosen: dict[tuple[Value, int], ChosenSlice] = field(default_factory=dict)
    free: set[str] = field(default_factory=set)
    """Axes of the loops that bounds, guards and values name: sizes that are not known."""

    def __post_init__(self) -> None:
        self.outer = {a.name for a in self.loops}
        self.names = FreeNames(self.program)
        self.around: Ranges = dict(self.program.symbolic)
        for axis in self.loops:
            self.around[axis.name] = self.range_of(axis, self.around)

    def of(self, body: tuple[Statement, ...]) -> Windowed | None:
        try:
            sliced = self.sliced(body) if self.choose else body
            for stmt in sliced:
                self.look(stmt, dict(self.around))
            self.name_all()
            inner = tuple(self.statement(s) for s in sliced)
        except _Unfit:
            return None
        return self.made(body, inner)

    def range_of(self, axis: Axis, ranges: Ranges) -> tuple[int, int]:
        low, high = interval(axis.lower, ranges)[0], interval(axis.upper, ranges)[1] - 1
        return low, max(low, high)

    # Slices that data choose

    def sliced(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """The body with names of slices as subscripts, where data choose these once for all of an iteration."""
        written = {a.tensor for stmt in body for a in assigns(stmt)}

        def value(whole: Value, asked: bool) -> Value:
            asked = asked or any(isinstance(v, Select | Logical) for v in walk(whole))

            def read(v: Value) -> Value:
                if not isinstance(v, Read) or v.tensor in written:
                    return v
                return replace(v, index=tuple(index(v.tensor, d, part) for d, part in enumerate(v.index)))

            def index(tensor: str, d: int, part: Index) -> Index:
                if isinstance(part, Int) or not self.chosen_outside(part, written, asked):
                    return part
                return Var(self.choice(part, self.extent(tensor, d), tensor).name)

            return map_value(whole, read)

        def bounded(condition: Value, ranges: Ranges) -> Bool | None:
            """`s32(i) < R[b]` as a formula over axes and the number that data choose: held to 0 … the greatest i + 1 it
            says the same."""
            match condition:
                case Logical("and", parts):
                    found = [p if isinstance(p, Bool) else bounded(p, ranges) for p in parts]
                    known = [f for f in found if f is not None]
                    return all_of(*known) if len(known) == len(found) else None
                case Comparison("<" | ">=" as op, FromIndex(index, dtype), bound):
                    pass
                case Comparison("<=" | ">" as op, bound, FromIndex(index, dtype)):
                    op = "<" if op == ">" else ">="
                case _:
                    return None
            low, high = interval(index, ranges)
            fits = dtype.is_integer and low >= 0 and high <= dtype.limits[1]
            if not fits or not reads(bound) or not self.chosen_outside(bound, written, True):
                return None
            number = Var(self.choice(bound, high + 2, reads(bound)[0].tensor).name)
            return index < number if op == "<" else index >= number

        def visit(stmt: Statement, bounds: Ranges, asked: bool) -> Statement:
            match stmt:
                case Loop(axis, inner):
                    within = bounds | {axis.name: self.range_of(axis, bounds)}
                    return Loop(axis, tuple(visit(s, within, asked) for s in inner))
                case Guard(condition, inner):
                    inside = tuple(visit(s, bounds, True) for s in inner)
                    if isinstance(condition, Bool):
                        return Guard(condition, inside)
                    return Guard(bounded(condition, bounds) or value(condition, asked), inside)
                case Assign():
                    at = tuple(i if isinstance(i, Int) else value(i, asked) for i in stmt.index)
                    return replace(stmt, index=at, value=value(stmt.value, asked))

        return tuple(visit(s, dict(self.around), False) for s in body)

    def chosen_outside(self, part: Value, written: Collection[str], asked: bool) -> bool:
        """Whether a subscript is one number in all of an iteration, which may be computed in front of it; `asked`: also
        where a condition says that it is not needed."""
        if not value_vars(part) <= self.outer:
            return False
        for read in reads(part):
            tensor = self.program.tensors[read.tensor]
            if read.tensor in written or (asked and tensor.intermediate):
                return False
            for d, i in enumerate(read.index):
                low, high = interval(i, self.around) if isinstance(i, Int) else (-1, -1)
                if low < 0 or high >= self.extent(read.tensor, d):
                    return False
        safe = all(
            isinstance(v, Read | Cast | Literal | FromIndex) or (isinstance(v, Arith) and v.op in ("+", "-", "*"))
            for v in walk(part)
        )
        return safe or not asked

    def choice(self, part: Value, extent: int, of: str) -> ChosenSlice:
        """The number that data choose below `extent`, under a name that tells of a tensor."""
        key = part, extent
        if key not in self.chosen:
            name, used = free_name(self.names, f"{self.loops[-1].name}_{of}"), value_vars(part)
            known = [c.moved_by for c in self.chosen.values() if c.name in used]
            self.chosen[key] = ChosenSlice(name, *key, frozenset(used & {a.name for a in self.loops}).union(*known))
            self.outer.add(name)
            self.around[name] = 0, key[1] - 1
        return self.chosen[key]

    # What the body touches

    def look(self, stmt: Statement, ranges: Ranges) -> None:
        match stmt:
            case Loop(axis, body):
                self.free |= (free_vars(axis.lower) | free_vars(axis.upper)) & self.outer
                inner = ranges | {axis.name: self.range_of(axis, ranges)}
                for s in body:
                    self.look(s, inner)
            case Guard(condition, body):
                self.condition(condition, ranges)
                for s in body:
                    self.look(s, ranges)
            case Assign():
                self.value(stmt.value, ranges)
                self.touch(stmt.tensor, stmt.index, ranges, written=True)

    def condition(self, condition: Condition, ranges: Ranges) -> None:
        if is_value(condition):
            self.value(condition, ranges)
        else:
            self.free |= condition_vars(condition) & self.outer

    def value(self, value: Value, ranges: Ranges) -> None:
        for read in reads(value):
            self.touch(read.tensor, read.index, ranges)
        without = map_value(value, lambda v: replace(v, index=()) if isinstance(v, Read) else v)
        self.free |= value_vars(without) & self.outer

    def touch(self, tensor: str, index: tuple[Index, ...], ranges: Ranges, written: bool = False) -> None:
        start: list[Int] = []
        low, high, moves = [], [], []
        begin: Int
        for d, part in enumerate(index):
            if not isinstance(part, Int):  # by data: anywhere along the dimension
                self.value(part, ranges)
                begin, least, greatest, own = Const(0), 0, self.extent(tensor, d) - 1, True
            else:
                begin, rest = self.taken_apart(part)
                least, greatest = interval(rest, ranges)
                own = bool(free_vars(rest))
            start.append(begin)
            low.append(least)
            high.append(greatest)
            moves.append(own)
        ways = self.seen.setdefault(tensor, [])
        known = next((w for w in ways if w.start == tuple(start)), None)
        if known is None:
            ways.append(_Seen(tuple(start), low, high, moves, written=written))
            return
        known.low = [min(a, b) for a, b in zip(known.low, low, strict=True)]
        known.high = [max(a, b) for a, b in zip(known.high, high, strict=True)]
        known.moves = [a or b for a, b in zip(known.moves, moves, strict=True)]
        known.written |= written

    def extent(self, tensor: str, dimension: int) -> int:
        size = self.program.tensors[tensor].shape[dimension]
        if not isinstance(size, Const):
            raise _Unfit
        return size.value

    def taken_apart(self, part: Int) -> tuple[Int, Int]:
        """The part of a subscript of the loops around, and the rest."""
        names = free_vars(part)
        if not names & self.outer:
            return Const(0), part
        form = affine(part)
        if form is None and names <= self.outer:
            return part, Const(0)
        if form is None and isinstance(part, Binary) and part.op in ("//", "%") and isinstance(part.right, Const):
            size = part.right
            begin, rest = self.taken_apart(part.left)
            whole = affine(begin)  # (4 a + r) // 4 is a + r // 4, and (4 a + r) % 4 is r % 4
            if whole is not None and not any(c % size.value for c in (*whole.coefficients.values(), whole.constant)):
                if part.op == "%":
                    return Const(0), rest % size
                each = {n: c // size.value for n, c in whole.coefficients.items()}
                return Affine(each, whole.constant // size.value).expression, rest // size
        if form is None:
            raise _Unfit
        here = {n: c for n, c in form.coefficients.items() if n in self.outer}
        left = {n: c for n, c in form.coefficients.items() if n not in self.outer}
        return Affine(here).expression, Affine(left, form.constant).expression

    # What becomes of it

    def name_all(self) -> None:
        taken = set(self.program.tensors) | set(self.program.scalars)
        for tensor, ways in self.seen.items():
            if len(ways) > 1 and any(w.written for w in ways):
                raise _Unfit
            for number, way in enumerate(ways, 1):
                way.name, n = tensor, number
                while number > 1 and way.name in taken:
                    way.name, n = f"{tensor}_{n}", n + 1
                taken.add(way.name)
                for d, begin in enumerate(way.start):
                    if begin == Const(0):  # no loop moves it: what leaves the tensor, guards of the body rule out
                        way.low[d] = max(0, way.low[d])
                        way.high[d] = min(way.high[d], self.extent(tensor, d) - 1)
                        if way.low[d] > way.high[d]:
                            raise _Unfit
                        continue
                    first, last = interval(begin, self.around)
                    if first + way.low[d] < 0 or last + way.high[d] >= self.extent(tensor, d):
                        raise _Unfit
                if not any(way.moves):
                    way.moves[-1] = True

    def way(self, tensor: str, index: tuple[Index, ...]) -> _Seen:
        start = tuple(self.taken_apart(i)[0] if isinstance(i, Int) else Const(0) for i in index)
        return next(w for w in self.seen[tensor] if w.start == start)

    def place(self, tensor: str, index: tuple[Index, ...]) -> tuple[str, tuple[Index, ...]]:
        way = self.way(tensor, index)
        kept: list[Index] = []
        for d, part in enumerate(index):
            if not way.moves[d]:
                continue
            kept.append(self.taken_apart(part)[1] - way.low[d] if isinstance(part, Int) else part)
        return way.name, tuple(kept)

    def read(self, value: Value) -> Value:
        def visit(v: Value) -> Value:
            if not isinstance(v, Read):
                return v
            name, index = self.place(v.tensor, v.index)
            return replace(v, tensor=name, index=index)

        return map_value(value, visit)  # subscripts by data before the read that they are of

    def statement(self, stmt: Statement) -> Statement:
        match stmt:
            case Loop(axis, body):
                return Loop(axis, tuple(map(self.statement, body)))
            case Guard(condition, body):
                held = self.read(condition) if is_value(condition) else condition
                return Guard(held, tuple(map(self.statement, body)))
            case Assign():
                value = self.read(stmt.value)
                at = tuple(i if isinstance(i, Int) else self.read(i) for i in stmt.index)
                name, index = self.place(stmt.tensor, at)
                return replace(stmt, tensor=name, index=index, value=value)

    def made(self, body: tuple[Statement, ...], inner: tuple[Statement, ...]) -> Windowed:
        tensors: dict[str, Tensor] = {}
        windows: dict[str, TensorWindow] = {}
        for name, ways in self.seen.items():
            for way in ways:
                kept = tuple(d for d, moves in enumerate(way.moves) if moves)
                shape = tuple(Const(way.high[d] - way.low[d] + 1) for d in kept)
                start = tuple(begin + low for begin, low in zip(way.start, way.low, strict=True))
                windows[way.name] = TensorWindow(name, start, kept)
                whole = self.program.tensors[name]
                const = whole.const or (not way.written and self.comes_again(start))
                tensors[way.name] = Tensor(way.name, whole.dtype, shape, const)
        scalars = {n: s for n, s in self.program.scalars.items() if n in _scalars(inner)}
        made = Program(
            self.program.name,
            "",
            tensors,
            scalars,
            (*tensors, *scalars),
            {},
            {},
            inner,
            tuple(self.assumptions(tensors, scalars)),
            {n: self.around[n] for n in sorted(self.free)} | self.program.symbolic,
            names_around=self.program.names_around | self.outer,
        )
        own = self.own(body, windows, made)
        made = replace(
            made,
            tensors={n: replace(t, intermediate=n in own) for n, t in tensors.items()},
            parameters=tuple(p for p in made.parameters if p not in own),
        )
        return Windowed(made, {n: w for n, w in windows.items() if n not in own}, tuple(self.chosen.values()))

    def comes_again(self, start: Sequence[Int]) -> bool:
        """Whether iterations of some loop find the same window: what is made of it is made once for all of them."""
        used = moved_by(start, self.chosen.values())
        return any(a.name not in used and self.around[a.name][0] < self.around[a.name][1] for a in self.loops)

    def assumptions(self, tensors: Mapping[str, Tensor], scalars: Mapping[str, object]) -> Iterator[Assume]:
        for assume in self.program.lasting_assumptions:
            if assume.distinct is not None:  # a window may begin inside of a group
                continue
            for way in self.seen.get(assume.subject, ()):
                yield replace(assume, subject=way.name)
            if assume.subject in scalars:
                yield assume

    def own(self, body: tuple[Statement, ...], windows: Mapping[str, TensorWindow], made: Program) -> set[str]:
        """Intermediates that nothing else touches and no iteration takes from another: since each has other elements,
        or reads what it has written itself."""
        count: dict[str, int] = {}
        for name in _mentioned(self.program.body):
            count[name] = count.get(name, 0) + 1
        for name in _mentioned(body):
            count[name] -= 1
        alone = {
            n for n, w in windows.items() if self.program.tensors[w.tensor].intermediate and not count[w.tensor]
        }
        found = {n for n in alone if self.apart(windows[n], made.tensors[n].extents)}
        return found if found == alone else found | (alone - set(made.inputs))

    def apart(self, window: TensorWindow, extents: Sequence[int]) -> bool:
        """Whether no two iterations have an element of the window in common: each loop moves it along a dimension of
        its own, by as much as it is long or more."""
        sizes = dict(zip(window.kept, extents, strict=True))
        moved = set()
        for d, begin in enumerate(window.start):
            form = affine(begin)
            if form is not None and len(form.coefficients) == 1:
                (name, step), *_ = form.coefficients.items()
                if abs(step) >= sizes.get(d, 1):
                    moved.add(name)
        return all(a.name in moved or self.around[a.name][0] == self.around[a.name][1] for a in self.loops)


def moved_by(start: Sequence[Int], chosen: Iterable[ChosenSlice]) -> frozenset[str]:
    """The axes of the loops around that move a window."""
    used = frozenset(n for i in start for n in free_vars(i))
    return used.union(*(c.moved_by for c in chosen if c.name in used))


def _mentioned(body: Sequence[Statement]) -> Iterator[str]:
    """The tensors that statements name, one for each time."""
    for stmt in body:
        match stmt:
            case Loop(_, inner):
                yield from _mentioned(inner)
            case Guard(condition, inner):
                yield from (r.tensor for r in (reads(condition) if is_value(condition) else ()))
                yield from _mentioned(inner)
            case Assign():
                yield stmt.tensor
                values = (stmt.value, *(i for i in stmt.index if is_value(i)))
                yield from (r.tensor for v in values for r in reads(v))


def _scalars(body: Sequence[Statement]) -> set[str]:
    """Run-time scalars that statements name."""
    found: set[str] = set()
    for stmt in body:
        match stmt:
            case Loop(_, inner):
                found |= _scalars(inner)
            case Guard(condition, inner):
                found |= {v.name for v in (walk(condition) if is_value(condition) else ()) if isinstance(v, Scalar)}
                found |= _scalars(inner)
            case Assign():
                values = (stmt.value, *(i for i in stmt.index if is_value(i)))
                found |= {v.name for value in values for v in walk(value) if isinstance(v, Scalar)}
    return found
