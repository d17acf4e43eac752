"""The program's own plain kernel: what whole outputs of large programs are compared with on a GPU.

The interpreter computes boxes of them only. A kernel of CUDA cores alone, of a plan without any instruction of tensor
cores, is compared with it in these boxes, and what it wrote elsewhere then stands for the rest: it shares neither tiles
nor pipelines with the candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from autosched.costmodel.analytic.clock import clock
from autosched.device.cuda.build import builds
from autosched.device.cuda.compile.builder import CudaBuilder
from autosched.device.cuda.launch_job import CudaJob
from autosched.errors import AutoschedError
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.tiling.candidate import Candidate
from autosched.tiling.planner.make_plans import make_plans

ROWS = 512
MOST_SECONDS = 5.0
"""A plain kernel that takes longer by the clock is not run."""


def plain_candidate(program: Program, target: Target) -> Candidate | None:
    """The fastest plain kernel by the clock, of `ROWS` rows; None where there is none, or all are slow."""
    best: tuple[float, Candidate] | None = None
    try:
        for plan in make_plans(program, target, {}):
            rows = plan.space.sample(ROWS, np.random.default_rng(0))
            seconds = clock(plan, plan.space.values(rows))["total"]
            k = int(np.argmin(seconds))
            if best is None or seconds[k] < best[0]:
                best = float(seconds[k]), Candidate(plan, int(rows[k]))
    except AutoschedError:
        return None
    return best[1] if best is not None and best[0] <= MOST_SECONDS else None


def plain_job(program: Program, target: Target, builder: CudaBuilder, scalars: Mapping[str, Any]) -> CudaJob | None:
    """The plain kernel, built; None where there is none, or it does not compile."""
    candidate = plain_candidate(program, target)
    if candidate is None:
        return None
    (built,) = builds([(candidate, scalars)], target, builder)
    job: CudaJob | None = built.payload
    return job if built.error is None else None
