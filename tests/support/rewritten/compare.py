"""`differences`: where a rewritten program is farther from the one it came from than its certificate says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from support.rewritten.agreement import exact_where_the_program_overflows
from support.rewritten.oracle import Arrays, bound, exact, extent, run

from autosched.ir.program import Program
from autosched.ir.rewrites.verdict import RewriteVerdict

SLACK = 2.0**-140
"""What underflows leave, relative to the greatest element."""


def differences(
    before: Program, found: RewriteVerdict, data: Arrays, scalars: Mapping[str, Any], block: int, gentle: bool
) -> list[str]:
    """Members and outputs that are wrong, in words; `gentle` data is such that nothing cancels or overflows."""
    assert found.after is not None
    expected, got = run(before, data, scalars), run(found.after, data, scalars)
    members = [s for s in before.stages if s.name in found.stages]
    wrong: list[str] = []
    if found.numerics == "real":
        apart = (n for n in before.outputs if not np.allclose(got[n], expected[n], rtol=2e-2, atol=2e-2))
        return [f"{n} is {got[n]!r}, not {expected[n]!r}" for n in apart] if gentle else []
    for stage in members:
        name = stage.assign.tensor
        mine, theirs = (np.asarray(a[name], np.float64) for a in (got, expected))
        if found.numerics != "bitwise":
            better = exact_where_the_program_overflows(before, name, data, scalars, mine, theirs)
            theirs = np.where(better, mine, theirs)
            if better.any():
                return []  # what reads it is no number in the program
        if not np.array_equal(np.isnan(mine), np.isnan(theirs)):
            wrong.append(f"{name} is no number elsewhere: {mine}, not {theirs}")
        elif not np.array_equal(mine[np.isinf(theirs)], theirs[np.isinf(theirs)]):
            wrong.append(f"{name} is infinite elsewhere: {mine}, not {theirs}")
        elif found.numerics == "bitwise" and not np.array_equal(mine, theirs, equal_nan=True):
            wrong.append(f"{name} differs")
        elif stage.assign.op in ("max=", "min=") and not np.allclose(mine, theirs, 1e-5, 1e-5, equal_nan=True):
            wrong.append(f"{name} is {mine}, not {theirs}")
        elif stage.assign.op in ("+=", "-=") and found.error is not None:
            wrong += _beyond(before, found, name, data, scalars, expected, got, block)
    for name in before.outputs:
        if not np.array_equal(np.isnan(got[name]), np.isnan(expected[name])):
            wrong.append(f"output {name} is no number elsewhere")
        elif gentle and not _near(got[name], expected[name], 1e-4, 1e-4):
            wrong.append(f"output {name} is {got[name]}, not {expected[name]}")
    return wrong


def _beyond(before: Program, found: RewriteVerdict, name: str, data: Arrays, scalars: Mapping[str, Any],
            expected: Arrays, got: Arrays, block: int) -> list[str]:  # fmt: skip
    summed = [s.assign.tensor for s in before.stages if s.name in found.stages and s.assign.op in ("+=", "-=")]
    if any(np.isinf(expected[n]).any() or (np.abs(expected[n]) > 1e30).any() for n in summed):
        return []  # what overflows on the way is far from exact arithmetic in both
    if any(np.abs(np.asarray(a, np.float64)[np.isfinite(a)]).max(initial=0) > 1e9 for a in data.values()):
        return []  # f64 is not exact arithmetic where a logarithm is added to such numbers
    with np.errstate(all="ignore"):
        total, distance = exact(before, found, name, data, scalars, expected)
        terms, length = extent(before, found, name)
        relative = bound(found, terms, -(-length // block), distance)
        finite = np.isfinite(total.value) & np.isfinite(np.asarray(expected[name], np.float64))
        top = max((float(np.abs(np.asarray(a, np.float64)[np.isfinite(np.asarray(a, np.float64))]).max(initial=0))
                   for a in data.values()), default=0.0)  # fmt: skip
        allowed = relative * total.size + SLACK * (1 + top) * (terms + 1)
        # The bound is for the results that a member reads as they were computed: their errors reach the program's, too.
        allowed = allowed + 2 * np.where(finite, np.abs(np.asarray(expected[name], np.float64) - total.value), 0)
        off = np.abs(np.asarray(got[name], np.float64) - total.value)
        if not (finite & ~(off <= allowed)).any():
            return []
        worst = np.unravel_index(np.argmax(np.where(finite, off / np.maximum(allowed, 1e-300), 0)), off.shape)
        at = f"{name}[{', '.join(map(str, worst))}]"
    return [f"{at} is off by {off[worst]:.3g}, allowed {allowed[worst]:.3g}: x {distance}"]


def _near(a: np.ndarray, b: np.ndarray, relative: float, absolute: float) -> bool:
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    with np.errstate(all="ignore"):
        top = np.abs(b[np.isfinite(b)]).max(initial=0.0)
        return bool(np.allclose(a, b, rtol=relative, atol=absolute * min(top, 1.0), equal_nan=True))
