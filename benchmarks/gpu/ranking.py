"""How well the clock and the simulator rank rows that a GPU measured: `python -m benchmarks.gpu.ranking`.

`benchmarks/recorded/h200_rows.json.gz` holds recordings of a few spaces: up to 200 rows of one plan, drawn uniformly.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.stats import kendalltau

from autosched.costmodel.analytic.clock import clock
from autosched.search.evaluate.recorder import request_of, rescored
from autosched.search.tuning.tune import plans_of
from autosched.store.recorded_space import RecordedSpace
from autosched.store.replay_file import read_replays
from autosched.tiling.candidate import Candidate
from autosched.tiling.plans.plan import Plan

FILE = Path(__file__).parents[1] / "recorded" / "h200_rows.json.gz"
BEST_OF = 16
Seconds = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """Rows of one plan's space that this version still has: `ids`, and `seconds` as measured."""

    recording: RecordedSpace
    plan: Plan
    ids: npt.NDArray[np.int64]
    seconds: Seconds
    lost: int


@dataclass(frozen=True)
class Quality:
    """Kendall's tau of predicted and measured seconds; the fastest measured over the fastest of the `BEST_OF` rows that
    were predicted to be fastest."""

    kendall: float
    best_of: float


def spaces(path: Path = FILE) -> dict[str, RecordedSpace]:
    """The recorded spaces by the name of their case."""
    return {recording.name: recording for recording in read_replays(path)}


def measured(space: RecordedSpace) -> Measured:
    """The rows of a recorded space in this version's space; rows that it no longer has are left out."""
    found, lost = rescored(space)
    (recorded,) = found.plans
    plan = next(p for p in plans_of(request_of(space))[1] if p.name == recorded.name)
    ids = plan.space.ids({d.name: recorded.indices[:, i] for i, d in enumerate(recorded.decisions)})
    kept = plan.space.legal(ids)
    return Measured(space, plan, ids[kept], recorded.time_s[kept], lost + int((~kept).sum()))


def quality(predicted: Seconds, seconds: Seconds) -> Quality:
    first = np.argsort(predicted, kind="stable")[:BEST_OF]
    return Quality(float(kendalltau(predicted, seconds)[0]), float(seconds.min() / seconds[first].min()))


def of_clock(rows: Measured) -> Quality:
    return quality(clock(rows.plan, rows.plan.space.values(rows.ids))["total"], rows.seconds)


def of_simulator(rows: Measured, most: int | None = None) -> Quality:
    """Of the first `most` rows; those that the simulator refuses are left out."""
    from autosched.device.simulator.device import SimulatorDevice

    request = request_of(rows.recording)
    device = SimulatorDevice(request.program, request.target, noise=0.0)
    found = [device.measure(device.build(Candidate(rows.plan, int(i)))).time_s for i in rows.ids[:most]]
    kept = np.array([t is not None for t in found])
    return quality(np.array([t for t in found if t is not None]), rows.seconds[:most][kept])


def main(arguments: Sequence[str] = ()) -> None:
    """A line a space; with `simulator`, also what the simulator says (a minute)."""
    for name, space in spaces().items():
        rows = measured(space)
        lost = f" ({rows.lost} rows are no longer there)" if rows.lost else ""
        line = f"{name:<28} {len(rows.ids)} rows{lost}: clock {_text(of_clock(rows))}"
        if "simulator" in arguments:
            line += f"; simulator {_text(of_simulator(rows))}"
        print(line, flush=True)


def _text(found: Quality) -> str:
    return f"tau {found.kendall:.2f}, best of {BEST_OF} at {found.best_of:.2f}"


if __name__ == "__main__":
    main(sys.argv[1:])
