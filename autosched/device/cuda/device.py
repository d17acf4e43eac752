"""The `cuda` device: candidates built here, launched and timed in a worker that may die of any of them."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from autosched.backends import CUDA
from autosched.device.correctness.ends import FurtherSets, further, not_checked
from autosched.device.correctness.oracle import Oracle, scalars_as_bytes, widened
from autosched.device.correctness.sampled import Expected, Sampled, expected, write_data
from autosched.device.correctness.special import assumed_finite, lenient
from autosched.device.correctness.violations import Widening
from autosched.device.cpu.rounds import Rounds
from autosched.device.cuda.cards import check_target, matching_target
from autosched.device.cuda.client import Client
from autosched.device.cuda.comparing import TEXT
from autosched.device.cuda.compile.builder import CudaBuilder, TranslationUnit
from autosched.device.cuda.compile.cubins import CubinCache
from autosched.device.cuda.compile.nvrtc import CudaCompileError
from autosched.device.cuda.compile.toolkit import Toolkit, toolkit
from autosched.device.cuda.data import write_tolerances
from autosched.device.cuda.reference import plain_job
from autosched.device.job import Effort
from autosched.device.protocol import Build, Detected
from autosched.errors import AutoschedError, UsageError
from autosched.ir.oracle.slack import NO_SLACK, Slack
from autosched.ir.program import Program
from autosched.machine.catalogue import load_target
from autosched.machine.target import Target
from autosched.scratch import Scratch, scratch_errors
from autosched.store.records import Measurement
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.candidate import Candidate

EFFORTS = {
    "search": Effort(fewest=5, most=15, sample_s=1e-3, budget_s=0.02),
    "final": Effort(fewest=10, most=60, sample_s=2e-3, budget_s=0.2, tolerance=0.002),
}
ROUGH = 1.5
"""As the CPU's: a candidate this many times slower than the best is sampled a few times only."""


class CudaDevice:
    """Times candidates of one program on an NVIDIA GPU, the device number `ordinal`.

    `deadline_s` bounds loading, checking and timing of one candidate (slow ones have longer, by what the model says of
    them). `cache` is `warm`, or `cold`: calls rotate through copies of all data of twice the last cache's size.
    `cubins` is a folder for compiled code. `oracle` overrides inputs and expected outputs, which otherwise come from
    the interpreter on random inputs of `seed`: whole outputs of small programs, boxes of large ones. MissingError where
    there is no GPU, or not one that the target's code runs on; UsageError on options that cannot be right.
    """

    name = "cuda"

    def __init__(
        self,
        program: Program | None = None,
        target: Target | None = None,
        *,
        threads: int = 1,
        deadline_s: float = 20.0,
        cache: str = "warm",
        seed: int = 0,
        ordinal: int = 0,
        cubins: Path | None = None,
        oracle: Oracle | None = None,
        client: Callable[[int], Client] = Client,
        find_toolkit: Callable[..., Toolkit] = toolkit,
    ) -> None:
        self.rounds = Rounds(EFFORTS, ROUGH, cache, deadline_s)
        if threads != 1:
            raise UsageError(f"{threads} threads for the device cuda", hint="--threads is for CPU kernels")
        self.program, self.cache, self.seed = program, cache, seed
        self.client, self.ordinal = client(ordinal), ordinal
        self._folder, self._widening = Scratch(), Widening(program)
        self._values: Mapping[str, Any] = {}
        self._compared = ""
        self._oracle = oracle
        self._written: Program | None = None
        self._slacks: set[Slack] = set()  # whose tolerances are written
        self._finite: frozenset[str] = frozenset()
        """Tensors that a plan so far assumes to be finite."""
        self._beside: tuple[Program, frozenset[str], FurtherSets] | None = None
        self._found: Expected | None = None
        try:
            self.facts = self.client.facts()
            self.target = target or load_target(matching_target(self.facts))
            check_target(self.target, self.facts)
            self.toolkit = find_toolkit(self.target.compiler["arch"], self.facts.driver)
        except BaseException:
            self.client.close()
            raise
        self.builder = CudaBuilder(CubinCache(cubins) if cubins is not None else None, self.facts.driver)

    @staticmethod
    def runs(target: Target) -> bool:
        """Whether this machine has an NVIDIA GPU that the target's code runs on."""
        try:
            ctypes.CDLL("libcuda.so.1")  # most machines without a GPU are told apart at once
        except OSError:
            return False
        with contextlib.closing(Client()) as client:
            try:
                check_target(target, client.facts())
            except AutoschedError:
                return False
        return True

    @staticmethod
    def detect(known: Catalogue, effort: str, cache: Path | None = None) -> Detected:
        """This machine's GPU, measured anew at any effort. MissingError where there is none."""
        from autosched.device.cuda.detect import detect_card

        chosen = known.of_isa(CUDA.isa)
        target, found = detect_card(chosen)
        measured = {"rates": found.rates, "bandwidths": found.bandwidths}
        return Detected(target, measured, {i.name: i.operations for i in chosen})

    def describe(self) -> dict[str, Any]:
        """What results depend on: the GPU, its driver, the compiler and the caches' state."""
        said = self.facts.described()
        arch = self.target.compiler["arch"]
        own = {"toolkit": self.toolkit.name, "for": arch, "cache": self.cache}
        return {"name": self.name, "kind": "cuda", **said, **own}

    def build(self, candidate: Candidate) -> Build:
        """Lower, print and compile; `payload` is a `CudaJob`."""
        return next(self.builds([candidate]))

    def build_all(self, candidates: Sequence[Candidate]) -> list[Build]:
        """`build` for each, compiled side by side."""
        return list(self.builds(candidates))

    def builds(self, candidates: Sequence[Candidate]) -> Iterator[Build]:
        """`build` for each, in order: compiled side by side, while those that are ready are measured."""
        from autosched.device.cuda.build import builds  # not needed to time what is built already

        wanted = [(c, self._scalars(self._widening.of(c.plan))) for c in candidates]
        return builds(wanted, self.target, self.builder)

    def measure(self, build: Build, repeats: str = "search", *, best_s: float | None = None) -> Measurement:
        """Check, then time. A candidate that is clearly slower than `best_s` gets few samples (None: than the fastest
        that this device has seen of the program)."""
        return self._noted(self.rounds.measure(self._ask, build, repeats, best_s))

    def measure_interleaved(self, builds: Sequence[Build], rounds: int = 15) -> list[Measurement]:
        """All builds in turn, `rounds` times, so that a drift of the GPU meets all alike; one measurement a build, in
        order. A build that ends the worker is left out of the next attempt."""
        return [self._noted(found) for found in self.rounds.interleaved(self._ask, builds, rounds)]

    def callable(self, candidate: Candidate) -> Any:
        """The candidate as a function of arrays (see `CudaKernel`), in this process, on this device's GPU."""
        from autosched.device.cuda.call.callable import CudaKernel

        return CudaKernel.build(candidate, self.target, self.builder, self.ordinal)

    def close(self) -> None:
        """End the worker and the builder, and remove their data."""
        self.client.close()
        if hasattr(self, "builder"):
            self.builder.close()
        self._folder.close()
        self._written = None

    def __enter__(self) -> CudaDevice:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _noted(self, found: Measurement) -> Measurement:
        """With what it was compared with."""
        whole = "; every element of the fastest, with a plain kernel's" if self.client.referred else ""
        if not found.ok or self._found is None:
            return found
        left = self._beside[2].left_out if self._beside else ()
        said = not_checked(self._found, left)
        return replace(found, extra=found.extra | {"compared": self._compared + whole} | said)

    def _ask(self, builds: Sequence[Build], deadline_s: float, what: str, *message: Any) -> Any:
        """The worker's answer on the data of the builds' program."""
        program = self._widening.of(*(b.candidate.plan for b in builds))
        if program is not self._written:
            self._write(program)
        self._provide_beside(program, builds)
        for slack in {b.payload.slack for b in builds} - self._slacks:
            self._write_further_tolerances(program, slack)
            oracle = self._data_of(program, slack).oracle
            with scratch_errors():
                write_tolerances(self._folder.path, oracle.wants, oracle.tolerances, slack)
            self._slacks.add(slack)
        return self.client.ask(deadline_s, what, *message)

    def _write(self, program: Program) -> None:
        folder = self._folder.emptied()
        found = self._data_of(program)
        self._compared, self._values, self._found = found.text, found.oracle.scalars, found
        boxes = isinstance(found, Sampled)
        plain = plain_job(program, self.target, self.builder, self._values) if boxes else None
        with scratch_errors():
            written = write_data(program, found, folder)
        self.client.use(folder, *written, plain, self._comparing())
        self._written, self._slacks, self.rounds.fastest_s = program, {NO_SLACK}, None

    def _provide_beside(self, program: Program, builds: Sequence[Build]) -> None:
        """Further data sets beside the program's, at the ends of ranges and with NaN and infinities, where they are
        not written yet."""
        self._finite |= frozenset[str]().union(*(assumed_finite(b.candidate.plan) for b in builds))
        known = self._beside
        if self._oracle is not None or (known and known[0] is program and known[1] == self._finite):
            return

        def compute(inputs: Mapping[str, Any]) -> Expected:
            return expected(program, self.seed, inputs=inputs)

        before = known[2] if known and known[0] is program else None
        made = further(program, self.seed, self._finite, compute, before)
        self._beside = program, self._finite, made
        sets = []
        for data in made.sets:
            folder = self._folder.path / data.folder
            with scratch_errors():
                folder.mkdir(exist_ok=True)
                written = write_data(program, data.found, folder)
            scalars = scalars_as_bytes(program, data.found.oracle.scalars)
            sets.append((data.folder, str(folder), *written, scalars))
        self.client.use_beside(tuple(sets))
        for slack in self._slacks - {NO_SLACK}:
            self._write_further_tolerances(program, slack)

    def _write_further_tolerances(self, program: Program, slack: Slack) -> None:
        """The tolerances of jobs of this slack on further data sets."""
        for data in self._beside[2].sets if self._beside else ():
            oracle = data.found.oracle
            found = lenient(expected(program, self.seed, slack, {**oracle.inputs, **oracle.scalars}))
            with scratch_errors():
                write_tolerances(self._folder.path / data.folder, oracle.wants, found.oracle.tolerances, slack)

    def _comparing(self) -> bytes:
        """The machine code that compares outputs on the GPU; nothing where it does not compile."""
        try:
            return self.builder.build(TranslationUnit(TEXT, self.target.compiler["arch"])).code
        except CudaCompileError:
            return b""

    def _data_of(self, program: Program, slack: Slack = NO_SLACK) -> Expected:
        if self._oracle is not None:
            return widened(self._oracle, program, self.seed, slack)
        return expected(program, self.seed, slack)

    def _scalars(self, program: Program) -> dict[str, Any]:
        """Values of the program's run-time scalars, those of its data."""
        if not program.scalars:
            return {}
        if self._written is not program:
            self._write(program)
        return dict(self._values)
