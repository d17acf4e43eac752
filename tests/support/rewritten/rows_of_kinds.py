"""Random data whose rows are of a kind that hurts: all masked, one finite element, greatest values, denormals, …"""

from __future__ import annotations

from typing import Any

import numpy as np

from autosched.ir.program import Program

Arrays = dict[str, np.ndarray]
HARD = ("none", "one", "greatest", "denormal", "ties", "nan", "infinite", "wide", "rising", "falling", "offset",
        "masked by a number", "zeros", "opposite")  # fmt: skip


def inputs(before: Program, kind: str, seed: int) -> Arrays:
    """Random data; the first or the second tensor of the floats has rows of a kind."""
    rng = np.random.default_rng(seed)
    special = ("X", "Y", "V", "X")[seed % 4]
    data: Arrays = {}
    for name in before.inputs:
        tensor = before.tensors[name]
        shape = tensor.extents
        if not tensor.dtype.is_float:
            highest = {"I": shape[0] - 1, "L": 4}.get(name, 1)
            data[name] = rng.integers(0, highest + 1, shape).astype(tensor.dtype.numpy)
            continue
        drawn = rng.normal(size=shape) * 2
        with np.errstate(all="ignore"):
            data[name] = _special(kind if name in ("X", special) else "random", drawn, rng, tensor.dtype.numpy)
    return data


def _special(kind: str, drawn: np.ndarray, rng: np.random.Generator, dtype: Any) -> np.ndarray:
    greatest = float(np.finfo(dtype).max)
    rows = drawn.reshape(-1, drawn.shape[-1])
    place = rng.integers(0, rows.shape[1], rows.shape[0])
    each = np.arange(len(rows))
    match kind:
        case "none":
            rows[:] = -np.inf
        case "one":
            kept = rows[each, place]
            rows[:] = -np.inf
            rows[each, place] = kept
        case "greatest":
            rows[:] = np.where(rows > 0, greatest, -greatest)
        case "denormal":
            rows *= float(np.finfo(dtype).smallest_subnormal) * 50
        case "ties":
            rows[:] = np.round(rows / 2)
        case "nan":
            rows[each, place] = np.nan
        case "infinite":
            rows[each, place] = np.inf
        case "wide":
            rows *= 30
        case "rising":
            rows.sort(1)
        case "falling":
            rows[:] = np.sort(rows, 1)[:, ::-1]
        case "offset":
            rows += 3000
        case "masked by a number":
            rows[rows > 0] = -10000 if dtype == np.float16 else -1e30
        case "zeros":
            rows[:] = np.where(rows > 0, 0.0, -0.0)
        case "opposite":
            rows[:] = np.where(rows > 1, np.inf, np.where(rows < -1, -np.inf, rows))
    return rows.reshape(drawn.shape).astype(dtype)
