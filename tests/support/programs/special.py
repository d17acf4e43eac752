"""NaN and infinities in inputs: what a kernel makes of them beside what the program says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from support.match.agreement import Expected

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.device.correctness.oracle import compute
from autosched.device.correctness.special import assumed_finite
from autosched.ir.oracle.inputs import random_inputs
from autosched.ir.program import Program
from autosched.tiling.plans.plan import Plan


class Strict(Expected):
    """Where NaN must be is NaN, an infinity is that infinity, and other elements are numbers within their tolerance."""

    def difference(self, found: Mapping[str, Any]) -> str | None:
        for name, want in self.wanted.items():
            w, f = np.asarray(want).astype(np.float64), np.asarray(found[name]).astype(np.float64)
            near = self.tolerance[name]
            allowed = np.broadcast_to(0.0 if near is None else np.nan_to_num(near, nan=np.inf), w.shape)
            with np.errstate(invalid="ignore"):
                close = np.isfinite(w) & np.isfinite(f) & (abs(w - f) <= allowed)
            same = (np.isnan(w) & np.isnan(f)) | (w == f) | close
            if not same.all():
                at = tuple(int(i) for i in np.argwhere(~same)[0])
                return f"{name}{at} is {f[at]}, not {w[at]}; {np.count_nonzero(~same)} of {w.size} are wrong"
        return None


def spoiled(program: Program, places: Iterable[tuple[str, tuple[int, ...], float]], seed: int = 0) -> Strict:
    """Random inputs with these values in these places, and what the interpreter makes of them."""
    drawn = random_inputs(program, np.random.default_rng(seed))
    for name, at, value in places:
        drawn[name][at] = value
    oracle = compute(program, seed, inputs=drawn)
    return Strict(dict(oracle.inputs), dict(oracle.scalars), dict(oracle.wants), dict(oracle.tolerances))


def everywhere(program: Program, finite: frozenset[str], seed: int) -> Strict:
    """A NaN or an infinity at a random place of each float tensor that need not be finite."""
    rng = np.random.default_rng(seed)
    places = []
    for name in program.inputs:
        tensor = program.tensors[name]
        if name not in finite and tensor.dtype.is_float:
            at = tuple(int(rng.integers(n)) for n in tensor.extents)
            places.append((name, at, (np.nan, np.inf, -np.inf)[int(rng.integers(3))]))
    return spoiled(program, places, seed)


def wrong_row(plan: Plan, rows: Iterable[int], expected: Strict | None = None) -> str | None:
    """What is wrong with the first row of a plan that is; `expected` by default on `everywhere`."""
    expected = expected or everywhere(plan.program, assumed_finite(plan), 1)
    for row in rows:
        schedule = plan.space.schedule(row)
        if wrong := expected.difference(run_kernel(lower(plan, schedule), expected.arrays, expected.scalars)):
            return f"{plan.name}\n{schedule}\n{wrong}"
    return None
