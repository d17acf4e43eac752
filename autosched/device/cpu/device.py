"""The `cpu` device: lowers and prints here or in the builder's process, which compiles; checks and times in a worker.

Where there are more cores than a kernel has threads, a search proposes, prints and compiles on the others while the
worker measures (docs/experiments/search-cost.md). Nothing of the search runs beside its final round.
"""

from __future__ import annotations

import contextlib
import platform
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import llvmlite
import llvmlite.binding as llvm

from autosched.backends import PORTABLE, host_backend
from autosched.device.correctness.ends import Ends, Further, LeftOut, ends, not_checked
from autosched.device.correctness.oracle import Oracle, scalars_as_bytes, slack, widened
from autosched.device.correctness.sampled import Expected, Sampled, expected, write_data, write_outputs
from autosched.device.correctness.special import Special, assumed_finite, lenient, special
from autosched.device.correctness.violations import Widening, violations
from autosched.device.cpu.builder import Builder, BuildError
from autosched.device.cpu.rounds import Rounds
from autosched.device.cpu.whole_runs import WholeRuns
from autosched.device.job import DataSet, Effort, Outcome, TensorFile
from autosched.device.processes.async_measure import MeasureThread
from autosched.device.processes.background_build import BackgroundBuilds
from autosched.device.processes.claimable_build import ClaimableBuild, PickledPlans
from autosched.device.processes.process import WorkerDiedError, WorkerProcess, WorkerTimeoutError, ask_worker
from autosched.device.protocol import Build, Detected, Draft
from autosched.errors import AutoschedError, MissingError, UsageError
from autosched.ir.oracle.slack import NO_SLACK, joined
from autosched.ir.program import Program
from autosched.machine.detect import cpu_model, detect, usable_cpus
from autosched.machine.host import host_features
from autosched.machine.target import Target
from autosched.scratch import Scratch, scratch_errors
from autosched.store.records import Measurement
from autosched.tiling.candidate import Candidate
from autosched.tiling.plans.plan import Plan

if TYPE_CHECKING:
    from pathlib import Path

    from autosched.device.cpu.build import LoweredCandidate as Printed
    from autosched.tensorize.spec.catalogue import Catalogue

EFFORTS = {
    "search": Effort(most=15, budget_s=0.01, paced=True),
    "final": Effort(fewest=10, most=100, sample_s=1e-3, budget_s=0.2, tolerance=0.002),
}
ROUGH = 1.25
"""A candidate this many times slower than the best gets a few samples only."""
DATA_LIMIT_S = 120.0
"""For the worker to load data."""
PLAIN_S, FURTHER_S = 20.0, 8.0
"""What the loops as written may take on random data, and on all further data sets together."""
STRAYS = 4
"""The most elements of an output on a data set for which one measurement has the interpreter compute one more box."""
T = TypeVar("T")


class CpuDevice:
    """Times candidates of one program on this machine's CPU.

    `threads` are pinned to as many CPUs; `deadline_s` bounds loading, checking and timing of one candidate (slow ones
    have longer, by what the model says of them); `cache` is `warm`, or `cold`: every timed call then finds its data in
    DRAM. `oracle` overrides inputs and expected outputs, which otherwise come from the interpreter on random inputs of
    `seed`. Outputs that are too large for it are compared whole with those of the loops as written (`plain_loops`),
    which may take `plain_s` seconds. UsageError on options that cannot be right.
    """

    name = "cpu"

    def __init__(
        self,
        program: Program | None = None,
        target: Target | None = None,
        *,
        threads: int = 1,
        deadline_s: float = 10.0,
        cache: str = "warm",
        seed: int = 0,
        oracle: Oracle | None = None,
    ) -> None:
        cpus = usable_cpus()
        if not 1 <= threads <= len(cpus):
            most = f"1 to {len(cpus)}" if len(cpus) > 1 else "1"
            said = f"{threads} threads, and this process may run on {len(cpus)} of the CPUs"
            raise UsageError(said, hint=f"use {most}")
        self.rounds = Rounds(EFFORTS, ROUGH, cache, deadline_s)
        self.program, self.threads, self.cache, self.seed = program, threads, cache, seed
        self.target = target or detect()
        _require(self.target)
        self._own = cpus[-threads:]  # the last ones: the first serve most interrupts
        self.worker = WorkerProcess("autosched.device.cpu.worker", self._own)
        self.builder = Builder()
        self._pickled = PickledPlans()
        self._measuring, self._background = MeasureThread(cpus[:-threads], cpus), BackgroundBuilds()
        self._lock = threading.RLock()  # on what building and measuring both ask for: the program's data
        self._warming: Future[None] | None = None
        self._foreseen: Future[None] | None = None
        self._given_up = False
        self._oracle = oracle
        self.plain_s = PLAIN_S
        self._plain = WholeRuns(self.target, self.builder)
        self._folder, self._widening = Scratch(), Widening(program)
        self._tensors: tuple[TensorFile, ...] = ()
        self._written: Program | None = None
        self._computed: tuple[Program, Expected] | None = None
        self._slack = NO_SLACK
        """The most that some plan's tolerances are wider."""
        self._finite: frozenset[str] = frozenset()
        """Tensors that some plan assumed to be finite."""
        self._special: tuple[Program, frozenset[str], Special | None] | None = None
        self._ends: tuple[Program, tuple[Ends, ...], tuple[LeftOut, ...]] | None = None
        self._told = False
        """Whether the worker knows of the data sets beside the program's."""

    @staticmethod
    def runs(target: Target) -> bool:
        """Whether this machine's CPU has everything that the target lists."""
        return target.backend in (host_backend(), PORTABLE) and target.features <= host_features()

    @staticmethod
    def detect(known: Catalogue, effort: str, cache: Path | None = None) -> Detected:
        """This machine, its own instructions measured (`native_target`)."""
        from autosched.device.cpu.native_target import native_target

        here = detect()
        chosen = known.of_isa(here.isa, features=here.features)
        target, peaks = native_target(chosen, cache=cache, effort=effort)
        measured = {"rates": peaks.rates, "seconds": peaks.seconds}
        return Detected(target, measured, {i.name: i.operations for i in chosen})

    def describe(self) -> dict[str, Any]:
        """What results depend on: the CPU, the compiler, threads and cache state."""
        return {
            "name": self.name,
            "kind": "cpu",
            "cpu": cpu_model(),
            "machine": platform.machine(),
            "toolchain": f"llvmlite {llvmlite.__version__} (LLVM {'.'.join(map(str, llvm.llvm_version_info))})",
            "threads": self.threads,
            "cache": self.cache,
        }

    def build(self, candidate: Candidate) -> Build:
        """Lower and compile; `payload` is a `Job`."""
        return self.build_all([candidate])[0]

    def build_all(self, candidates: Sequence[Candidate]) -> list[Build]:
        """`build` for each. Nothing is timed meanwhile, so lowering and compiling use two cores."""
        from autosched.device.cpu.build import build_all  # lowering is not needed to time what is built already

        self._warmed()
        return list(build_all([self._wanted(c) for c in candidates], self.target, self.builder))

    def draft(self, candidate: Candidate) -> Draft:
        """A build that is lowered and printed here, ahead, or else in the builder's process, which compiles it while
        earlier candidates are measured."""
        from autosched.device.cpu.build import compile_draft, draft
        from autosched.device.cpu.remote_build import BuildRequest

        _, scalars, violations = wanted = self._wanted(candidate)
        compiler = self.target.compiler
        plan = self._pickled.of(candidate.plan)  # by the thread that proposes: others must not look at it meanwhile
        request = BuildRequest(plan, candidate.row, scalars, violations, compiler.get("cpu"), compiler.get("features"))

        def there() -> Build:
            clock = time.perf_counter()
            try:
                built = self.builder.build(request)
            except BuildError as error:  # LLVM ended the process
                return Build(candidate, error=error.message, seconds=time.perf_counter() - clock)
            return built.build(candidate) if built else compile_draft(draft(*wanted), self.target, self.builder)

        def compiled(made: Printed) -> Build:
            return compile_draft(made, self.target, self.builder)

        return self._background.add(ClaimableBuild(lambda: draft(*wanted), compiled, there, self.builder.ready))

    def _wanted(self, candidate: Candidate) -> tuple[Candidate, dict[str, Any], tuple[str, ...]]:
        """The candidate, the values of its program's scalars, and data that its kernel must refuse."""
        program = self._widening.of(candidate.plan)
        scalars = self._data_of(program).oracle.scalars if program.scalars else {}
        return candidate, dict(scalars), tuple(v.folder for v in violations(program, candidate.plan, self.seed))

    @property
    def aside(self) -> bool:
        """Whether there are more CPUs than a kernel has threads."""
        return bool(self._measuring.spare)

    def begin(self, work: Callable[[], T]) -> Future[T]:
        """Queue `work`, which builds and measures with this device, on the measuring thread. The calling thread keeps
        off the kernels' CPUs meanwhile."""
        return self._measuring.begin(work)

    def warm(self) -> None:
        """Start the processes and compute the program's data in parallel, so that the first measurement need not
        wait."""

        def start() -> None:
            with contextlib.suppress(AutoschedError):  # the first use raises it
                with ThreadPoolExecutor(2) as starting:
                    starting.submit(self.builder.ready)
                    starting.submit(self.worker.ensure)
                    if self.program is not None:
                        self._data_of(self.program)
                if self.program is not None:
                    self._provide(self.program)

        if self.aside:
            self._warming = self._measuring.begin(start, apart=False)

    def foresee(self, plan: Plan) -> None:
        """Compute beside other work the further data for candidates of the plan, and run the loops as written on them;
        those with NaN depend on what it assumes finite."""

        def look() -> None:
            if self.program is not None and not plan.guards and not plan.granted:
                self._allow(plan)
                self._finite |= assumed_finite(plan)
                with contextlib.suppress(AutoschedError, WorkerDiedError, WorkerTimeoutError):
                    self._find_beside(self.program, self._finite)
                    self._provide(self.program)
                    self._provide_beside(self.program)

        if self.aside:
            self._foreseen = self._measuring.begin(look, apart=False)

    def _warmed(self) -> None:
        """Wait until the processes have started: each of them answers one thread at a time."""
        if self._warming is not None:
            wait([self._warming])

    def give_up(self) -> None:
        """End the running measurement and builds, and forget queued work."""
        self._measuring.cancel()
        self._given_up = True
        self.worker.kill()
        self._background.give_up(self.builder.kill)
        self._measuring.settle(self.worker.kill)
        self._given_up = False

    def measure(self, build: Build, repeats: str = "search", *, best_s: float | None = None) -> Measurement:
        """Check, then time. A candidate that is clearly slower than `best_s` gets few samples (None: than the fastest
        that this device has seen of the program)."""
        with self._to_itself():
            return self._noted(self.rounds.measure(self._ask, build, repeats, best_s))

    def measure_interleaved(self, builds: Sequence[Build], rounds: int = 15) -> list[Measurement]:
        """All builds in turn, `rounds` times (A B C A B C …), so that a drift of the machine meets all alike.

        One measurement a build, in order. A build that ends the worker is left out of the next attempt.
        """
        return [self._noted(found) for found in self.rounds.interleaved(self._ask, builds, rounds)]

    def callable(self, candidate: Candidate) -> Any:
        """The candidate as a function of numpy arrays, in this process; BuildError where it does not compile.

        For candidates that were measured: nothing protects the caller from one that crashes.
        """
        from autosched.codegen.call.callable import CompiledKernel
        from autosched.codegen.llvm.machine.jit import load
        from autosched.device.cpu.build import compiled

        kernel, code = compiled(candidate, self.target, self.builder)
        return CompiledKernel(kernel, load(code), self.target.name)

    def close(self) -> None:
        """End the worker and the builder, and remove their data."""
        self.give_up()
        self._measuring.close()
        self._background.close(self.builder.kill)
        self.worker.close()
        self.builder.close()
        self._folder.close()
        self._plain.close()
        self._written = None

    def __enter__(self) -> CpuDevice:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _noted(self, found: Measurement) -> Measurement:
        """With what is not checked."""
        if not found.ok or self._computed is None or self._ends is None:
            return found
        said = not_checked(self._computed[1], self._ends[2])
        whole = self._plain.said() if isinstance(self._computed[1], Sampled) else {}
        both = [*whole.pop("not_checked", ()), *said.get("not_checked", ())]
        return replace(found, extra=found.extra | whole | ({"not_checked": both} if both else {}))

    @contextlib.contextmanager
    def _to_itself(self) -> Iterator[None]:
        """Keeps the builder off the kernels' CPUs while it lasts. Between two measurements, when the next one may wait
        for its build, the builder uses those."""
        if self.aside:
            self.builder.keep_to(self._measuring.spare)
        try:
            yield
        finally:
            if self.aside:
                self.builder.keep_to(self._own)

    def _ask(self, builds: Sequence[Build], deadline_s: float, what: str, *message: Any) -> Any:
        """The worker's answer, with the data of the builds' program, or an outcome that says how the worker died."""
        self._warmed()
        if self._foreseen is not None:  # it computes the further data too
            wait([self._foreseen])

        def ready() -> bool:
            if self._given_up or self._measuring.dropped:
                return False
            program = self._widening.of(*(b.candidate.plan for b in builds))
            self._allow(*(b.candidate.plan for b in builds))
            self._finite |= frozenset[str]().union(*(assumed_finite(b.candidate.plan) for b in builds))
            self._provide(program)
            self._provide_beside(program)
            for build in builds:
                self._write_violations(program, build)
            return True

        answer = ask_worker(self.worker, (what, *message), deadline_s, ready, _why)
        looks = Counter[tuple[str, str]]()
        while (at := _stray(answer)) is not None and looks[at[:2]] < STRAYS and self._look_at(*at):
            looks[at[:2]] += 1
            answer = ask_worker(self.worker, (what, *message), deadline_s, ready, _why)
        return answer

    def _allow(self, *plans: Plan) -> None:
        """Have what outputs may be off as wide as these plans need it: computed anew where it is not."""
        with self._lock:
            if (needed := joined((self._slack, *map(slack, plans)))) != self._slack:
                self._slack = needed
                self._written = self._computed = self._special = self._ends = None

    def _look_at(self, where: str, output: str, index: tuple[int, ...]) -> bool:
        """Have the interpreter compute an element at which two kernels differ that are right in all boxes of a data set
        (a folder below the data's, or these); False where it cannot."""
        program = self._written
        with self._lock:
            found = self._sets(program).get(where) if program is not None else None
            if program is None or not isinstance(found, Sampled):
                return False
            found = found.around(output, index)
            if where:
                found = lenient(found)
            self._replace(program, where, found)
        with scratch_errors():
            write_outputs(program, found, self._folder.path / where)
        if not self.worker.ensure():  # else it reads them with the data
            self.worker.ask("wants", where, deadline_s=DATA_LIMIT_S)
        else:
            self._written = None
        return True

    def _sets(self, program: Program) -> dict[str, Expected]:
        """The program's data sets, by the folder below the data's."""
        found: dict[str, Expected] = {}
        if self._computed is not None and self._computed[0] is program:
            found[""] = self._computed[1]
        if self._special is not None and self._special[0] is program and self._special[2] is not None:
            found[self._special[2].folder] = self._special[2].found
        if self._ends is not None and self._ends[0] is program:
            found |= {e.folder: e.found for e in self._ends[1]}
        return found

    def _replace(self, program: Program, where: str, found: Expected) -> None:
        """Put what is expected on a data set in the place of what was."""
        if not where:
            self._computed = program, found
        if self._special is not None and self._special[2] is not None and self._special[2].folder == where:
            self._special = *self._special[:2], replace(self._special[2], found=found)
        if self._ends is not None:
            ends = tuple(replace(e, found=found) if e.folder == where else e for e in self._ends[1])
            self._ends = self._ends[0], ends, self._ends[2]

    def _refer(self, program: Program, where: str, found: Expected, budget_s: float) -> None:
        """Have the worker run the loops as written on a data set of which boxes alone are known, unless that was done,
        and compare whole outputs with what they wrote."""
        if not isinstance(found, Sampled):
            return
        message = self._plain.request(program, where, found.oracle, budget_s)
        if message is None:
            return
        try:
            run = self.worker.ask("refer", *message, deadline_s=self._plain.limit_s(budget_s))
            self._plain.note(program, where, found.oracle, run)
        except (WorkerDiedError, WorkerTimeoutError, RuntimeError) as error:
            if self._given_up or self._measuring.dropped:
                raise AutoschedError("given up") from None
            self._plain.failed(program, where, found.oracle, error)
            self._provide(program)

    def _provide(self, program: Program) -> None:
        """Start the worker if needed, and have it load the program's data."""
        changed = self._written is None or program is not self._written
        if changed:
            self._write(program)
        if self.worker.ensure() or changed:
            cold_bytes = 2 * max(m.bytes for m in self.target.memories if m.name not in ("DRAM", "registers"))
            try:
                message = ("data", str(self._folder.path), self._tensors, cold_bytes)
                self.worker.ask(*message, deadline_s=DATA_LIMIT_S)
                self._told = False
            except (WorkerDiedError, WorkerTimeoutError, RuntimeError) as error:
                self._written = None
                raise AutoschedError(f"the timing worker cannot load the data: {error}") from None
            self._refer(program, "", self._data_of(program), self.plain_s)

    def _provide_beside(self, program: Program) -> None:
        """Write the further data sets, and tell the worker of them, unless it knows."""
        self._find_beside(program, self._finite)
        if self._special is None or self._ends is None or self._told:
            return
        special_data = self._special[2]
        found: tuple[Further, ...] = (*self._ends[1], *([special_data] if special_data else []))
        for data in found:
            self._write_beside(program, data.folder, data.found)
        told = tuple(DataSet(d.folder, scalars_as_bytes(program, d.found.oracle.scalars)) for d in found)
        self.worker.ask("beside", told, deadline_s=DATA_LIMIT_S)
        self._told = True
        for data in found:
            self._refer(program, data.folder, data.found, min(FURTHER_S, self.plain_s) - self._plain.further_s)
        if not self._told:  # the worker ended meanwhile
            self._provide_beside(program)

    def _find_beside(self, program: Program, finite: frozenset[str]) -> None:
        """Compute the data at the ends of ranges, and those with NaN and infinities, of which `finite` tensors hold
        none."""
        if self._oracle is not None:
            return
        known = self._special
        if known is None or known[0] is not program or known[1] != finite:
            self._special = program, finite, self._special_of(program, finite)
            self._told = False
        if self._ends is None or self._ends[0] is not program:
            self._ends = program, *self._ends_of(program)
            self._told = False

    def _special_of(self, program: Program, finite: frozenset[str]) -> Special | None:
        return special(program, self.seed, finite, lambda inputs: expected(program, self.seed, self._slack, inputs))

    def _ends_of(self, program: Program) -> tuple[tuple[Ends, ...], tuple[LeftOut, ...]]:
        return ends(program, self.seed, lambda inputs: expected(program, self.seed, self._slack, inputs))

    def _write(self, program: Program) -> None:
        found = self._data_of(program)
        self._written = None  # until all of it is there
        with scratch_errors():
            self._tensors, _ = write_data(program, found, self._folder.emptied())
        self._written, self.rounds.fastest_s = program, None
        self._told = False

    def _write_violations(self, program: Program, build: Build) -> None:
        """Write data that break the conditions which the build's kernel checks, unless they are written."""
        for violation in violations(program, build.candidate.plan, self.seed):
            if not (self._folder.path / violation.folder).exists():
                found = expected(program, self.seed, self._slack, violation.inputs())
                self._write_beside(program, violation.folder, found)

    def _write_beside(self, program: Program, name: str, found: Expected) -> None:
        """Write another data set of the program, in a folder of this name below its own."""
        folder = self._folder.path / name
        with scratch_errors():
            folder.mkdir(exist_ok=True)
            write_data(program, found, folder)

    def _data_of(self, program: Program) -> Expected:
        if self._oracle is not None:
            return widened(self._oracle, program, self.seed, self._slack)
        with self._lock:
            if self._computed is None or self._computed[0] is not program:
                self._computed = program, expected(program, self.seed, self._slack)
            return self._computed[1]


def _stray(answer: Any) -> tuple[str, str, tuple[int, ...]] | None:
    """The data set, the output and the element at which a candidate and another kernel differ, where one did."""
    for outcome in answer if isinstance(answer, list) else [answer]:
        if isinstance(outcome, Outcome) and "stray" in outcome.extra:
            where, name, index = outcome.extra["stray"]
            return where, name, tuple(index)
    return None


def _require(target: Target) -> None:
    """MissingError where this machine is not of the target's kind."""
    here = host_backend().isa
    if target.backend not in (host_backend(), PORTABLE):
        raise MissingError(f"{target.name} is {target.isa}, and this machine is {here}", hint="use -d simulator")
    if lacking := sorted(target.features - host_features()):
        raise MissingError(
            f"this machine lacks {', '.join(lacking)}, which {target.name} has", hint="use -t native, or -d simulator"
        )


def _why(death: WorkerDiedError) -> str:
    why = {
        "SIGSEGV": "an access outside its buffers",
        "SIGBUS": "an access outside its buffers",
        "SIGILL": "an instruction that this CPU does not have",
        "SIGFPE": "an integer division by zero or overflow",
    }.get(death.reason, "the worker ended")
    return why + (f": {death.stderr.splitlines()[-1]}" if death.stderr else "")
