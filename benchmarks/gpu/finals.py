"""A case's last rounds: the fastest candidates that are right everywhere, and every library, in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from autosched.device.correctness.compare import Wrong
from autosched.device.cpu.timing import batch
from autosched.device.cuda.bench import LoadedCandidate
from autosched.device.cuda.compile.nvrtc import Cubin
from autosched.device.cuda.data import POISONS, CudaData
from autosched.device.cuda.driver import Card
from autosched.device.cuda.launch_job import CudaJob
from autosched.device.job import Effort, Outcome
from benchmarks.gpu import peers as libraries
from benchmarks.gpu.bundle import Compared, Problem

ROUND_S = 1e-3
FINALISTS, ROUNDS = 3, 15


@dataclass(frozen=True)
class Scaled:
    """Seconds of as many operations as the case has, of a loop whose launches have another number: `launches` of them
    are one call, together or a part of one."""

    run: Callable[[int], float]
    launches: float

    def __call__(self, times: int) -> float:
        count = max(1, round(times * self.launches))
        return self.run(count) / count * times * self.launches


@dataclass
class Finals:
    """The rounds of one case on one GPU, in this process: all candidates were seen to work in another.

    `plain` is the plain kernel that was right in the boxes there: what it writes is what whole outputs are compared
    with. Without one the boxes alone are compared.
    """

    card: Card
    data: CudaData
    problem: Problem
    made: Mapping[int, Any]
    l2_bytes: int
    plain: CudaJob | None = None
    wrong: dict[int, str] = field(default_factory=dict)
    """What was found of candidates that are right in the boxes only, by number."""
    opened: list[LoadedCandidate] = field(default_factory=list)
    """Loops whose code is loaded, for the time of the rounds."""

    @property
    def asked(self) -> libraries.Asked:
        """What libraries are asked for, and on how many sets of data."""
        one = self.problem
        return libraries.Asked(one.peer, one.dtype, one.sizes, self.data.bytes, self.l2_bytes)

    def refer(self) -> str:
        """Run the plain kernel and keep what it writes; what is wrong with it, if anything is."""
        if self.plain is None:
            return ""
        ready = LoadedCandidate(self.card, self.data, self.plain)
        try:
            ready.prepare()
            ready.check(POISONS[0])
            self.data.keep(ready.sets[0])
        except Wrong as wrong:
            return str(wrong)
        finally:
            ready.close()
        return ""

    def ours(self, outcomes: Sequence[Outcome]) -> dict[int, LoadedCandidate]:
        """The `FINALISTS` fastest that are right, by number, ready to run; the next takes the place of who is wrong."""
        found: dict[int, LoadedCandidate] = {}
        for _, i in sorted((median(o.samples_s), i) for i, o in enumerate(outcomes) if o.status == "ok"):
            if len(found) == FINALISTS:
                break
            entry = self.problem.entries[i]
            job = replace(entry.job, code=self.made[entry.number].code)
            ready = LoadedCandidate(self.card, self.data, job, self.asked.sets)
            ready.prepare()
            if self._right(i, ready):
                ready.spread()
                found[i] = ready
            else:
                ready.close()
        return found

    def loops(self) -> dict[str, Callable[[int], float]]:
        """Those of the case's instruction, by name: seconds for as many operations as the case has."""
        found: dict[str, Callable[[int], float]] = {}
        for loop in self.problem.loops:
            made = self.made.get(loop.entry.number)
            if isinstance(made, Cubin):
                ready = LoadedCandidate(self.card, self.data, replace(loop.entry.job, code=made.code))
                self.opened.append(ready)
                found[loop.entry.plan] = Scaled(ready, self.problem.operations / loop.operations)
        return found

    def rounds(self, outcomes: Sequence[Outcome]) -> tuple[Compared, ...]:
        """The seconds of each competitor, or why it has none."""
        ours: dict[int, LoadedCandidate] = {}
        competitors: dict[str, Callable[[int], float]] = {}
        failed: list[Compared] = []
        try:
            if said := self.refer():
                failed.append(Compared("plain", error=said))
            ours = self.ours(outcomes)
            competitors |= {f"ours {i}": ready for i, ready in ours.items()}
            competitors |= self.loops()
            for peer in libraries.peers(self.asked):
                if isinstance(peer, tuple):
                    failed.append(Compared(peer[0], error=peer[1]))
                else:
                    competitors[peer.name] = peer
            timed = interleaved(competitors, failed)
            # Once more: blocks that race may be right at first.
            late = {f"ours {i}" for i, ready in ours.items() if not self._right(i, ready)}
            failed += [Compared(f"ours {i}", error=said) for i, said in self.wrong.items()]
            return (*(c for c in timed if c.name not in late), *failed)
        finally:
            for ready in (*ours.values(), *self.opened):
                ready.close()
            self.opened.clear()
            competitors.clear()

    def corrected(self, outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
        """The outcomes, with what the rounds found wrong."""
        return tuple(
            replace(o, status="wrong", message=self.wrong[i]) if i in self.wrong else o for i, o in enumerate(outcomes)
        )

    def _right(self, number: int, ready: LoadedCandidate) -> bool:
        try:
            ready.check(POISONS[0])
            self.data.verify_whole(ready.sets[0], ready.job.slack)
        except Wrong as wrong:
            self.wrong[number] = str(wrong)
        return number not in self.wrong


def interleaved(competitors: Mapping[str, Callable[[int], float]], failed: list[Compared]) -> list[Compared]:
    """`ROUNDS` rounds of all of them in turn; who cannot be timed is added to `failed`."""
    effort = Effort(sample_s=ROUND_S)
    times: dict[str, int] = {}
    for name, run_it in competitors.items():
        try:
            run_it(1)
            times[name] = batch(run_it(4) / 4, effort)
            run_it(times[name])
        except Exception as error:  # a library may refuse to be recorded
            failed.append(Compared(name, error=f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"))
    seconds: dict[str, list[float]] = {n: [] for n in times}
    for _ in range(ROUNDS):
        for name, count in times.items():
            seconds[name].append(competitors[name](count) / count)
    return [Compared(n, tuple(s)) for n, s in seconds.items()]
