"""One candidate in the worker: prepare, check, time. Runs in the worker process; numpy and llvmlite only."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from autosched.codegen.llvm.machine.engine import Module
from autosched.codegen.llvm.machine.jit import load
from autosched.device.correctness.compare import Difference, Wrong, right
from autosched.device.cpu.arena import ALIGN, POISONS, SCRATCH_POISON, Bytes, Guarded, plain
from autosched.device.cpu.data import CpuData, address_of, copies_of, copy_of
from autosched.device.cpu.drift_correction import DriftCorrection
from autosched.device.cpu.timing import Sampler, batch, sample
from autosched.device.job import DataSet, Effort, EntryPoint, Job, Outcome
from autosched.machine.native import NativeCalls

COLD_LIMIT_BYTES = 1 << 30
PLACES, PLACES_BYTES = 5, 64 << 20
"""Copies of a finalist's data that its rounds go through, and what they may take in all (far more does not fit caches,
and is not moved by it). Which physical pages data lie on decides how sets of the caches fill: one f32 product of
512x512x512 took 0.99 to 1.05 ms from place to place, and otherwise a place would decide about a study."""
HOPELESS = 3.0
SURE_S = 2e-3
"""A first call this many times slower than the limit for sampling, and this long: cold caches, first touches of code
and odd alignment do not explain it."""
Report = Callable[[str], None]
"""Tells the parent what comes next, so that a death can be placed."""


@dataclass
class CheckedCandidate:
    """A candidate that passed its check, with its own timing memory (`views`); `first_s` is a first call's time."""

    job: Job
    calls: NativeCalls | None
    first_s: float
    views: dict[str, Bytes]
    loaded: Module
    sets: list[dict[str, Bytes]]


class CpuBench:
    """Holds one data set; `cold_bytes` is what a cold sample must walk through (twice the last cache). `folder` is the
    data's, where violations are found. Copies of the data in other places take `places_bytes` at most; `calls` makes
    what calls a kernel a number of times."""

    def __init__(
        self,
        data: CpuData,
        cold_bytes: int = 0,
        folder: Path | None = None,
        places_bytes: int = PLACES_BYTES,
        calls: type[NativeCalls] = NativeCalls,
    ) -> None:
        self.data = data
        self.places_bytes, self.calls = places_bytes, calls
        self.cold_bytes = cold_bytes
        self.folder = folder
        self.beside: tuple[DataSet, ...] = ()
        """Folders below the data's with further data sets, on which every candidate is checked too."""
        self._further: dict[str, CpuData] = {}
        self._pace = DriftCorrection()

    def measure(self, job: Job, effort: Effort, report: Report) -> Outcome:
        """Check and time one candidate."""
        costs: dict[str, float] = {}
        clock = time.perf_counter()
        difference: Difference | None = None
        try:
            ready, difference = self.ready(job, effort, report)
            costs["check"] = time.perf_counter() - clock
            if ready.calls is None:
                return right([ready.first_s], difference, costs, {"stopped": "slow"})
            report("time")
            clock, check_s = time.perf_counter(), costs["check"]
            try:
                samples, why, level = self._samples(ready, effort, costs)
            finally:
                costs["time"] = time.perf_counter() - clock - (costs["check"] - check_s)
        except Wrong as wrong:
            costs.setdefault("check", time.perf_counter() - clock)
            return wrong.outcome(costs)
        return right(samples, difference, costs, {"stopped": why} | ({"level": level} if level != 1.0 else {}))

    def _samples(
        self, ready: CheckedCandidate, effort: Effort, costs: dict[str, float]
    ) -> tuple[list[float], str, float]:
        """Times of one call, why sampling stopped, and the machine's level (1.0 where nobody looks); Wrong where the
        outputs are no longer right."""
        run, verified = self.sampler(ready), {n: self.data.guarded[n].view for n in self.data.outputs}
        paced = effort.paced and not effort.cold
        allowed = effort.slowed(max(1.0, self._pace.last)) if paced else effort

        def take() -> tuple[list[float], str]:
            found = sample(run, allowed, ready.first_s)
            clock = time.perf_counter()
            self._again(ready, verified)  # now: the known kernel writes the same outputs
            costs["check"] += time.perf_counter() - clock
            return found

        return self._pace.paced(run, take, effort) if paced else (*take(), 1.0)

    def interleaved(self, jobs: tuple[Job, ...], rounds: int, effort: Effort, report: Report) -> list[Outcome]:
        """All jobs in turn, `rounds` times (A B C A B C …), after a check each; a wrong one is left out."""
        outcomes: list[Outcome | None] = [None] * len(jobs)
        ready: dict[int, tuple[CheckedCandidate, Difference | None]] = {}
        for i, job in enumerate(jobs):
            report(f"check {i}")
            try:
                ready[i] = self.ready(job, effort, lambda stage: None)
            except Wrong as wrong:
                outcomes[i] = Outcome("wrong", message=str(wrong), extra=wrong.extra)
        samples: dict[int, list[float]] = {i: [] for i in ready}
        calls, runs = {}, {}
        for i, (one, _) in ready.items():
            report(f"time {i}")
            runs[i] = [self.sampler(place) for place in (one, *self._elsewhere(one, effort))]
            run = runs[i][0]
            calls[i] = batch(min(one.first_s, run(1), run(1)), effort)  # one of them may have met other work
        for number in range(rounds):
            for i in ready:
                report(f"time {i}")
                run = runs[i][number % len(runs[i])]
                run(1)  # its own data comes back into the caches: the one before pushed it out
                samples[i].append(run(calls[i]) / calls[i])
        for i, (one, difference) in ready.items():
            try:
                self._again(one)
                outcomes[i] = right(samples[i], difference, {}, {"stopped": "rounds"})
            except Wrong as wrong:
                outcomes[i] = Outcome("wrong", message=str(wrong), extra=wrong.extra)
        return [o for o in outcomes if o is not None]

    def ready(self, job: Job, effort: Effort, report: Report) -> tuple[CheckedCandidate, Difference | None]:
        """Load, prepare and check in guarded memory, then lay out timing memory and check there too.

        A candidate that is hopelessly slow already in the first is not run again (`calls` is None then).
        """
        report("load")
        loaded = load(job.objects)
        guarded = {n: Guarded(s.bytes, ALIGN) for n, s in job.scratch.items()}
        for g in guarded.values():
            g.view[:] = SCRATCH_POISON
        everything = self.data.guarded | guarded
        views = {n: g.view for n, g in everything.items()}
        self.data.reset(views, POISONS[0])
        report("prepare")
        for entry in job.prepare:
            _call(loaded, entry, {n: g.address for n, g in everything.items()})
        for name, scratch in job.scratch.items():
            if scratch.packed:
                guarded[name].freeze()
        report("check")
        took_s = _call(loaded, job.main, {n: g.address for n, g in everything.items()})
        if touched := [n for n, g in everything.items() if not g.intact()]:
            raise Wrong(f"bytes outside {', '.join(touched)} were written")
        difference = self.data.verify(views)
        self.data.verify_whole(views)
        for data_set in (*map(DataSet, job.violations), *self.beside):
            self._check_further(loaded, job, data_set)
        hopeless = None if effort.slower_than_s is None else max(HOPELESS * effort.slower_than_s, SURE_S)
        if hopeless is not None and took_s > hopeless:  # once more: somebody else may have had the core
            took_s = min(took_s, _call(loaded, job.main, {n: g.address for n, g in everything.items()}))
        if hopeless is not None and took_s > hopeless:
            return CheckedCandidate(job, None, took_s, {}, loaded, []), difference
        sets = self._timing_memory(job, guarded, effort.cold)
        pointers = [[address_of(one[b]) for b in job.main.buffers] for one in sets]
        calls = self.calls(loaded.address(job.main.symbol), pointers, job.main.scalars)
        self.data.reset(self.data.plain, POISONS[1])
        took_s = calls(1)
        self.data.verify_again(sets[0], views)
        return CheckedCandidate(job, calls, took_s, sets[0], loaded, sets), difference

    def data_of(self, name: str) -> CpuData:
        """The data of a folder below the data's own, or these (no name)."""
        if not name:
            return self.data
        if name not in self._further:
            assert self.folder is not None
            self._further[name] = CpuData(self.folder / name, tuple(self.data.tensors.values()))
        return self._further[name]

    def _check_further(self, loaded: Module, job: Job, data_set: DataSet) -> None:
        """Prepare and run once on other data: which a check of the kernel refuses (the fallback must answer, and
        rightly), which are at the ends of their ranges, or which have NaN in some places."""
        name = data_set.folder
        data = self.data_of(name)
        everything = data.guarded | {n: Guarded(s.bytes, ALIGN) for n, s in job.scratch.items()}
        for scratch in job.scratch:
            everything[scratch].view[:] = SCRATCH_POISON
        views = {n: g.view for n, g in everything.items()}
        data.reset(views, POISONS[0])
        for entry in (*job.prepare, job.given(data_set.scalars)):
            _call(loaded, entry, {n: g.address for n, g in everything.items()})
        try:
            data.verify(views)
            if data.whole is not None:
                data.verify_whole(views)
        except Wrong as wrong:
            extra = {"stray": [name, *wrong.extra["stray"][1:]]} if "stray" in wrong.extra else {}
            raise Wrong(f"where {name}: {wrong}", wrong.difference, wrong.index, extra) from None

    def sampler(self, ready: CheckedCandidate) -> Sampler:
        """Time a number of calls, inouts put back to their first values before (or they would run to infinity)."""

        def run(times: int) -> float:
            for name in self.data.inouts:
                ready.views[name][:] = self.data.initial[name]
            assert ready.calls is not None
            return ready.calls(times)

        return run

    def _elsewhere(self, ready: CheckedCandidate, effort: Effort) -> list[CheckedCandidate]:
        """The same on other pages, as often as is worth it; cold calls go through many places as it is."""
        main, scratch = ready.job.main, ready.job.scratch
        size = sum(ready.views[b].size for b in main.buffers)
        places: list[CheckedCandidate] = []
        for number in range(0 if effort.cold or not size else min(PLACES, self.places_bytes // size) - 1):
            copies = {n: copy_of(ready.views[n], 3 * i + 1) for i, n in enumerate(scratch)}
            views = self.data.elsewhere(number) | copies
            calls = self.calls(
                ready.loaded.address(main.symbol), [[address_of(views[b]) for b in main.buffers]], main.scalars
            )
            places.append(replace(ready, calls=calls, views=views))
        return places

    def _again(self, ready: CheckedCandidate, verified: dict[str, Bytes] | None = None) -> None:
        """The outputs after timing; threads that race may be right once. Inouts hold sums of many calls by now."""
        if self.data.inouts:
            return
        if verified is None:
            self.data.verify(ready.views)
            self.data.verify_whole(ready.views)
        else:
            self.data.verify_again(ready.views, verified)

    def _timing_memory(self, job: Job, guarded: dict[str, Guarded], cold: bool) -> list[dict[str, Bytes]]:
        """Argument sets for timing: one when warm; when cold as many as walk through `cold_bytes`."""
        scratch = {n: plain(s.bytes, 3 * i + 1) for i, (n, s) in enumerate(job.scratch.items())}
        for name, view in scratch.items():
            view[:] = guarded[name].view if job.scratch[name].packed else SCRATCH_POISON
        first = self.data.plain | scratch
        sets = [first]
        used = {n: first[n] for n in job.main.buffers}
        size = sum(v.size for v in used.values())
        if cold and size:
            copies = min(-(-self.cold_bytes // size) + 1, max(2, COLD_LIMIT_BYTES // size))
            others = {n: copies_of(v, copies - 1, i) for i, (n, v) in enumerate(used.items())}
            sets += [dict(zip(others, one, strict=True)) for one in zip(*others.values(), strict=True)]
        return sets


def _call(loaded: Module, entry: EntryPoint, addresses: dict[str, int]) -> float:
    return NativeCalls(loaded.address(entry.symbol), [[addresses[b] for b in entry.buffers]], entry.scalars)(1)
