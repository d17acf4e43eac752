"""Is the kernel right? Run in the interpreter against the oracle: as it is where it is small, else cut down.

Cut down means: the same plan and schedule for a program whose loops are shorter, and its tensors no longer than these
reach; guards and address formulas stay. Decisions that the shorter loops do not have take their nearest value, and
the text says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from autosched.codegen.kernel import Kernel
from autosched.codegen.lower import lower
from autosched.device.compare import Difference, compare
from autosched.device.oracle import Oracle, compute
from autosched.device.simulator.runner import INTERPRETER, Run, Runner
from autosched.device.tolerance import slack, widened
from autosched.device.violations import Violation, assuming, violations
from autosched.ir.program import Assume, Axis, Guard, Loop, Program, Statement
from autosched.ir.value import reads
from autosched.logic import Const, Int, interval
from autosched.tiling.dependence import analyse
from autosched.tiling.fallback import scalar_fallback
from autosched.tiling.gpu_steps import written_types
from autosched.tiling.leeway import Leeway
from autosched.tiling.nest import make_nest
from autosched.tiling.nest_steps import nest_steps
from autosched.tiling.plan import LiteralPart, Part, Plan, RowsPart, ScalarPart, TeamPart, TensorPart
from autosched.tiling.scalar_steps import choices_of, rows_step, scalar_step
from autosched.tiling.schedule import Schedule
from autosched.tiling.space import Space
from autosched.tiling.step import Decision, Step
from autosched.tiling.team_steps import team_choices, team_step

CAPS = ((70, 68), (54, 52), (37, 36), (27, 28), (19, 20), (13, 12), (9, 8), (5, 4), (64, 128))
"""Longest spatial and reduction loops of cut-down programs, in the order in which they are tried: such that
tiles do not divide the spatial ones, and unrolling does divide the others. The last is for a GPU's large tiles and wide
copies, which need lengths that they divide."""
MOST_REPAIRS = 24
"""Steps by which decisions may be lowered until a schedule fits a cut-down program."""
MOST_ELEMENTS = 1 << 24
"""Elements of all tensors together above which nothing is run: filling them would take seconds."""


@dataclass(frozen=True)
class Verdict:
    """`by` says what the kernel was checked against; `difference` is None where nothing was run."""

    by: str
    difference: Difference | None = None


UNVERIFIED = "not verified: too large for {}; the mapping is proved"


def check(kernel: Kernel, oracle: Oracle, run: Run = INTERPRETER.run) -> Difference:
    """The kernel's outputs, element by element, against the oracle's."""
    got = run(kernel, oracle.inputs, oracle.scalars)
    worst: Difference | None = None
    for name, want in oracle.wants.items():
        tolerance = oracle.tolerances.get(name)
        flat = None if tolerance is None else np.broadcast_to(tolerance, want.shape).reshape(-1)
        found = compare(np.asarray(got[name]).reshape(-1), np.asarray(want).reshape(-1), flat)
        if worst is None or not found.ok or (worst.ok and found.error > worst.error):
            worst = found
        if not found.ok:
            break
    assert worst is not None, "a program has an output"
    return worst


def elements(program: Program) -> int:
    return sum(prod(t.extents) for t in program.tensors.values())


def cut(program: Program, most: tuple[int, int]) -> Program:
    """The program with no spatial, no reduction loop of constant bounds longer than `most`, and smaller tensors;
    addresses and guards stay."""
    reduced = {a.name for s in program.stages for a in s.reduction}

    def shorter(stmt: Statement) -> Statement:
        match stmt:
            case Loop(axis, body):
                if isinstance(axis.lower, Const) and isinstance(axis.upper, Const):
                    limit = axis.lower.value + most[axis.name in reduced]
                    axis = Axis(axis.name, axis.lower, Const(min(axis.upper.value, limit)))
                return replace(stmt, axis=axis, body=tuple(map(shorter, body)))
            case Guard(_, body):
                return replace(stmt, body=tuple(map(shorter, body)))
            case _:
                return stmt

    return narrowed(replace(program, body=tuple(map(shorter, program.body))))


def narrowed(program: Program) -> Program:
    """The program with tensors no longer than its loops reach; data-dependent subscripts reach anywhere."""
    reach: dict[str, list[int]] = {name: [1] * len(t.shape) for name, t in program.tensors.items()}
    for stage in program.stages:
        ranges: dict[str, tuple[int, int]] = {}
        for axis in stage.axes:
            low, high = interval(axis.lower, ranges)[0], interval(axis.upper, ranges)[1] - 1
            ranges[axis.name] = low, max(low, high)
        start = () if stage.init is None else tuple(reads(stage.init))
        for read in (*stage.reads, *start, stage.target):
            extents = program.tensors[read.tensor].extents
            for d, part in enumerate(read.index):
                high = interval(part, ranges)[1] if isinstance(part, Int) else extents[d]
                reach[read.tensor][d] = max(reach[read.tensor][d], min(extents[d], high + 1))
    tensors = {n: replace(t, shape=tuple(Const(k) for k in reach[n])) for n, t in program.tensors.items()}
    return replace(program, tensors=tensors)


def cut_plan(plan: Plan, program: Program, threads: int) -> Plan:
    """The same plan for a cut-down program. ValueError or LookupError where its nests cannot be cut."""
    stages = {s.name: s for s in program.stages}
    parts: list[Part] = []
    steps: list[Step] = []
    choices = choices_of(plan.parts, plan.target)
    for part in plan.parts:
        match part:
            case TensorPart():
                mapping = replace(part.nest.mapping, program=program, stage=stages[part.nest.stage.name])
                behind = tuple(replace(f, stage=stages[f.stage.name]) for f in part.epilogue)
                part = replace(part, nest=make_nest(mapping), epilogue=behind)
                if part.fallback is not None:
                    same = (stages[part.nest.stage.name], *(f.stage for f in behind))
                    spare = scalar_fallback(program, same, analyse(program), threads, Leeway(formulas=plan.formulas))
                    part = replace(part, fallback=spare)
                steps += nest_steps(part.nest, plan.target, threads, part.names, written_types(part))
            case ScalarPart():
                part = replace(part, stage=stages[part.stage.name])
                steps.append(scalar_step(part, threads, choices))
            case RowsPart():
                part = replace(part, members=tuple(replace(m, stage=stages[m.stage.name]) for m in part.members))
                steps.append(rows_step(part, threads, choices))
            case TeamPart():
                part = replace(part, members=tuple(stages[m.name] for m in part.members))
                steps.append(team_step(part, program, plan.target, team_choices(plan.parts)))
            case LiteralPart():
                whole = [s for s, old in zip(program.body, plan.program.body, strict=True) if old in part.body]
                part = replace(part, body=tuple(whole))
        parts.append(part)
    if not steps:
        steps.append(Step("as written", (Decision("threads", (1,)),)))
    return Plan(plan.name, program, plan.target, tuple(parts), Space(plan.name, steps), formulas=plan.formulas)


def nearest_row(space: Space, schedule: Schedule) -> tuple[int, list[str]] | None:
    """A legal row with the schedule's values where the space has them, and the decisions that had to differ. Where
    rules are broken, decisions they depend on are lowered one step at a time; None where that does not help."""
    values: dict[str, int] = {}
    for d in space.decisions:
        want = schedule.values.get(d.name, d.domain[0])
        values[d.name] = want if want in d.domain else max((v for v in d.domain if v <= want), default=d.domain[0])
    for _ in range(MOST_REPAIRS):
        row = int(space.canonical([space.row_of(values)])[0])
        broken = space.violated(row)
        if not broken:
            chosen = space.schedule(row)
            return row, [f"{k}={v}" for k, v in chosen.named.items() if chosen.values[k] != schedule.values.get(k)]
        tries = []
        for k in sorted(space.depends_on(broken[0].holds)):
            d = space.decisions[k]
            at = d.domain.index(values[d.name])
            if at > 0:
                lower = values | {d.name: d.domain[at - 1]}
                tries.append((len(space.violated(int(space.canonical([space.row_of(lower)])[0]))), -at, k, lower))
        if not tries:
            return None
        values = min(tries, key=lambda t: t[:3])[3]
    return None


class Verifier:
    """Checks kernels of one program; what does not depend on the schedule is computed once."""

    def __init__(self, seed: int, oracle: Oracle | None = None, runner: Runner = INTERPRETER) -> None:
        self.seed, self.runner = seed, runner
        self._given = oracle
        self._oracles: dict[tuple[int, tuple[Assume, ...], float], tuple[Program, Oracle]] = {}
        self._violated: dict[tuple[object, ...], tuple[Program, Oracle]] = {}
        self._wider: dict[tuple[int, float], tuple[Program, Oracle]] = {}
        self._plans: dict[tuple[int, tuple[int, int]], tuple[Plan, Plan | None]] = {}

    def whole(self, kernel: Kernel, plan: Plan) -> Verdict:
        """The kernel itself, against the oracle; also where the data break what it checks."""
        return Verdict(self.runner.name, self._checked(kernel, kernel.program, plan, slack(plan), self._given))

    def cut_down(self, plan: Plan, schedule: Schedule, threads: int) -> Verdict:
        """A smaller kernel of the same plan and schedule, as large as the runner can run quickly."""
        for most, small in self._small(plan, threads):
            if elements(small.program) > MOST_ELEMENTS:
                continue
            found = nearest_row(small.space, schedule)
            if found is None:
                continue
            row, changed = found
            kernel = lower(small, small.space.schedule(row))
            if statements(kernel) > self.runner.most:
                continue
            try:
                difference = self._checked(kernel, small.program, small, slack(plan))
            except (IndexError, ValueError):  # stages of a cut-down program may read what it no longer writes
                continue
            but = f" (where {', '.join(changed)})" if changed else ""
            return Verdict(f"{self.runner.name}, with loops cut to {most[0]} iterations{but}", difference)
        return Verdict(UNVERIFIED.format(self.runner.name))

    def _checked(
        self, kernel: Kernel, program: Program, plan: Plan, slack: float, given: Oracle | None = None
    ) -> Difference:
        """On data that the plan's checks admit, then on each data set that they refuse: the first that is wrong."""
        run = self.runner.run
        if given is None:
            oracle = self.oracle(program, (*plan.guards, *plan.granted), slack)
        else:
            oracle = self._widened(program, given, slack)
        found = check(kernel, oracle, run)
        for violation in violations(program, plan, self.seed):
            if not found.ok:
                break
            refused = check(kernel, self._refused(violation, slack), run)
            found = found if refused.ok else refused
        return found

    def _widened(self, program: Program, given: Oracle, slack: float) -> Oracle:
        """The given oracle's data, with tolerances of few bits; kept by the program's identity."""
        key = id(program), slack
        if key not in self._wider:
            self._wider[key] = program, widened(given, program, self.seed, slack)
        return self._wider[key][1]

    def _refused(self, violation: Violation, slack: float) -> Oracle:
        """The oracle on data that break a check, kept by the program's identity."""
        key = id(violation.program), violation.tensor, violation.past, violation.others, slack
        if key not in self._violated:
            oracle = compute(violation.program, self.seed, inputs=violation.inputs(), slack=slack)
            self._violated[key] = violation.program, oracle
        return self._violated[key][1]

    def _small(self, plan: Plan, threads: int) -> Iterator[tuple[tuple[int, int], Plan]]:
        for most in CAPS:
            key = id(plan), most
            if key not in self._plans:
                try:
                    small: Plan | None = cut_plan(plan, cut(plan.program, most), threads)
                except (ValueError, LookupError):
                    small = None
                self._plans[key] = plan, small
            found = self._plans[key][1]
            if found is not None:
                yield most, found

    def oracle(self, program: Program, conditions: tuple[Assume, ...] = (), slack: float = 1.0) -> Oracle:
        """The program's oracle on data within the conditions, kept by the program's identity; sums of instructions may
        be off `slack` times as far, before they are rounded to what is stored."""
        key = id(program), conditions, slack
        if key not in self._oracles:
            self._oracles[key] = program, compute(assuming(program, conditions), self.seed, slack=slack)
        return self._oracles[key][1]


def statements(kernel: Kernel) -> float:
    """Statements that one run of the kernel executes."""
    from autosched.device.simulator.walk import facts

    return sum(facts(kernel, stmt).statements for stmt in kernel.main.body)
