"""Where a stage stands in its program: fresh names, statements before it, and the stage put back changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Assign, Axis, Loop, Stage, Statement, Tensor
from autosched.ir.oracle.nests import axis_ranges
from autosched.ir.prepared import assigns
from autosched.ir.program import Program
from autosched.ir.rewrites.nesting import nested, under
from autosched.ir.value import Read, Value, reads
from autosched.logic import Const, Int, Var, interval
from autosched.tensorize.adapters.proposal import NoPlace
from autosched.tensorize.reduction.update import Update


class Site:
    """Collects what an adapter adds. `top` is the top-level statement that holds the stage; `before` goes in front of
    it, `first` in front of all others, where it parts no stage from the one before."""

    def __init__(self, program: Program, stage: Stage, update: Update) -> None:
        """Raises NoPlace where an element of the term is written in the same top-level statement."""
        self.program, self.stage = program, stage
        self.tensors = dict(program.tensors)
        self.lifted = tuple(g for g in update.guards if g not in stage.guards)
        self.taken = names_of(program)
        self.before: list[Statement] = []
        self.first: list[Statement] = []
        self._converted: dict[tuple[DType, Value], str] = {}
        self.position = next(k for k, stmt in enumerate(program.body) if holds(stmt, stage.assign))
        self.top = program.body[self.position]
        used = {r.tensor for r in reads(update.term)}
        if any(a.tensor in used for a in assigns(self.top)):
            raise NoPlace("an element of the sum is written in the same loops")

    def fresh(self, name: str) -> str:
        """`name`, or it with a number behind it; taken from now on."""
        return fresh(name, self.taken)

    def converted(self, read: Read, dtype: DType, value: Callable[[Read], Value], name: str) -> Read:
        """`read` of a new tensor of `dtype` that holds `value` of every element of the read's own tensor, or of the box
        of it that the program writes (a part of rows may have intermediates of its own):

        A_u8[q0, q1] = value(A[q0, q1])

        One tensor serves all reads of which the same value is wanted.
        """
        tensor = self.program.tensors[read.tensor]
        key = dtype, value(Read(tensor.name, (), tensor.dtype))
        if key in self._converted:
            return Read(self._converted[key], read.index, dtype)
        name = self._converted[key] = self.fresh(name)
        self.tensors[name] = Tensor(name, dtype, tensor.shape, intermediate=True)
        box = written(self.program, tensor)
        axes = [Axis(self.fresh(f"q{d}"), low, high) for d, (low, high) in enumerate(box)]
        index = tuple(Var(a.name) for a in axes)
        self.before.append(nest(axes, (Assign(name, index, "=", value(Read(tensor.name, index, tensor.dtype))),)))
        return Read(name, read.index, dtype)

    def with_assign(self, core: Assign) -> Program:
        """The program with `core` in the place of the stage's assignment, under what became a guard in the normal
        form."""
        return self._with(core)

    def with_loop(self, axis: Axis, core: Assign) -> Program:
        """As `with_assign`, with a loop around it."""
        return self._with(Loop(axis, (core,)))

    def _with(self, core: Statement) -> Program:
        placed = under(self.lifted, core)

        def visit(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
            return tuple(
                (placed if stmt is self.stage.assign else stmt)
                if isinstance(stmt, Assign)
                else replace(stmt, body=visit(stmt.body))
                for stmt in body
            )

        return self.with_statement(*visit((self.top,)))

    def with_statement(self, new: Statement) -> Program:
        """The program with `new` in the place of the top-level statement, behind what was added."""
        body = self.program.body
        body = (*self.first, *body[: self.position], *self.before, new, *body[self.position + 1 :])
        return replace(self.program, tensors=self.tensors, body=body, source="")


def written(program: Program, tensor: Tensor) -> list[tuple[Int, Int]]:
    """The first element and the one behind the last, in each dimension, of those that are written of an intermediate;
    all there are of others."""
    whole: list[tuple[Int, Int]] = [(Const(0), size) for size in tensor.shape]
    if not tensor.intermediate or any(not isinstance(size, Const) for size in tensor.shape):
        return whole
    ranges = axis_ranges(program.body, dict(program.symbolic))
    found: list[tuple[Int, Int]] = []
    writes = [a.index for stmt in program.body for a in assigns(stmt) if a.tensor == tensor.name]
    for d, (low, high) in enumerate(whole):
        parts = [index[d] for index in writes]
        if not parts or not all(isinstance(p, Int) for p in parts):
            found.append((low, high))
            continue
        ends = [interval(p, ranges) for p in parts if isinstance(p, Int)]
        first, last = max(0, min(e[0] for e in ends)), min(tensor.extents[d] - 1, max(e[1] for e in ends))
        found.append((Const(first), Const(last + 1)) if first <= last else (low, high))
    return found


def nest(axes: list[Axis], body: tuple[Statement, ...]) -> Statement:
    """`body` in loops over `axes`, outermost first. Raises NoPlace for several statements with no loop around them."""
    made = nested(axes, *body)
    if len(made) != 1:
        raise NoPlace("the stage has no spatial axis around its parts")
    return made[0]


def holds(stmt: Statement, assign: Assign) -> bool:
    """Whether `assign` itself, not an equal one, is in the statement."""
    return any(a is assign for a in assigns(stmt))


def fresh(name: str, taken: set[str]) -> str:
    """`name`, or it with a number behind it, where that is taken; it joins what is taken."""
    unique, n = name, 2
    while unique in taken:
        unique, n = f"{name}_{n}", n + 1
    taken.add(unique)
    return unique


def names_of(program: Program) -> set[str]:
    """Every name that is taken."""
    found = {*program.tensors, *program.scalars, *program.sizes, *program.dtypes, *program.symbolic}

    def visit(body: tuple[Statement, ...]) -> None:
        for stmt in body:
            if isinstance(stmt, Loop):
                found.add(stmt.axis.name)
            if not isinstance(stmt, Assign):
                visit(stmt.body)

    visit(program.body)
    return found
