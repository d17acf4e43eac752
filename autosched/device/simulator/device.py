"""The `simulator` device: a candidate's time from its lowered loop tree, and a check by running it; no hardware."""

from __future__ import annotations

import hashlib
import math
import random
import time
from dataclasses import asdict
from typing import Any

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.codegen.tree.text import print_kernel
from autosched.device.correctness.compare import Difference
from autosched.device.correctness.oracle import Oracle
from autosched.device.cpu.timing import spread
from autosched.device.protocol import Build
from autosched.device.simulator.cpu.cpu_model import cpu_estimate
from autosched.device.simulator.energy import energy
from autosched.device.simulator.engine import TooManyEventsError
from autosched.device.simulator.estimate import Estimate
from autosched.device.simulator.gpu.gpu_launch import RefusedError
from autosched.device.simulator.gpu.gpu_model import gpu_estimate
from autosched.device.simulator.spatial.spatial_model import spatial_estimate
from autosched.device.simulator.verify.runner import INTERPRETER, Runner
from autosched.device.simulator.verify.verify import (
    MOST_ELEMENTS,
    KernelVerdict,
    Verifier,
    elements,
    statements,
    unverified,
)
from autosched.device.simulator.walk.facts import Facts
from autosched.device.simulator.walk.walk import facts
from autosched.errors import AutoschedError, InternalError, SpecError, UsageError, WrongResultError
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.store.records import Measurement
from autosched.tiling.candidate import Candidate
from autosched.tiling.planner.scheme import scheme_of
from autosched.tiling.plans.units import NO_UNITS, AcceleratorUnits

VERSION = "6"
CACHES = ("warm", "cold")
SAMPLES = {"search": 5, "final": 15}
NOISE = 0.01
"""The default relative standard deviation of samples; accelerators with scratchpads have none."""


class SimulatorDevice:
    """Predicts times of candidates for a target; no such machine is needed.

    The same candidate, seed and version always give the same samples: `noise` is their relative standard deviation,
    drawn from a hash of the kernel (None: NOISE, and 0 on accelerators with scratchpads). `threads` bounds what a CPU
    candidate may use. `cache` `cold` adds the time to read all data from memory once. `runner` runs the kernels that
    are checked. UsageError on options that cannot be right.
    """

    name = "simulator"

    def __init__(
        self,
        program: Program | None = None,
        target: Target | None = None,
        *,
        threads: int = 1,
        seed: int = 0,
        cache: str = "warm",
        noise: float | None = None,
        oracle: Oracle | None = None,
        objective: str = "latency",
        runner: Runner = INTERPRETER,
    ) -> None:
        if threads < 1:
            raise UsageError(f"{threads} threads", hint="use 1 or more")
        if cache not in CACHES:
            raise UsageError(f"the cache is {' or '.join(CACHES)}, not {cache!r}")
        if noise is None:
            noise = 0.0 if target is not None and scheme_of(target) == "spatial" else NOISE
        if not 0 <= noise < 1:
            raise UsageError(f"noise {noise} is not a relative deviation", hint="0 is none, 0.01 is one per cent")
        if objective != "latency" and target is not None and not target.energy:
            hint = "state `units.energy` and the memories' `energy` in its YAML, as targets/gemmini.yaml does"
            raise UsageError(f"{target.name} has no figures of energy", hint=hint)
        self.program, self.target, self.threads, self.seed = program, target, threads, seed
        self.cache, self.noise, self.objective = cache, noise, objective
        self._runner = runner
        self._verifier = Verifier(seed, oracle, self._runner, written=program if oracle is None else None)
        self._verdicts: dict[tuple[str, str], KernelVerdict] = {}

    def describe(self) -> dict[str, Any]:
        """What results depend on."""
        aim = {} if self.objective == "latency" else {"objective": self.objective}
        checked = {} if self._runner.name == INTERPRETER.name else {"checked": "as printed"}
        return {
            **aim,
            **checked,
            "name": self.name,
            "kind": "simulator",
            "version": VERSION,
            "target": self.target.name if self.target else "of the candidate",
            "threads": self.threads,
            "cache": self.cache,
            "noise": self.noise,
        }

    def build(self, candidate: Candidate) -> Build:
        """Lower; `payload` is the Kernel."""
        clock = time.perf_counter()
        try:
            kernel = lower(candidate.plan, candidate.schedule)
        except AutoschedError as error:
            return Build(candidate, error=error.message, seconds=time.perf_counter() - clock)
        except Exception as error:
            raise InternalError.of(f"lowering of {candidate.key}", error) from error
        sha = hashlib.sha256(print_kernel(kernel).encode()).hexdigest()[:16]
        return Build(candidate, kernel, None, time.perf_counter() - clock, sha)

    def measure(self, build: Build, repeats: str = "search") -> Measurement:
        """Time by the model, then check: small kernels always, others (cut down) in the final round."""
        if repeats not in SAMPLES:
            raise UsageError(f"repeats is one of {', '.join(SAMPLES)}, not {repeats!r}")
        costs = {"build": build.seconds}
        if build.error is not None or build.payload is None:
            return Measurement("build", message=build.error or "nothing was built", costs_s=costs)
        kernel: Kernel = build.payload
        target = self.target or build.candidate.plan.target
        start = time.perf_counter()
        parts = [facts(kernel, stmt) for stmt in kernel.main.body]
        try:
            found = estimate(kernel, parts, target, build.candidate.plan.units)
        except (RefusedError, TooManyEventsError) as refusal:
            return Measurement("refused", message=str(refusal), kernel_sha=build.kernel_sha, costs_s=costs)
        causes = self._causes(kernel, found, target)
        costs["time"] = time.perf_counter() - start
        start = time.perf_counter()
        try:
            verdict = self._verdict(build, kernel, parts, repeats)
        except SpecError as error:  # an instruction without a text: the interpreter alone can run it
            verdict = KernelVerdict(f"not verified: {error.message}")
        except WrongResultError as error:
            costs["check"] = time.perf_counter() - start
            return Measurement("wrong", message=str(error), kernel_sha=build.kernel_sha, costs_s=costs)
        costs["check"] = time.perf_counter() - start
        samples = self._samples(causes["total"], build.kernel_sha or "", repeats)
        difference = verdict.difference
        extra: dict[str, Any] = {"verified": difference is not None, "verified_by": verdict.by}
        extra |= self._verifier.not_checked(kernel.program, build.candidate.plan)
        extra["model_s"] = {k: float(v) for k, v in causes.items()}
        if found.statements:
            extra["statements"] = [asdict(s) for s in found.statements]
        joules = self._joules(parts, found, target, causes["total"])
        extra |= {"energy_j": joules} if joules else {}
        if self.objective != "latency":
            extra["cost"] = extra["energy_j"]["total"] * (causes["total"] if self.objective == "edp" else 1.0)
        if difference is not None and not difference.ok:
            return Measurement(
                "wrong",
                max_abs_error=difference.error,
                tolerance=difference.tolerance,
                message=_wrong(difference),
                kernel_sha=build.kernel_sha,
                costs_s=costs,
                extra=extra,
            )
        return Measurement(
            "ok",
            time_s=sorted(samples)[len(samples) // 2],
            samples_s=samples,
            spread=spread(samples),
            max_abs_error=difference.error if difference else None,
            tolerance=difference.tolerance if difference else None,
            kernel_sha=build.kernel_sha,
            costs_s=costs,
            extra=extra,
        )

    def callable(self, candidate: Candidate) -> Any:
        """The candidate as a function of numpy arrays: the interpreter runs its loop tree, slowly."""
        from autosched.device.simulator.verify.runner import InterpretedKernel

        return InterpretedKernel(lower(candidate.plan, candidate.schedule))

    def close(self) -> None:
        """Nothing to release."""

    def _causes(self, kernel: Kernel, found: Estimate, target: Target) -> dict[str, float]:
        causes = found.seconds
        if self.cache == "cold":
            speed = (
                target.memory("DRAM").bandwidth_bytes_per_s if any(m.name == "DRAM" for m in target.memories) else None
            )
            tensors = (kernel.program.tensors[p] for p in kernel.program.parameters if p in kernel.program.tensors)
            cold = sum(math.prod(t.extents) * t.dtype.bits / 8 for t in tensors) / (speed or 1e10)
            causes = causes | {"cold": cold, "total": causes["total"] + cold}
        return causes

    def too_large(self, candidate: Candidate) -> str:
        """See `RunsFew`. Only the emulator says so: the interpreter does not promise to run kernels as printed."""
        if self._runner.name == INTERPRETER.name:
            return ""
        kernel = lower(candidate.plan, candidate.schedule)
        whole, most = statements(kernel), self._runner.final
        if whole <= most and elements(kernel.program) <= MOST_ELEMENTS:
            return ""
        instead = "is not run" if candidate.plan.in_tile_loops else "is run with its loops cut down"
        size = f"{whole:,.0f} statements" if whole > most else f"{elements(kernel.program):,} elements"
        limit = f"{most:,}" if whole > most else f"{MOST_ELEMENTS:,}"
        first = f"{self._runner.name} runs at most {limit}, and the best kernel by the clock has {size}: it {instead}"
        return f"{first}; smaller sizes (-D) are run whole"

    def _verdict(self, build: Build, kernel: Kernel, parts: list[Facts], repeats: str) -> KernelVerdict:
        most = self._runner.most if repeats == "search" else self._runner.final
        whole = sum(p.statements for p in parts)
        small = whole <= most and elements(kernel.program) <= MOST_ELEMENTS
        if not small and repeats == "search":
            return unverified(" yet: the final round checks", build.candidate.plan)
        key = build.kernel_sha or "", repeats if not small else ""
        if key not in self._verdicts:
            candidate = build.candidate
            self._verdicts[key] = (
                self._verifier.whole(kernel, build.candidate.plan)
                if small
                else self._verifier.cut_down(candidate.plan, candidate.schedule, self.threads, whole)
            )
        return self._verdicts[key]

    def _joules(self, parts: list[Facts], found: Estimate, target: Target, seconds: float) -> dict[str, float]:
        """Joules by cause; empty where the target lacks a figure. Raises UsageError for that if the objective needs
        energy."""
        try:
            return {k: float(v) for k, v in energy(parts, found, target, seconds).items()} if target.energy else {}
        except UsageError:
            if self.objective != "latency":
                raise
            return {}

    def _samples(self, seconds: float, sha: str, repeats: str) -> tuple[float, ...]:
        """Times around the model's, log-normal, always the same for one kernel and seed."""
        rng = random.Random(f"{sha} {self.seed} {VERSION}")
        bias = rng.gauss(0.0, self.noise)  # what a model does not know of this kernel
        return tuple(seconds * math.exp(bias + rng.gauss(0.0, self.noise / 4)) for _ in range(SAMPLES[repeats]))


def _wrong(d: Difference) -> str:
    return f"{d.wrong} wrong elements; element {d.index} is {d.got:g}, not {d.want:g}"


def estimate(kernel: Kernel, parts: list[Facts], target: Target, units: AcceleratorUnits = NO_UNITS) -> Estimate:
    """Of a kernel, `parts` being the facts of its top-level statements. RefusedError where a limit of the target is
    broken, TooManyEventsError where it would take too long."""
    match scheme_of(target):
        case "gpu":
            return gpu_estimate(kernel, parts, target)
        case "spatial":
            return spatial_estimate(kernel, parts, target, units)
        case _:
            return cpu_estimate(kernel, parts, target)
