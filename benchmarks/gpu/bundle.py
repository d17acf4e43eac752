"""What travels to the GPU and back: plain values and texts, in one compressed file each."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from autosched.device.cuda.launch_job import CudaJob, Sample
from autosched.device.job import Outcome, TensorFile


@dataclass(frozen=True)
class Entry:
    """One candidate: its place in the study, its text, and its launches (`job`, without machine code)."""

    plan: str
    row: int
    number: int
    text: str
    headers: tuple[str, ...]
    arch: str
    job: CudaJob
    analytic_s: float | None = None
    error: str = ""


@dataclass(frozen=True)
class Loop:
    """A kernel that issues an instruction and nothing else of a product: `operations` in one launch (a multiply-add
    counts two)."""

    entry: Entry
    operations: int


@dataclass(frozen=True)
class Problem:
    """One case. Of an input only a run of random elements travels, where it repeats one (`runs`: tensor to name).
    `plain`: the kernel that whole outputs are compared with. `loops`: the ceilings of the case's own instruction."""

    name: str
    sizes: dict[str, Any]
    dtype: str
    peer: str
    operations: int
    tensors: tuple[TensorFile, ...]
    samples: tuple[Sample, ...]
    runs: dict[str, str]
    wants: dict[str, Any]
    tolerances: dict[str, Any]
    entries: tuple[Entry, ...]
    plain: Entry | None = None
    loops: tuple[Loop, ...] = ()


@dataclass(frozen=True)
class Bundle:
    problems: tuple[Problem, ...]
    runs: Mapping[str, Any]
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Compared:
    """One competitor of the final rounds: seconds of each round; `error` says why there are none."""

    name: str
    seconds: tuple[float, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Recorded:
    """What was measured of a case: an outcome (and what its kernel takes) for each entry, in order, and the rounds.
    `seconds` are those that the GPU was held for. `whole`: every element that ours wrote in the rounds was compared,
    not boxes alone."""

    name: str
    outcomes: tuple[Outcome, ...]
    rounds: tuple[Compared, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    whole: bool = False

    def line(self, problem: Problem) -> str:
        """What was found, for people."""
        kinds: dict[str, int] = {}
        for o in self.outcomes:
            kinds[o.status] = kinds.get(o.status, 0) + 1
        times = [median(o.samples_s) for o in self.outcomes if o.status == "ok"]
        best = f"best {problem.operations / min(times) / 1e12:.1f} Top/s" if times else "none"
        shown = ", ".join(
            f"{c.name} {problem.operations / median(c.seconds) / 1e12:.1f}" if c.seconds else f"{c.name}: {c.error}"
            for c in self.rounds
        )
        return f"{self.name}: {kinds} {best} | {shown} | {self.seconds:.0f} s"


def save(path: Path, value: Any) -> None:
    path.write_bytes(zlib.compress(pickle.dumps(value), 6))


def load(path: Path) -> Any:
    """A bundle or a list of recordings, of our own making."""
    return pickle.loads(zlib.decompress(path.read_bytes()))
