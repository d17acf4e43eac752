"""One candidate on the GPU: prepare, check, time. Runs in the worker process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from autosched.device.correctness.compare import Difference, Wrong, right
from autosched.device.cpu.timing import batch, sample
from autosched.device.cuda.clocks import Clocks
from autosched.device.cuda.data import POISONS, SCRATCH_POISON, CudaData
from autosched.device.cuda.driver import Card, CudaError
from autosched.device.cuda.launch_job import CudaJob, LaunchCall
from autosched.device.cuda.launcher import Launcher, Template
from autosched.device.job import Effort, Outcome

COLD_CACHES = 2
"""Calls rotate through data of this many times the last cache."""
MOST_SETS, MOST_COLD_BYTES = 64, 16 << 30
MOST_RECORDED = 256
"""Calls in one graph; more are several launches of it."""
HOPELESS = 3.0
"""A first call this many times slower than the limit for sampling is not repeated."""
WARM_S = 3e-3
"""Calls before the first sample: clocks rise with load."""
REFUSED = (
    "INVALID_VALUE",
    "INVALID_IMAGE",
    "INVALID_CLUSTER_SIZE",
    "INVALID_KERNEL_IMAGE",
    "INVALID_PTX",
    "INVALID_SOURCE",
    "LAUNCH_OUT_OF_RESOURCES",
    "NO_BINARY_FOR_GPU",
    "NOT_FOUND",
    "NOT_SUPPORTED",
    "OUT_OF_MEMORY",
    "UNSUPPORTED_PTX_VERSION",
)
"""Errors after which the device still works; all others end the context, and the worker with it."""
Report = Callable[[str], None]
Beside: TypeAlias = tuple[str, CudaData, Mapping[str, bytes]]


def refused(error: CudaError) -> bool:
    """Whether the device would not take the launch, and still works."""
    return error.code.removeprefix("CUDA_ERROR_") in REFUSED


class LoadedCandidate:
    """A candidate whose code is loaded and whose memory is there: `sets` of addresses, the first of which is checked.
    Calling it runs it that many times, one set after the other, and says how long the device took, in seconds."""

    def __init__(self, card: Card, data: CudaData, job: CudaJob, sets: int = 1) -> None:
        self.card, self.data, self.job = card, data, job
        self._owned: list[int] = []
        self._graphs: dict[int, Any] = {}
        self._at = 0
        self._templates: dict[LaunchCall, Template] = {}
        self._maps = card.maps(job.maps)
        self.module = card.load(job.code)
        try:
            self.sets = [dict(data.addresses) | self._held()]
            self._launchers = [self._launchers_of(self.sets[0])]
            self._prepare = [self._launcher(call, self.sets[0]) for call in job.prepare]
            self._extra_sets = max(0, sets - 1)
        except BaseException:
            self.close()
            raise

    def _held(self) -> dict[str, int]:
        found = {}
        for name, held in self.job.held.items():
            found[name] = self._allocate(held.bytes)
            self.card.fill(found[name], SCRATCH_POISON, held.bytes)
        return found

    def _allocate(self, size: int) -> int:
        address = self.card.allocate(size)
        self._owned.append(address)
        return address

    def _launchers_of(self, addresses: Mapping[str, int]) -> list[Launcher]:
        return [self._launcher(call, addresses) for call in self.job.calls]

    def _launcher(self, call: LaunchCall, addresses: Mapping[str, int]) -> Launcher:
        if call not in self._templates:
            self._templates[call] = self.card.template(self.module, call)
        return self._templates[call].at(addresses, self._maps)

    def prepare(self) -> None:
        """Lay out constants, once."""
        for launch in self._prepare:
            launch()
        self.card.wait("preparing")

    def check(self, poison: int) -> Difference | None:
        """One call of the first set on poisoned outputs, compared. Wrong where it differs."""
        self.data.reset(self.sets[0], poison)
        for launch in self._launchers[0]:
            launch()
        self.card.wait("running")
        self.data.untouched()
        return self.data.verify(self.sets[0], self.job.slack)

    def spread(self) -> None:
        """The other sets: copies of everything that a call touches."""
        for _ in range(self._extra_sets):
            copies = dict(self.sets[0])
            for name in self.job.buffers:
                held = self.job.held.get(name)
                size = held.bytes if held is not None else self.data.tensors[name].bytes
                copies[name] = self._allocate(size)
                self.card.copy(copies[name], self.sets[0][name], size)
            self.sets.append(copies)
            self._launchers.append(self._launchers_of(copies))
        self.card.wait("copying data")

    def __call__(self, times: int) -> float:
        recorded = min(times, MOST_RECORDED)
        graph = self._graph(recorded)
        replays, rest = divmod(times, recorded)
        for addresses in self.sets:
            self.data.refill(addresses)

        def issue() -> None:
            for _ in range(replays):
                self.card.replay(graph)
            for _ in range(rest):
                self._issue()

        return self.card.timed(issue)

    def _graph(self, times: int) -> Any:
        if times not in self._graphs:
            with self.card.captured() as made:
                for _ in range(times):
                    self._issue()
            self._graphs[times] = made[0]
        return self._graphs[times]

    def _issue(self) -> None:
        for launch in self._launchers[self._at % len(self.sets)]:
            launch()
        self._at += 1

    def close(self) -> None:
        for graph in self._graphs.values():
            self.card.discard(graph)
        for address in self._owned:
            self.card.free(address)
        self.card.unload(self.module)
        self._owned, self._graphs = [], {}


class CudaBench:
    """Holds one data set on one GPU."""

    def __init__(self, card: Card, data: CudaData, clocks: Clocks | None = None) -> None:
        self.card, self.data, self.clocks = card, data, clocks or Clocks(0)
        self.fastest_s: float | None = None
        """Of the candidates whose whole outputs were compared: who is faster is looked at too."""
        self.beside: tuple[Beside, ...] = ()
        """Further data sets, each with what it is called and its run-time scalars: every candidate is checked on them
        too."""
        self.l2_bytes = card.facts().limits["l2_bytes"]

    def close(self) -> None:
        """Give the data's memory back."""
        self.data.close()
        self.use_beside(())

    def use_beside(self, found: tuple[Beside, ...]) -> None:
        """Check on these data sets too from now on, and on no others."""
        for _, data, _ in self.beside:
            data.close()
        self.beside = found

    def measure(self, job: CudaJob, effort: Effort, report: Report) -> Outcome:
        """Check and time one candidate. CudaError where the device failed and cannot be used any more."""
        costs: dict[str, float] = {}
        clock = time.perf_counter()
        ready: LoadedCandidate | None = None
        try:
            ready, difference = self.ready(job, effort, report)
            costs["check"] = time.perf_counter() - clock
            report("time")
            clock = time.perf_counter()
            first_s = ready(1)
            limit = effort.slower_than_s
            if limit is not None and first_s > HOPELESS * limit:
                samples, why = [min(first_s, ready(1))], "slow"
            else:
                ready(batch(max(first_s, WARM_S / 1000), Effort(sample_s=WARM_S)))
                samples, why = sample(ready, effort, ready(1))
            costs["time"] = time.perf_counter() - clock
            clocks = self.clocks.now()
            self._again(ready)
            if samples and (self.fastest_s is None or min(samples) < self.fastest_s):
                self.data.verify_whole(ready.sets[0], job.slack)
                self.fastest_s = min(samples)
        except Wrong as wrong:
            costs.setdefault("check", time.perf_counter() - clock)
            return wrong.outcome(costs)
        except CudaError as error:
            if not refused(error):
                raise
            return Outcome("refused", message=error.message, costs_s=costs)
        finally:
            if ready is not None:
                ready.close()
        return right(samples, difference, costs, {"stopped": why} | clocks)

    def refer(self, job: CudaJob, report: Report) -> Outcome:
        """Run a plain kernel, compare it in the boxes, and keep all that it wrote: winners are compared with that."""
        try:
            ready, difference = self.ready(job, Effort(), report)
        except Wrong as wrong:
            return Outcome("wrong", message=str(wrong))
        try:
            self.data.keep(ready.sets[0])
        finally:
            ready.close()
        return right([], difference, {}, {})

    def interleaved(self, jobs: tuple[CudaJob, ...], rounds: int, effort: Effort, report: Report) -> list[Outcome]:
        """All jobs in turn, `rounds` times (A B C A B C …), after a check each; a wrong one is left out."""
        outcomes: list[Outcome | None] = [None] * len(jobs)
        ready: dict[int, tuple[LoadedCandidate, Difference | None]] = {}
        try:
            for i, job in enumerate(jobs):
                report(f"check {i}")
                try:
                    ready[i] = self.ready(job, effort, lambda stage: None)
                except Wrong as wrong:
                    outcomes[i] = Outcome("wrong", message=str(wrong))
                except CudaError as error:
                    if not refused(error):
                        raise
                    outcomes[i] = Outcome("refused", message=error.message)
            samples: dict[int, list[float]] = {i: [] for i in ready}
            times = {i: batch(min(one(1), one(1)), effort) for i, (one, _) in ready.items()}
            for _ in range(rounds):
                for i, (one, _) in ready.items():
                    report(f"time {i}")
                    one(1)
                    samples[i].append(one(times[i]) / times[i])
            for i, (one, difference) in ready.items():
                try:
                    one.check(POISONS[0])  # once more: all of them write to the same place
                    self.data.verify_whole(one.sets[0], one.job.slack)
                    outcomes[i] = right(samples[i], difference, {}, {"stopped": "rounds"} | self.clocks.now())
                except Wrong as wrong:
                    outcomes[i] = Outcome("wrong", message=str(wrong))
        finally:
            for one, _ in ready.values():
                one.close()
        return [o for o in outcomes if o is not None]

    def ready(self, job: CudaJob, effort: Effort, report: Report) -> tuple[LoadedCandidate, Difference | None]:
        """Load, prepare, check twice (on two poisons), and lay out the memory of the timed calls."""
        report("load")
        made = LoadedCandidate(self.card, self.data, job, self.sets(job) if effort.cold else 1)
        try:
            report("prepare")
            made.prepare()
            report("check")
            difference = made.check(POISONS[0])
            made.check(POISONS[1])
            for name, data, scalars in self.beside:
                self._check_further(job.given(scalars), name, data)
            report("copy")
            made.spread()
        except BaseException:
            made.close()
            raise
        return made, difference

    def _check_further(self, job: CudaJob, name: str, data: CudaData) -> None:
        """Prepare and run once on a further data set. Wrong where an output differs."""
        made = LoadedCandidate(self.card, data, job)
        try:
            made.prepare()
            made.check(POISONS[0])
        except Wrong as wrong:
            raise Wrong(f"where {name}: {wrong}", wrong.difference, wrong.index) from None
        finally:
            made.close()

    def sets(self, job: CudaJob) -> int:
        """How many argument sets walk through `COLD_CACHES` times the last cache, at least two."""
        sizes = {n: t.bytes for n, t in self.data.tensors.items()} | {n: h.bytes for n, h in job.held.items()}
        size = max(1, sum(sizes[n] for n in job.buffers))
        room = max(2, MOST_COLD_BYTES // size)
        return max(2, min(-(-COLD_CACHES * self.l2_bytes // size) + 1, MOST_SETS, room))

    def _again(self, ready: LoadedCandidate) -> None:
        """The outputs after timing: blocks that race may be right once. Inouts hold sums of many calls by now."""
        if not self.data.first:
            self.data.verify(ready.sets[0], ready.job.slack)
