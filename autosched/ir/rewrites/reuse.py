"""A proved rewrite: what two statements compute alike is computed once, and kept where the second will write.

for j: S[i] += exp(X[i, j] - M[i])            for j: Y[i, j] = exp(X[i, j] - M[i])
for j: Y[i, j] = exp(X[i, j] - M[i]) / S[i]          S[i] += Y[i, j]
                                              for j: Y[i, j] = Y[i, j] / S[i]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod

from autosched.ir.nodes import Assign, Axis, Loop, Statement
from autosched.ir.program import Program
from autosched.ir.rewrites.rewrite import Rewrite
from autosched.ir.value import Call, Index, Read, Value, is_value, map_value, reads, walk
from autosched.logic import Int, Var
from autosched.logic.walk import substitute_int

COSTLY = frozenset(["exp", "log", "tanh", "erf", "sigmoid", "rsqrt"])
"""Functions that take longer than writing a value and reading it again."""


@dataclass(frozen=True)
class Place:
    """An assignment, the loops around it, and its number in the text; `guarded` where a condition decides on it."""

    assign: Assign
    axes: tuple[Axis, ...]
    number: int
    guarded: bool

    @property
    def reads(self) -> tuple[Read, ...]:
        """What the value and data-dependent subscripts read."""
        inside = [r for i in self.assign.index if is_value(i) for r in reads(i)]
        return (*reads(self.assign.value), *inside)

    @property
    def points(self) -> int:
        """Iterations of its loops, where their bounds are constants."""
        return prod(a.extent for a in self.axes)


def keep_common(program: Program) -> Rewrite | None:
    """The first costly value that can be kept in an output until the statement that fills it; None where there is none.

    The kept value has the output's dtype, so its bits are the same.
    """
    places = list(places_of(program.body))
    for later in places:
        if not _fills(program, later, places):
            continue
        for earlier in places[: later.number]:
            axes = _same_axes(earlier, later)
            if axes is None or earlier.guarded:
                continue
            for value in _candidates(earlier.assign.value, later.assign):
                if _renamed(value, axes) in set(walk(later.assign.value)) and _unmoved(value, earlier, later, places):
                    found = _rewrite(program, earlier, later, value, axes)
                    return found if found.after.inputs == program.inputs else None
    return None


def places_of(body: tuple[Statement, ...]) -> Iterator[Place]:
    """All assignments in the order of the text."""
    count = 0

    def visit(body: tuple[Statement, ...], axes: tuple[Axis, ...], guarded: bool) -> Iterator[Place]:
        nonlocal count
        for stmt in body:
            if isinstance(stmt, Assign):
                yield Place(stmt, axes, count, guarded)
                count += 1
            elif isinstance(stmt, Loop):
                yield from visit(stmt.body, (*axes, stmt.axis), guarded)
            else:
                yield from visit(stmt.body, axes, True)

    return visit(body, (), False)


def each_place(
    body: tuple[Statement, ...], made: Callable[[int, Assign], Assign | None]
) -> tuple[Statement, ...]:
    """The statements with what is made of each assignment, by its number in the order of the text; without those of
    which nothing is, and what is empty then."""
    count = -1

    def visit(body: tuple[Statement, ...]) -> Iterator[Statement]:
        nonlocal count
        for stmt in body:
            if isinstance(stmt, Assign):
                count += 1
                if (found := made(count, stmt)) is not None:
                    yield found
            elif inner := tuple(visit(stmt.body)):
                yield replace(stmt, body=inner)

    return tuple(visit(body))


def _fills(program: Program, place: Place, places: list[Place]) -> bool:
    """Whether the assignment alone mentions its tensor, an output, one element for each iteration."""
    target = place.assign
    mentions = sum(p.assign.tensor == target.tensor for p in places) + sum(
        r.tensor == target.tensor for p in places for r in p.reads
    )
    names = [i.name for i in target.index if isinstance(i, Var)]
    each = len(names) == len(target.index) == len(set(names)) and set(names) == {a.name for a in place.axes}
    output = target.tensor in program.outputs and target.tensor not in program.inputs
    return output and target.op == "=" and not place.guarded and mentions == 1 and each


def _same_axes(earlier: Place, later: Place) -> dict[str, str] | None:
    """The earlier statement's axes as the later one's: shared loops are themselves, others equal in order and range."""
    if len(earlier.axes) != len(later.axes):
        return None
    names: dict[str, str] = {}
    for a, b in zip(earlier.axes, later.axes, strict=True):
        renamed = {k: Var(v) for k, v in names.items()}
        if (substitute_int(a.lower, renamed), substitute_int(a.upper, renamed)) != (b.lower, b.upper):
            return None
        names[a.name] = b.name
    return names


def _candidates(value: Value, target: Assign) -> Iterator[Value]:
    """Costly parts of a value with the target's dtype that are always evaluated, largest first."""
    for node in walk(value):
        costly = any(isinstance(n, Call) and n.function in COSTLY for n in walk(node))
        if costly and node.dtype == target.value.dtype and reads(node):
            yield node


def _renamed(value: Value, axes: dict[str, str]) -> Value:
    to = {a: Var(b) for a, b in axes.items()}
    return map_value(value, on_int=lambda i: substitute_int(i, to))


def _unmoved(value: Value, earlier: Place, later: Place, places: list[Place]) -> bool:
    """Whether nothing that the value reads is written between the two, or in a loop that only one of them is in; and
    whether it reads nothing by data."""
    for node in walk(value):
        if isinstance(node, Read) and any(is_value(i) for i in node.index):
            return False
    shared = [a for a, b in zip(earlier.axes, later.axes, strict=True) if a == b]
    own = {a.name for p in (earlier, later) for a in p.axes} - {a.name for a in shared}
    sources = {r.tensor for r in reads(value)}
    for p in places:
        between = earlier.number <= p.number <= later.number or own & {a.name for a in p.axes}
        if between and p.assign.tensor in sources:
            return False
    return True


def _rewrite(program: Program, earlier: Place, later: Place, value: Value, axes: dict[str, str]) -> Rewrite:
    target = later.assign
    back: dict[str, Int] = {b: Var(a) for a, b in axes.items()}
    index: tuple[Index, ...] = tuple(substitute_int(i, back) for i in target.index if isinstance(i, Int))
    kept = Read(target.tensor, index, value.dtype)
    count = -1

    def visit(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        nonlocal count
        result: list[Statement] = []
        for stmt in body:
            if not isinstance(stmt, Assign):
                result.append(replace(stmt, body=visit(stmt.body)))
                continue
            count += 1
            if count == earlier.number:
                result.append(Assign(target.tensor, index, "=", value, stmt.location))
                result.append(replace(stmt, value=_exchanged(stmt.value, value, kept)))
            elif count == later.number:
                own = Read(target.tensor, target.index, value.dtype)
                result.append(replace(stmt, value=_exchanged(stmt.value, _renamed(value, axes), own)))
            else:
                result.append(stmt)
        return tuple(result)

    pairs = ", ".join(f"{a} is {b}" for a, b in axes.items() if a != b) or "all loops are shared"
    proof = (
        f"both statements run over the same points ({pairs}), and {target.tensor} has one element for each",
        f"what {earlier.assign.tensor} and {target.tensor} are computed from is not written between the two",
        f"nothing else mentions {target.tensor}, and the value has its dtype, so no bit changes on the way",
    )
    name = f"kept in {target.tensor}"
    return Rewrite(name, program, replace(program, body=visit(program.body)), proof)


def _exchanged(value: Value, old: Value, new: Value) -> Value:
    """`value` with every part equal to `old` replaced."""
    return map_value(value, lambda v: new if v == old else v)
