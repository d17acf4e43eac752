"""The `cuda` device: candidates built here, launched and timed in a worker that may die of any of them."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from autosched.device import oracle as oracles
from autosched.device.answers import measurement, number_of, unbuilt
from autosched.device.cuda.builder import CudaBuilder
from autosched.device.cuda.cards import check_target, matching_target
from autosched.device.cuda.client import Client
from autosched.device.cuda.cubins import CubinCache
from autosched.device.cuda.toolkit import toolkit
from autosched.device.job import Effort, Outcome
from autosched.device.protocol import Build
from autosched.device.sampled import Sampled, is_large, sampled, write_sampled
from autosched.device.simulator.verify import slack
from autosched.device.violations import assuming
from autosched.errors import UsageError
from autosched.ir.program import Program
from autosched.machine.catalogue import load_target
from autosched.machine.target import Target
from autosched.store.records import Measurement
from autosched.tiling.schedule import Candidate

CACHES = ("warm", "cold")
EFFORTS = {
    "search": Effort(fewest=5, most=15, sample_s=1e-3, budget_s=0.02),
    "final": Effort(fewest=10, most=60, sample_s=2e-3, budget_s=0.2, tolerance=0.002),
}
SLOWER, ROUGH = 3.0, 1.5
"""As the CPU's: how many times slower than the best a candidate may be to be sampled further, and fully."""


class CudaDevice:
    """Times candidates of one program on an NVIDIA GPU, the device number `ordinal`.

    `deadline_s` bounds loading, checking and timing of one candidate. `cache` is `warm`, or `cold`: calls rotate
    through copies of all data of twice the last cache's size. `cubins` is a folder for compiled code. `oracle`
    overrides inputs and expected outputs, which otherwise come from the interpreter on random inputs of `seed`: whole
    outputs of small programs, boxes of large ones. MissingError where there is no GPU, or not one that the target's
    code runs on; UsageError on options that cannot be right.
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
        oracle: oracles.Oracle | None = None,
    ) -> None:
        if cache not in CACHES:
            raise UsageError(f"the cache is {' or '.join(CACHES)}, not {cache!r}")
        if not deadline_s > 0:
            raise UsageError(f"a deadline of {deadline_s} s leaves no time")
        if threads != 1:
            raise UsageError(f"{threads} threads for the device cuda", hint="--threads is for CPU kernels")
        self.program, self.deadline_s, self.cache, self.seed = program, deadline_s, cache, seed
        self.client = Client(ordinal)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._values: Mapping[str, Any] = {}
        self._compared = ""
        self._oracle = oracle
        self._written: Program | None = None
        self._fastest_s: float | None = None
        self._asking: tuple[Program, Program] | None = None
        self._slack = self._written_slack = 1.0
        try:
            self.facts = self.client.facts()
            self.target = target or load_target(matching_target(self.facts))
            check_target(self.target, self.facts)
            self.toolkit = toolkit(self.target.compiler["arch"], self.facts.driver)
        except BaseException:
            self.client.close()
            raise
        self.builder = CudaBuilder(CubinCache(cubins) if cubins is not None else None, self.facts.driver)

    def describe(self) -> dict[str, Any]:
        """What results depend on: the card, its driver, the compiler and the caches' state."""
        said = self.facts.described()
        arch = self.target.compiler["arch"]
        own = {"toolkit": self.toolkit.name, "for": arch, "cache": self.cache}
        return {"name": self.name, "kind": "cuda", **said, **own}

    def build(self, candidate: Candidate) -> Build:
        """Lower, print and compile; `payload` is a `CudaJob`."""
        return self.build_all([candidate])[0]

    def build_all(self, candidates: Sequence[Candidate]) -> list[Build]:
        """`build` for each, compiled side by side."""
        from autosched.device.cuda.build import build_all  # not needed to time what is built already

        wanted = [(c, self._scalars(self._program_of(c))) for c in candidates]
        return build_all(wanted, self.target, self.builder)

    def measure(self, build: Build, repeats: str = "search", *, best_s: float | None = None) -> Measurement:
        """Check, then time. A candidate that is clearly slower than `best_s` gets few samples (None: than the fastest
        that this device has seen of the program)."""
        if repeats not in EFFORTS:
            raise UsageError(f"repeats is one of {', '.join(EFFORTS)}, not {repeats!r}")
        if build.error is not None or build.payload is None:
            return unbuilt(build)
        best_s = self._fastest_s if best_s is None else best_s
        limit_s = None if best_s is None else SLOWER * best_s
        rough_s = None if best_s is None or repeats != "search" else ROUGH * best_s
        effort = replace(EFFORTS[repeats], slower_than_s=limit_s, rough_above_s=rough_s, cold=self.cache == "cold")
        clock = time.perf_counter()
        outcome = self._ask(build, self.deadline_s, "measure", build.payload, effort)
        found = self._measurement(build, outcome, time.perf_counter() - clock)
        if found.time_s is not None:
            self._fastest_s = min(found.time_s, self._fastest_s or found.time_s)
        return found

    def measure_interleaved(self, builds: Sequence[Build], rounds: int = 15) -> list[Measurement]:
        """All builds in turn, `rounds` times, so that a drift of the card meets all alike; one measurement a build, in
        order. A build that ends the worker is left out of the next attempt."""
        effort = replace(EFFORTS["final"], cold=self.cache == "cold")
        results: dict[int, Measurement] = {}
        for i, b in enumerate(builds):
            if b.error is not None or b.payload is None:
                results[i] = unbuilt(b)
        while left := [i for i in range(len(builds)) if i not in results]:
            jobs = tuple(builds[i].payload for i in left)
            clock = time.perf_counter()
            limit_s = self.deadline_s * len(left)
            answer = self._ask(builds[left[0]], limit_s, "interleaved", jobs, rounds, effort)
            took_s = (time.perf_counter() - clock) / len(left)
            if isinstance(answer, list):
                pairs = zip(left, answer, strict=True)
                results |= {i: self._measurement(builds[i], outcome, took_s) for i, outcome in pairs}
                continue
            culprit = left[number_of(answer.extra.get("stage", ""))]
            results[culprit] = self._measurement(builds[culprit], answer, took_s)
        return [results[i] for i in range(len(builds))]

    def callable(self, candidate: Candidate) -> Any:
        """The candidate as a function of arrays (see `CudaKernel`), in this process, on this device's card."""
        from autosched.device.cuda.callable import CudaKernel

        return CudaKernel.build(candidate, self.target, self.builder)

    def close(self) -> None:
        """End the worker and the builder, and remove their data."""
        self.client.close()
        if hasattr(self, "builder"):
            self.builder.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder, self._written = None, None

    def __enter__(self) -> CudaDevice:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _measurement(self, build: Build, outcome: Outcome, took_s: float) -> Measurement:
        found = measurement(build, outcome, took_s)
        return replace(found, extra=found.extra | {"compared": self._compared}) if found.ok else found

    def _ask(self, build: Build, deadline_s: float, *message: Any) -> Any:
        """The worker's answer on the data of the build's program."""
        program = self._program_of(build.candidate)
        self._slack = max(self._slack, slack(build.candidate.plan))
        if program is not self._written or self._slack != self._written_slack:
            self._write(program)
        return self.client.ask(deadline_s, *message)

    def _program_of(self, candidate: Candidate) -> Program:
        """As the CPU device's: the program within all that plans so far take for granted."""
        plan = candidate.plan
        base = self.program or plan.program
        if self._asking is None or self._asking[0] is not base:
            self._asking = base, base
        wider = assuming(self._asking[1], (*plan.guards, *plan.granted))
        self._asking = base, wider
        return wider

    def _write(self, program: Program) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="autosched-")
        folder = Path(self._folder.name)
        for old in folder.iterdir():
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        found = self._data_of(program)
        if isinstance(found, Sampled):
            self.client.use(folder, *write_sampled(program, found, folder))
            self._compared, self._values = found.text, found.oracle.scalars
        else:
            self.client.use(folder, oracles.write(program, found, folder))
            self._compared, self._values = "every element, by the interpreter", found.scalars
        if program is not self._written:
            self._fastest_s = None
        self._written, self._written_slack = program, self._slack

    def _data_of(self, program: Program) -> oracles.Oracle | Sampled:
        if self._oracle is not None:
            return self._oracle
        found = sampled(program, self.seed, self._slack) if is_large(program) else None
        return found or oracles.compute(program, self.seed, slack=self._slack)

    def _scalars(self, program: Program) -> dict[str, Any]:
        """Values of the program's run-time scalars, those of its data."""
        if not program.scalars:
            return {}
        if self._written is not program:
            self._write(program)
        return dict(self._values)
