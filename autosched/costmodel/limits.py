"""What no schedule of a plan goes below: its instructions at the rate that the target states, and what has to come out
of memory at its bandwidth. Nothing that code generation adds is in it, so a kernel that is faster says that a figure of
the target is too low, and no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.costmodel.clock import part_terms, timed_parts
from autosched.costmodel.clock_gpu import issue_rate
from autosched.costmodel.clock_visited import work_left
from autosched.machine.target import Target
from autosched.tiling.plan import Part, Plan, TensorPart
from autosched.tiling.values import rows_of

Columns = Mapping[str, npt.NDArray[np.int64]]
Column = npt.NDArray[np.float64]


def limit(plan: Plan, values: Columns) -> Column:
    """Seconds that rows with these columns take at least."""
    parts = timed_parts(plan)
    busy = sum((_busy(part, plan, values) for part in parts), start=np.zeros(rows_of(values)))
    return np.maximum(busy, _moving(plan))


def _busy(part: Part, plan: Plan, values: Columns) -> Column:
    """Seconds to issue a part's instructions on all threads or cores that it may use; of scalar stages, what the clock
    says of computing or of memory, whichever is longer."""
    if not isinstance(part, TensorPart):
        terms = part_terms(part, plan, values)
        return np.asarray(np.maximum(terms["compute"], terms["memory"]), np.float64)
    nest, target = part.nest, plan.target
    n = rows_of(values)
    calls = prod(a.units for a in nest.axes) * np.ones(n)
    if part.scheme == "gpu":
        return calls / issue_rate(nest.intrinsic, target) / target.cores / target.clock_hz
    rate = target.issues(nest.intrinsic)
    if part.scheme == "spatial":
        return calls / rate / target.clock_hz
    return calls * work_left(nest, part.names, values, n) / rate / values[part.names("threads")] / target.clock_hz


def _moving(plan: Plan) -> float:
    """Seconds to bring in what the program is given, and take out what it answers, once, where no cache holds all of
    it: caches are warm."""
    target: Target = plan.target
    tensors = [t for t in plan.program.tensors.values() if not t.intermediate]
    size = sum(prod(t.extents) * t.dtype.bits / 8 for t in tensors)
    main = target.memories[-1] if target.memories else None
    if main is None or not main.bandwidth_bytes_per_s or any(m.bytes >= size for m in target.memories[:-1]):
        return 0.0
    return size / main.bandwidth_bytes_per_s
