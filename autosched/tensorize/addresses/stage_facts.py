"""Proof 1, the addresses: z3 over linear integers, on symbolic points and never on unrolled tiles.

`StageFacts` holds what is true of a program's stage whatever the intrinsic: which elements it writes, what each
operand's address is a function of, whether it reads what it writes, and whether it can be computed apart from its
neighbours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cached_property
from typing import Any

from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.ir.value import Condition, Literal, Read, Select, Value, is_plain, map_value, reads, walk
from autosched.logic import Bool, Const, Int, Var, all_of, interval, to_z3
from autosched.logic.questions import asked
from autosched.logic.solver import proving, z3
from autosched.logic.walk import substitute_int
from autosched.tensorize.addresses.axes import index_axes
from autosched.tensorize.addresses.order import neighbour_conflict, own_conflict
from autosched.tensorize.addresses.points import Answer, Points, taken_apart
from autosched.tensorize.addresses.proved_before import answer_before, remember
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.body.guard import fold_guards, lift_guards, settle_choices
from autosched.tensorize.match_types import Obligation, Reason
from autosched.tensorize.reduction.update import Update, assignment_of, update_of

QUICK = 20
"""The part of a question's time that z3's plain core gets first is one in so many."""


class StageFacts:
    """Facts about one stage, proved once and shared by every intrinsic that is tried on it.

    `stage` is the `original` with the choices of its body that are guards written as such, and without those that
    come out the same at all of its points. `windows` keeps what was proved of windowed operands;
    `made` are tensors that an adapter added to the program; `choices` are the guards that the program's author wrote as
    choices (`x if c else 0`), an adapter's rewriting included.
    """

    def __init__(
        self,
        program: Program,
        stage: Stage,
        timeout_ms: int = 2000,
        lift: bool = True,
        assigned: bool = False,
        masked: bool = False,
    ) -> None:
        """Without `lift` choices stay in the body, and guards that look at what it reads are choices in it; `masked`:
        all that look at data. `assigned`: the stage is taken to assign a value that may depend on what the element
        held, and not to add to it."""
        self.program = program
        self.original = stage
        self.timeout_ms = timeout_ms
        self.assigned = assigned
        settled = settle_choices(stage, self._always)
        if assigned:
            self.stage, self._zeroed = settled, frozenset[Value]()
        else:
            self.stage, self._zeroed = lift_guards(settled) if lift else (fold_guards(settled, masked), frozenset())
        self._functions: dict[tuple[Read, frozenset[str]], Answer] = {}
        self._alone: dict[Read, Answer] = {}
        self.windows: dict[object, Answer] = {}
        self.made: frozenset[str] = frozenset()
        self.masked = masked
        self.choices: frozenset[Condition] = frozenset(set(self.stage.guards) - set(stage.guards))

    @cached_property
    def with_choices(self) -> StageFacts | None:
        """The same stage with its choices in the body, for instructions that choose by themselves; None where that is
        no other form."""
        found = StageFacts(self.program, self.original, self.timeout_ms, lift=False)
        return None if found.stage == self.stage else found

    @cached_property
    def as_choice(self) -> StageFacts:
        """The same stage with all guards on data as choices of what is added, for instructions with a mask."""
        found = StageFacts(self.program, self.original, self.timeout_ms, lift=False, masked=True)
        found.made, found.choices = self.made, frozenset()
        return found

    @cached_property
    def numbers(self) -> dict[Read, Literal]:
        """Elements of which the program says the number: those of intermediates that hold one element, which the stage
        finds there."""
        found: dict[Read, Literal] = {}
        before = self.program.stages[: self.program.stages.index(self.original)]
        for stage in before:
            tensor = self.program.tensors[stage.assign.tensor]
            alone = sum(s.assign.tensor == tensor.name for s in self.program.stages) == 1
            plain = not stage.axes and not stage.guards and stage.init is None and stage.assign.op == "="
            number = stage.assign.value if tensor.intermediate and tensor.shape == (Const(1),) else None
            if isinstance(number, Literal) and alone and plain:
                found[Read(tensor.name, (Const(0),), tensor.dtype)] = number
        return found

    @cached_property
    def as_assignment(self) -> StageFacts:
        """The same stage, for instructions that overwrite their target: `C[i] += x` assigns `C[i] + x`."""
        stage = self.original
        reads_own = stage.assign.op != "=" or stage.target in stage.reads
        if self.assigned or not reads_own or stage.init is not None or stage.reduction:
            return self
        found = StageFacts(self.program, self.original, self.timeout_ms, assigned=True)
        found.made, found.choices = self.made, frozenset()
        return found

    @cached_property
    def update(self) -> Update:
        """The stage's normal form (raises NotAnUpdate)."""
        return assignment_of(self.stage) if self.assigned else update_of(self.stage)

    @cached_property
    def others(self) -> Update:
        """`update` without what each point reads of its own element, which it does before it writes that."""
        if not self.assigned:
            return self.update
        term = map_value(self.update.term, lambda v: Literal(0, v.dtype) if v == self.stage.target else v)
        return replace(self.update, term=term)

    @cached_property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """Inclusive ranges of symbolic sizes and axes (the hull, where bounds depend on outer axes)."""
        found = dict(self.program.symbolic)
        for a in self.stage.axes:
            low, high = interval(a.lower, found)[0], interval(a.upper, found)[1] - 1
            found[a.name] = low, max(low, high)
        return found

    @cached_property
    def idle(self) -> str | None:
        """An axis that runs no time whatever the sizes are."""
        return next((a.name for a in self.stage.axes if interval(a.upper - a.lower, self.ranges)[1] <= 0), None)

    @cached_property
    def extents(self) -> dict[str, int]:
        """The greatest trip count of each axis, outermost first."""
        return {a.name: self.ranges[a.name][1] - self.ranges[a.name][0] + 1 for a in self.stage.axes}

    @cached_property
    def exact(self) -> frozenset[str]:
        """Axes whose trip count is one known number."""
        return frozenset(a.name for a in self.stage.axes if not (index_axes((a.lower, a.upper))))

    @cached_property
    def reduced(self) -> tuple[str, ...]:
        """The axes that the target's address does not move with."""
        return tuple(a.name for a in self.update.axes_reduced)

    @cached_property
    def spatial(self) -> frozenset[str]:
        return frozenset(a.name for a in self.stage.spatial)

    @cached_property
    def guards(self) -> tuple[Condition, ...]:
        """The stage's guards, and the bounds of axes that depend on other axes, one conjunct each."""
        names = set(self.extents)
        bounds = [
            all_of(a.lower <= Var(a.name), Var(a.name) < a.upper)
            for a in self.stage.axes
            if index_axes((a.lower, a.upper)) & names
        ]
        return taken_apart((*bounds, *self.stage.guards))

    @cached_property
    def program_guards(self) -> tuple[Condition, ...]:
        """Those of `guards` that are no choices of the body: there the program computes nothing."""
        choices = taken_apart(tuple(self.choices))
        return tuple(g for g in self.guards if g not in choices)

    def ask(self, part: str, statement: str, claim: list[Any]) -> Answer:
        """Whether the constraints `claim` contradict each other, which proves the statement."""
        started = time.perf_counter()
        solver, answer = self._solved(claim)
        seconds = time.perf_counter() - started
        asked(part, statement, solver, answer)
        holds = True if answer == z3.unsat else False if answer == z3.sat else None
        return Answer(holds, Obligation(part, statement, "z3", seconds), solver.model() if holds is False else None)

    @cached_property
    def domain(self) -> Hashable:
        """All that symbolic points of the stage depend on: its axes with their bounds, and the ranges of sizes."""
        axes = tuple((a.name, a.lower, a.upper) for a in self.stage.axes)
        return axes, tuple((s, tuple(bounds)) for s, bounds in self.program.symbolic.items())

    def ask_once(self, question: Hashable, part: str, statement: str, claim: Callable[[], list[Any]]) -> Answer:
        """As `ask`, of a `question` that all of the claim follows from: what was proved before is not asked again."""
        if answer_before(question):
            return Answer(True, Obligation(part, statement, "z3"))
        found = self.ask(part, statement, claim())
        if found.holds:
            remember(question, True)
        return found

    def _solved(self, claim: list[Any]) -> tuple[z3.Solver, z3.CheckSatResult]:
        """What z3 says of the constraints. Nearly all are small and contradict each other, which its plain core shows
        in half the time; what it does not show at once, all of z3 is asked."""
        answer = z3.unknown
        for make, share in ((z3.SimpleSolver, QUICK), (z3.Solver, 1)):
            solver = make()
            solver.set("timeout", max(1, self.timeout_ms // share))
            solver.add(*claim)
            answer = solver.check()
            if answer == z3.unsat:
                break
        return solver, answer

    @cached_property
    @proving
    def distinct_writes(self) -> Answer:
        """Different points of the spatial axes write different elements."""
        guards, index = tuple(g for g in self.guards if isinstance(g, Bool)), self.stage.assign.index

        def claim() -> list[Any]:
            functions: dict[str, Any] = {}
            first, second = (Points(self.program, self.stage.axes, tag, functions) for tag in ("", "'"))
            found = first.domain + second.domain
            for points in (first, second):
                found += [to_z3(g, points.env) for g in guards]
            found += [first.index(i) == second.index(i) for i in index]
            return [*found, z3.Or(*(first.env[a] != second.env[a] for a in self.spatial))]

        names = ", ".join(a.name for a in self.stage.spatial) or "no axis"
        text = f"{show_leaf(self.stage.target)} is another element for every other {names}"
        return self.ask_once(("writes", self.domain, guards, index, self.spatial), "axes", text, claim)

    @cached_property
    @proving
    def write_conflict(self) -> Reason:
        """Why `distinct_writes` does not hold, with two points that write one element."""
        model = self.distinct_writes.model
        first, second = ({d.name(): model[d] for d in model.decls() if d.arity() == 0} for _ in range(2))
        points = []
        for found, tag in ((first, ""), (second, "'")):
            points.append(", ".join(f"{a.name} = {found.get(a.name + tag, 0)}" for a in self.stage.spatial))
        text = f"{show_leaf(self.stage.target)} is one element at ({points[0]}) and at ({points[1]})"
        fix = "index the written tensor by an axis of its own, and let the other be a reduction"
        return Reason("WRITE_CONFLICT", text, fix=fix)

    @proving
    def address_is_function(self, read: Read, axes: frozenset[str]) -> Answer:
        """The element `read` depends on `axes` alone."""
        key = read, axes
        if key not in self._functions:

            def claim() -> list[Any]:
                functions: dict[str, Any] = {}
                first, second = (Points(self.program, self.stage.axes, tag, functions) for tag in ("", "'"))
                found = first.domain + second.domain + [first.env[a] == second.env[a] for a in axes]
                return [*found, z3.Or(*(first.index(i) != second.index(i) for i in read.index))]

            names = ", ".join(a for a in self.extents if a in axes) or "no axis"
            text = f"the address of {show_leaf(read)} is a function of {names} alone"
            question = "address", self.domain, read.index, axes
            self._functions[key] = self.ask_once(question, "addresses", text, claim)
        return self._functions[key]

    def moved_alone(self, read: Read) -> Answer:
        """The element `read` depends on the axes alone that are free in its subscripts."""
        if read not in self._alone:
            self._alone[read] = self.address_is_function(read, self.free_axes(index_axes(read.index)))
        return self._alone[read]

    @proving
    def inside(self, read: Read) -> Answer | None:
        """Whether the element `read` is one of its tensor wherever the stage runs. None: it is, because the stage reads
        it there, and not only where a choice asks for it."""
        if read not in self._chosen_reads:
            return None
        shape = self.program.tensors[read.tensor].shape
        parts = [(i, size) for i, size in zip(read.index, shape, strict=True) if isinstance(i, Int)]
        ends = [(interval(i, self.ranges), size) for i, size in parts]
        if all(low >= 0 and isinstance(size, Const) and high < size.value for (low, high), size in ends):
            return None
        if read not in self.windows:
            points = Points(self.program, self.stage.axes, "", {})
            claim = points.domain + [to_z3(g, points.env) for g in self.guards if isinstance(g, Bool)]
            found = [(to_z3(i, points.env), to_z3(size, points.env)) for i, size in parts]
            claim.append(z3.Or(*(z3.Or(i < 0, i >= size) for i, size in found)))
            self.windows[read] = self.ask("addresses", f"{show_leaf(read)} lies inside of {read.tensor}", claim)
        return self.windows[read]

    @cached_property
    def _chosen_reads(self) -> frozenset[Read]:
        """What the term reads where a choice asks for it only."""
        choices = [v for v in walk(self.update.term) if isinstance(v, Select)]
        return frozenset(r for v in choices for side in (v.then, v.other) for r in reads(side))

    def as_given(self, value: Value) -> Value:
        """`value` with what an adapter's tensor is made of in place of its elements: of what the program itself names.

        A_negated[r]    becomes    -A[r]
        """

        def element(v: Value) -> Value:
            if not (isinstance(v, Read) and v.tensor in self.made and is_plain(v.index)):
                return v
            written = [s.assign for s in self.program.stages if s.assign.tensor == v.tensor]
            names = [p.name for p in written[0].index if isinstance(p, Var)] if len(written) == 1 else []
            if len(set(names)) != len(v.index) or written[0].op != "=":
                return v
            at = dict(zip(names, v.index, strict=True))
            return self.as_given(map_value(written[0].value, on_int=lambda e: substitute_int(e, at)))

        return map_value(value, element) if self.made else value

    @proving
    def _always(self, condition: Bool) -> bool:
        """Whether a formula is proved to hold at all points of the stage."""
        points = Points(self.program, self.original.axes, "", {})
        claim = points.domain + [to_z3(g, points.env) for g in self.original.guards if isinstance(g, Bool)]
        text = f"{condition} wherever the stage runs"
        return bool(self.ask("axes", text, [*claim, to_z3(~condition, points.env)]).holds)

    @cached_property
    def lifts(self) -> bool:
        """Whether a step is left out where the program adds a product with zero, of floats: the sign of a zero may
        differ, and `zeroed` must be finite."""
        return len(self.stage.guards) > len(self.original.guards) and self.update.target.dtype.is_float

    @property
    def zeroed(self) -> frozenset[Value]:
        """The factors that meet such a zero."""
        return self._zeroed if self.lifts else frozenset()

    @cached_property
    def alias(self) -> tuple[Reason | None, bool]:
        """Why the stage may not be reordered because it reads what it or a neighbour writes; and whether a limit was
        met."""
        operands = (self.others.term, *self.guards, *self.stage.assign.index)
        reason, known = own_conflict(self.program, self.stage, operands, self.ask)
        if reason is not None or not known:
            return reason, known
        return neighbour_conflict(self.program, self.original, self.stage, self.ask)

    def free_axes(self, names: frozenset[str]) -> frozenset[str]:
        """`names` less what is no axis of the stage (symbolic sizes)."""
        return names & frozenset(self.extents)
