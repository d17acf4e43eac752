"""Is the kernel right? Run in the interpreter against the oracle: as it is where it is small, else cut down
(`smaller`), and the text says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.device.correctness.compare import Difference, compare
from autosched.device.correctness.ends import LeftOut, further, not_checked
from autosched.device.correctness.oracle import Oracle, compute, slack, widened
from autosched.device.correctness.special import assumed_finite
from autosched.device.correctness.violations import ViolatingData, assuming, violations
from autosched.device.simulator.verify.runner import INTERPRETER, Run, Runner
from autosched.device.simulator.verify.smaller import CAPS, nearest_row, smaller
from autosched.ir.nodes import Assume
from autosched.ir.oracle.slack import NO_SLACK, Slack
from autosched.ir.program import Program
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.schedule import Schedule

MOST_ELEMENTS = 1 << 24
"""Elements of all tensors together above which nothing is run: filling them would take seconds."""


@dataclass(frozen=True)
class KernelVerdict:
    """`by` says what the kernel was checked against; `difference` is None where nothing was run."""

    by: str
    difference: Difference | None = None


def unverified(why: str, plan: Plan) -> KernelVerdict:
    """Nothing ran; what is known all the same is that mappings are proved, where the plan has some."""
    return KernelVerdict(f"not verified{why}{'; the mapping is proved' if plan.mappings else ''}")


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


class Verifier:
    """Checks kernels of one program, on at most `most_elements` of all its tensors; what does not depend on the
    schedule is computed once."""

    def __init__(
        self,
        seed: int,
        oracle: Oracle | None = None,
        runner: Runner = INTERPRETER,
        most_elements: int = MOST_ELEMENTS,
        written: Program | None = None,
    ) -> None:
        """`written`: the program as it was given, where kernels may be of one that adapters made of it."""
        self.seed, self.runner, self._most_elements, self._written = seed, runner, most_elements, written
        self._as_written: dict[int, Plan] = {}
        self._given = oracle
        self._oracles: dict[tuple[int, tuple[Assume, ...], Slack], tuple[Program, Oracle]] = {}
        self._violated: dict[tuple[object, ...], tuple[Program, Oracle]] = {}
        self._beside: dict[tuple[object, ...], tuple[Program, tuple[Oracle, ...], tuple[LeftOut, ...]]] = {}
        self._wider: dict[tuple[int, Slack], tuple[Program, Oracle]] = {}
        self._plans: dict[tuple[int, tuple[int, int]], tuple[Plan, Plan | None]] = {}

    def whole(self, kernel: Kernel, plan: Plan) -> KernelVerdict:
        """The kernel itself, against the oracle; also where the data break what it checks."""
        found = self._checked(kernel, kernel.program, plan, slack(plan), self._given)
        return KernelVerdict(self.runner.name, self._of_the_program(kernel, plan, found))

    def _of_the_program(self, kernel: Kernel, plan: Plan, found: Difference) -> Difference:
        """The same against the program as it was given, which no adapter has touched: of each plan until one kernel is
        right, where the plan admits all data."""
        given, conditions = self._written, (*plan.guards, *plan.granted)
        if not found.ok or given is None or given is kernel.program or conditions or id(plan) in self._as_written:
            return found
        again = check(kernel, self.oracle(given, (), slack(plan)), self.runner.run)
        if again.ok:
            self._as_written[id(plan)] = plan
        return found if again.ok else again

    def cut_down(self, plan: Plan, schedule: Schedule, threads: int, whole: float = 0.0) -> KernelVerdict:
        """A smaller kernel of the same plan and schedule, as large as the runner can run quickly; the kernel itself
        executes `whole` statements, where that is known."""
        for most, small in self._small(plan, threads):
            if elements(small.program) > self._most_elements:
                continue
            found = nearest_row(small.space, schedule)
            if found is None:
                continue
            row, changed = found
            kernel = lower(small, small.space.schedule(row))
            if statements(kernel) > self.runner.most:
                continue
            difference = self._checked(kernel, small.program, small, slack(plan))
            but = f" (where {', '.join(changed)})" if changed else ""
            return KernelVerdict(f"{self.runner.name}, with loops cut to {most[0]} iterations{but}", difference)
        size = f" ({whole:,.0f} statements, of {self.runner.final:,} that it runs)" if whole else ""
        loops = ", and tile loops are not cut down" if plan.in_tile_loops else ""
        return unverified(f": too large for {self.runner.name}{size}{loops}{self._emulated(whole)}", plan)

    def _emulated(self, whole: float) -> str:
        """What the emulated card would run of kernels like this one, where there is one and it is not asked."""
        most = self.runner.emulated
        if not whole or not most:
            return ""
        if whole <= most:
            return "; with --emulate it is run"
        return f"; smaller sizes (-D) are run with --emulate: {most:,} statements at most"

    def _checked(
        self, kernel: Kernel, program: Program, plan: Plan, slack: Slack, given: Oracle | None = None
    ) -> Difference:
        """On data that the plan's checks admit, then on each data set that they refuse, then on data at the
        ends of their ranges and with NaN and infinities: the first that is wrong."""
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
        for other in self._further(program, plan, slack) if given is None else ():
            if not found.ok:
                break
            again = check(kernel, other, run)
            found = found if again.ok else again
        return found

    def _further(self, program: Program, plan: Plan, slack: Slack) -> tuple[Oracle, ...]:
        """The oracles on data at the ends of their ranges and with NaN and infinities, kept by the program's
        identity."""
        conditions = (*plan.guards, *plan.granted)
        key = id(program), assumed_finite(plan), conditions, slack
        if key not in self._beside:
            within = assuming(program, conditions)

            def computed(inputs: Mapping[str, Any]) -> Oracle:
                return compute(within, self.seed, inputs=inputs, slack=slack)

            sets = further(within, self.seed, key[1], computed)
            self._beside[key] = program, tuple(data.found.oracle for data in sets.sets), sets.left_out
        return self._beside[key][1]

    def not_checked(self, program: Program, plan: Plan) -> dict[str, list[str]]:
        """What a trial says of data on which nothing, or little, was checked."""
        found = self._oracles.get((id(program), (*plan.guards, *plan.granted), slack(plan)))
        beside = self._beside.get((id(program), assumed_finite(plan), (*plan.guards, *plan.granted), slack(plan)))
        return not_checked(found[1], beside[2]) if found and beside else {}

    def _widened(self, program: Program, given: Oracle, slack: Slack) -> Oracle:
        """The given oracle's data, with tolerances of few bits; kept by the program's identity."""
        key = id(program), slack
        if key not in self._wider:
            self._wider[key] = program, widened(given, program, self.seed, slack)
        return self._wider[key][1]

    def _refused(self, violation: ViolatingData, slack: Slack) -> Oracle:
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
                self._plans[key] = plan, smaller(plan, most, threads)
            found = self._plans[key][1]
            if found is not None:
                yield most, found

    def oracle(self, program: Program, conditions: tuple[Assume, ...] = (), slack: Slack = NO_SLACK) -> Oracle:
        """The program's oracle on data within the conditions, kept by the program's identity; sums of instructions may
        be off `slack` times as far, before they are rounded to what is stored."""
        key = id(program), conditions, slack
        if key not in self._oracles:
            self._oracles[key] = program, compute(assuming(program, conditions), self.seed, slack=slack)
        return self._oracles[key][1]


def statements(kernel: Kernel) -> float:
    """Statements that one run of the kernel executes."""
    from autosched.device.simulator.walk.walk import facts

    return sum(facts(kernel, stmt).statements for stmt in kernel.main.body)
