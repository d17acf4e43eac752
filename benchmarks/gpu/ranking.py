"""How well the clock and the simulator rank rows that a GPU measured: `python -m benchmarks.gpu.ranking`.

`benchmarks/recorded/h200_rows.json.gz` holds, for a few spaces, 200 rows drawn uniformly, their decisions and seconds.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import kendalltau

from autosched.costmodel.analytic.clock import clock
from autosched.ir.rewrites.rewrite import simplify
from autosched.search.tuning.tune import usable
from autosched.tensorize.matcher.match import match
from autosched.tiling.candidate import Candidate
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.plans.plan import Plan
from autosched.tiling.variants.conditional import candidates_of
from benchmarks.gpu.cases import Case, all_cases
from benchmarks.gpu.prepare import request_of

FILE = Path(__file__).parents[1] / "recorded" / "h200_rows.json.gz"
SCHEMA = "autosched/measured-rows/1"
BEST_OF = 16
Seconds = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """Rows of one plan's space that this version still has: `ids`, and `seconds` as measured."""

    case: Case
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


def spaces(path: Path = FILE) -> list[dict[str, Any]]:
    """The recorded spaces, as the file has them."""
    found = json.loads(gzip.decompress(path.read_bytes()))
    assert found["schema"] == SCHEMA
    rows: list[dict[str, Any]] = found["spaces"]
    return rows


def measured(space: dict[str, Any]) -> Measured:
    """The rows of a recorded space in this version's space; decisions that it no longer has leave rows out."""
    case = next(c for c in all_cases() if c.name == space["case"])
    case = replace(case, **{k: space[k] for k in ("workload", "sizes") if k in space})  # as the case was then
    request = request_of(case)
    program, _ = simplify(request.program)
    only = space["plan"].split("cuda/")[1].split("(")[0]
    found = match(program, usable(request.catalogue, request.target, "cuda", [only]), numerics=request.numerics)
    plans = {p.name: p for p in make_plans(program, request.target, candidates_of(found))}
    plan = plans[space["plan"]]
    domains = {d.name: set(d.domain) for d in plan.space.decisions}
    names = space["decisions"]
    ids, seconds = [], []
    for values, time_s in zip(space["rows"], space["seconds"], strict=True):
        named = {n: v for n, v in zip(names, values, strict=True) if n in domains}
        if all(v in domains[n] for n, v in named.items()):
            ids.append(plan.space.row_of(named))
            seconds.append(time_s)
    kept = plan.space.legal(ids) if ids else np.zeros(0, bool)
    rows = np.asarray(ids, np.int64)[kept]
    return Measured(case, plan, rows, np.asarray(seconds)[kept], len(space["rows"]) - int(kept.sum()))


def quality(predicted: Seconds, seconds: Seconds) -> Quality:
    first = np.argsort(predicted, kind="stable")[:BEST_OF]
    return Quality(float(kendalltau(predicted, seconds)[0]), float(seconds.min() / seconds[first].min()))


def of_clock(rows: Measured) -> Quality:
    return quality(clock(rows.plan, rows.plan.space.values(rows.ids))["total"], rows.seconds)


def of_simulator(rows: Measured, most: int | None = None) -> Quality:
    """Of the first `most` rows; those that the simulator refuses are left out."""
    from autosched.device.simulator.device import SimulatorDevice

    request = request_of(rows.case)
    device = SimulatorDevice(request.program, request.target, noise=0.0)
    found = [device.measure(device.build(Candidate(rows.plan, int(i)))).time_s for i in rows.ids[:most]]
    kept = np.array([t is not None for t in found])
    return quality(np.array([t for t in found if t is not None]), rows.seconds[:most][kept])


def main(arguments: Sequence[str] = ()) -> None:
    """A line a space; with `simulator`, also what the simulator says (a minute)."""
    for space in spaces():
        rows = measured(space)
        lost = f" ({rows.lost} rows are no longer there)" if rows.lost else ""
        line = f"{rows.case.name:<28} {len(rows.ids)} rows{lost}: clock {_text(of_clock(rows))}"
        if "simulator" in arguments:
            line += f"; simulator {_text(of_simulator(rows))}"
        print(line, flush=True)


def _text(found: Quality) -> str:
    return f"tau {found.kendall:.2f}, best of {BEST_OF} at {found.best_of:.2f}"


if __name__ == "__main__":
    main(sys.argv[1:])
