"""The programs of `tests/rewrites`: what each says is expected of it, and data to run it with.

A file's first line says what the program is. Then come, each in a comment, `one pass:` (stages, numerics, factors),
`refused:` (stage, code), the same `at real`, or `no cascade`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from support.paths import TESTS
from support.rewritten.oracle import Arrays

import autosched
from autosched import ir
from autosched.ir.program import Program
from autosched.ir.rewrites.verdict import RewriteVerdict

FOLDER = TESTS / "rewrites"
KINDS = ("random", "none", "one", "greatest", "denormal", "ties", "nan", "infinite", "wide")


@dataclass(frozen=True)
class Case:
    """`accepted` and `refused` are what the header says, by level."""

    path: Path
    text: str
    accepted: dict[str, list[dict[str, Any]]]
    refused: dict[str, list[dict[str, Any]]]

    def __str__(self) -> str:
        return self.path.stem

    def program(self, **sizes: int) -> Program:
        return ir.parse(self.text, sizes=dict(sizes))


def cases() -> list[Case]:
    return [_read(p) for p in sorted(FOLDER.rglob("*.py"))]


def _read(path: Path) -> Case:
    text = path.read_text(encoding="utf-8")
    accepted: dict[str, list[dict[str, Any]]] = {"rescaled": []}
    refused: dict[str, list[dict[str, Any]]] = {"rescaled": []}
    none = False
    for line in text.splitlines()[1:]:
        if not line.startswith("# "):
            break
        key, _, value = line.removeprefix("# ").partition(": ")
        level = "real" if key.startswith("at real, ") else "rescaled"
        none = none or key == "no cascade"
        if key.endswith("one pass"):
            accepted.setdefault(level, []).append(yaml.safe_load(value))
        elif key.endswith("refused"):
            refused.setdefault(level, []).append(yaml.safe_load(value))
    assert none or accepted["rescaled"] or refused["rescaled"], path
    if "real" not in accepted and "real" not in refused:
        accepted["real"], refused["real"] = accepted["rescaled"], refused["rescaled"]
    return Case(path, text, accepted, refused)


def one_pass(
    program: Program, numerics: str = "rescaled", block: int = 5, parts: int = 1, tile: int | None = None
) -> list[RewriteVerdict]:
    found = autosched.rewrites(program, numerics=numerics, block=block, parts=parts, tile=tile)
    return [v for v in found if v.name == "online"]


def told(found: RewriteVerdict) -> dict[str, Any]:
    """A verdict as a header states it."""
    if found.reason is not None:
        return {"stage": found.reason.stage, "code": found.reason.code}
    said: dict[str, Any] = {"stages": " ".join(found.stages), "numerics": found.numerics, "factors": found.rescale}
    if found.deferred:
        said["deferred"] = " ".join(found.deferred)
    if found.conditions:
        said["conditions"] = list(found.conditions)
    return said


def masked(found: RewriteVerdict) -> bool:
    """Whether elements that a mask leaves out are taken to be finite."""
    return any("taken to be finite" in b for b in found.because)


def inputs(program: Program, kind: str, seed: int = 0, at: int = 0) -> Arrays:
    """Random elements; those of the float input number `at` (from the first or, negative, from the last on) are of a
    kind, as the scores of a row may be."""
    rng = np.random.default_rng(seed)
    data: Arrays = {}
    floats = [n for n in program.inputs if program.tensors[n].dtype.is_float]
    for name in program.inputs:
        tensor = program.tensors[name]
        if tensor.dtype.is_float:
            drawn = rng.normal(size=tensor.extents) * 2
            special = floats and name == floats[min(at, len(floats) - 1)]
            with np.errstate(over="ignore"):
                data[name] = _special(kind if special else "random", drawn, rng).astype(tensor.dtype.numpy)
        elif name == "F":
            length = max(program.tensors["S"].extents[1], 0)
            data[name] = np.sort(rng.integers(0, length + 1, tensor.extents)).astype(tensor.dtype.numpy)
        else:
            data[name] = rng.integers(0, 2, tensor.extents).astype(tensor.dtype.numpy)
    return data


def _special(kind: str, drawn: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if not drawn.size:
        return drawn
    greatest = float(np.finfo(np.float32).max)
    rows = drawn.reshape(drawn.shape[0], -1)
    place = rng.integers(0, rows.shape[1], rows.shape[0])
    match kind:
        case "none":
            rows[:] = -np.inf
        case "one":
            kept = rows[0, place[0]]
            rows[:] = -np.inf
            rows[np.arange(len(rows)), place] = kept
        case "greatest":
            rows[:] = np.where(rows > 0, greatest, -greatest)
        case "denormal":
            rows *= 1e-40
        case "ties":
            rows[:] = np.round(rows)
        case "nan":
            rows[np.arange(len(rows)), place] = np.nan
        case "infinite":
            rows[np.arange(len(rows)), place] = np.inf
        case "wide":
            rows *= 30
    return rows.reshape(drawn.shape)


def scalars(program: Program, value: float = 0.5) -> dict[str, Any]:
    return {n: s.dtype.numpy(value) for n, s in program.scalars.items()}
