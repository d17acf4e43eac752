"""What every side of a comparison computes, and how a library's way of computing it is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.ir.program import Program

Array = npt.NDArray[Any]


class UnavailableError(Exception):
    """The library is not installed, or cannot compute this."""


@dataclass(frozen=True)
class Task:
    """A program with its inputs. `cpus`: one for each thread, the caller's first. `packed`: what is `const` may be
    prepared before the timed call."""

    program: Program
    arrays: Mapping[str, Array]
    cpus: tuple[int, ...]
    packed: bool

    @property
    def threads(self) -> int:
        return len(self.cpus)

    def dtype(self, name: str) -> str:
        return self.program.tensors[name].dtype.name


@dataclass(frozen=True)
class Contender:
    """One library call that computes a task.

    `run` makes the call, `result` is what it computed last, in the order of `expected`, which says what that is for the
    program's own output. `why_not` tells why the time is shown but is no anchor; `family` groups calls of one library.
    `tolerance` is relative to the greatest element for floats, absolute for integers.
    """

    name: str
    family: str
    run: Callable[[], Any]
    result: Callable[[], Array]
    expected: Callable[[Array], Array] = lambda out: out
    tolerance: float = 1e-4
    why_not: str = ""

    def difference(self, ours: Array) -> str:
        """What is wrong with the last result; empty where it agrees with ours."""
        got, want = np.asarray(self.result()), self.expected(ours)
        if got.shape != want.shape:
            return f"shape {list(got.shape)} instead of {list(want.shape)}"
        exact = np.issubdtype(want.dtype, np.integer)
        difference = np.abs(got.astype(np.float64) - want.astype(np.float64))
        if not np.isfinite(difference).all():
            return "not finite"
        greatest = float(np.abs(want.astype(np.float64)).max(initial=0.0))
        allowed = self.tolerance if exact else self.tolerance * max(greatest, 1e-30)
        worst = float(difference.max(initial=0.0))
        return "" if worst <= allowed else f"differs by {worst:.3g} of {greatest:.3g}, allowed {allowed:.3g}"


FLOAT_TOLERANCE = {"f32": 1e-4, "f64": 1e-10, "bf16": 1.5e-2, "f16": 2e-3}
"""By the dtype of the result: sums in other orders, and one rounding into the result."""


def tolerance(dtype: str) -> float:
    return FLOAT_TOLERANCE.get(dtype, 0.0)
