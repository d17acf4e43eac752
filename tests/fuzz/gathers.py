"""Programs that read rows and elements at indices from data, some the same for groups of neighbours, under conditions
on data, some of which keep an index inside its tensor."""

from __future__ import annotations

import random

import numpy as np

from autosched.ir import parse, random_inputs
from autosched.ir.program import Program

FAR = 1 << 29
"""An index that no read survives."""


def random_gather(seed: int) -> Program:
    """A stage of one read by data: elementwise, or a sum over rows or columns."""
    rng = random.Random(seed)
    n, m = rng.choice([16, 24, 33]), rng.choice([8, 16, 17])
    along, other = rng.sample(["p", "j"], 2)
    place = rng.choice([f"I[{along}]", f"I[{along} // 4]", f"I[{along} // 16]", f"I[K[{along}]]"])
    read = rng.choice([f"D[{place}, {other}]", f"V[{place}]"])
    condition = rng.choice(["M[p] != 0", "M[p] != 0 and N[j] > 0", "N[j] > 0", "M[p] != 0 and V[I[p]] > 0"])
    guard, indent = (f"if {condition}:\n", "    ") if rng.random() < 0.5 else ("", "")
    kind = rng.choice(["element", "choice", "nested", "rows", "columns"])
    text = {
        "element": f"    for p, j in grid({n}, {m}):\n        Y[p, j] = {read} * X[p, j]\n",
        "choice": f"    for p, j in grid({n}, {m}):\n        Y[p, j] = {read} if {condition} else X[p, j]\n",
        "nested": f"    for p, j in grid({n}, {m}):\n        Y[p, j] = X[p, j]\n        if M[p] != 0:\n"
        f"            if V[{place}] > 0:\n                Y[p, j] += {read}\n",
        "rows": f"    for p in range({n}):\n        Y[p] = 0\n        for j in range({m}):\n            {guard}"
        f"            {indent}Y[p] += {read} * X[p, j]\n",
        "columns": f"    for j in range({m}):\n        Y[j] = 0\n        for p in range({n}):\n            {guard}"
        f"            {indent}Y[j] += {read} * X[p, j]\n",
    }[kind]
    shape = {"rows": f"{n}", "columns": f"{m}"}.get(kind, f"{n}, {m}")
    size = max(n, m)
    head = f"X: f32[{n}, {m}], D: f32[40, {size}], V: f32[40], I: s32[{size}], K: s32[{size}], M: s32[{n}], N: s32[{m}]"
    assumed = f"    assume(0 <= I <= 39)\n    assume(0 <= K <= {size - 1})\n"
    return parse(f"def f({head}, Y: f32[{shape}]):\n{assumed}{text}", filename="f.py")


GUARDED = """
def f(M: s32[16], I: s32[64], F: s32[32], X: f32[16, 64], Y: f32[16]):
    for p in range(16):
        Y[p] = 0
        for i in range(64):
            if M[p] != 0:
                if F[I[i]] != 0:
                    Y[p] += X[p, i]
"""
"""Where the first condition fails, the second one's index may be anywhere."""


def guarded_far_away() -> tuple[Program, dict[str, np.ndarray]]:
    """That program with data for which nothing may be read by `I`."""
    program = parse(GUARDED, filename="f.py")
    data = random_inputs(program, np.random.default_rng(0))
    data["M"][:], data["I"][:] = 0, FAR
    return program, data


_ROW = "M: u8[33], X: f32[8], I: s32[33], Y: f32[33]"
_MATRIX = "M: u8[33], X: f32[8], I: s32[9], Y: f32[9, 33]"
_GUARDED: dict[str, tuple[str, str]] = {
    "guard": (_ROW, "for p in range(33):\n        if M[p] != 0:\n            Y[p] += X[I[p]]"),
    "choice": (_ROW, "for p in range(33):\n        Y[p] = X[I[p]] if M[p] != 0 else 1.0"),
    "choice in a choice": (
        _ROW,
        "for p in range(33):\n        Y[p] = (X[I[p]] if X[I[p]] > 0.0 else 3.0) if M[p] != 0 else 1.0",
    ),
    "and": (_ROW, "for p in range(33):\n        Y[p] = 2.0 if M[p] != 0 and X[I[p]] > 0.0 else 1.0"),
    "or": (_ROW, "for p in range(33):\n        if not (M[p] == 0 or X[I[p]] > 0.0):\n            Y[p] += 1.0"),
    "shared, choice": (_MATRIX, "for i, p in grid(9, 33):\n        Y[i, p] = X[I[i]] if M[p] != 0 else 1.0"),
    "shared, and": (
        _MATRIX,
        "for i, p in grid(9, 33):\n        Y[i, p] = 2.0 if M[p] != 0 and X[I[i]] > 0.0 else 1.0",
    ),
    "shared, guard": (
        _MATRIX,
        "for i, p in grid(9, 33):\n        if M[p] != 0:\n            Y[i, p] += X[I[i]]",
    ),
    "shared, axes": (_MATRIX, "for i, p in grid(9, 33):\n        if p < 4 * i - 4:\n            Y[i, p] += X[I[i]]"),
    "shared, axes, choice": (
        _MATRIX,
        "for i, p in grid(9, 33):\n        Y[i, p] = X[I[i]] if p < 4 * i - 4 else 1.0",
    ),
}
GUARDED_READS = tuple(_GUARDED)
"""Reads by data that a guard, a choice or an earlier condition rules out, of each lane and shared by all."""


def guarded_read(name: str) -> tuple[Program, dict[str, np.ndarray]]:
    """The program with data whose index is far away exactly where nothing may be read by it."""
    head, text = _GUARDED[name]
    program = parse(f"def f({head}):\n    {text}\n", filename="f.py")
    data = random_inputs(program, np.random.default_rng(0))
    data["M"], data["I"] = np.arange(33, dtype=np.uint8) % 3 % 2, data["I"] % 8
    if name.startswith("shared, axes"):
        data["I"][:2] = FAR  # rows 0 and 1 have no term
    elif name.startswith("shared"):
        data["M"][:], data["I"][:] = 0, FAR
    else:
        data["I"][data["M"] == 0] = FAR
    return program, data
