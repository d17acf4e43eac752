"""Kernels of one instruction that overwrites its target, on a row of numbers; tests compare them with an oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autosched.codegen.c import print_c
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import parse
from autosched.machine.host import host_features

from ..match.computes import CATALOGUE
from ..plans import plans_of, this_machine
from .c_build import build, call, missing_features
from .native import compiled


def one_row(name: str) -> tuple[Kernel, dict[str, Any]]:
    """A kernel of the instruction on a row that ends within a vector, and numbers for it."""
    intrinsic = CATALOGUE[name]
    if missing := intrinsic.requires - host_features():
        pytest.skip(f"this machine lacks {', '.join(sorted(missing))}")
    size = 5 * intrinsic.accumulator.elements // 2 + 3
    term = next(line for line in str(intrinsic.program).splitlines() if "c[i] =" in line).strip()
    operands = ", ".join(f"{o.name}: {o.dtype}[{size}]" for o in intrinsic.operands.values())
    program = parse(f"def f({operands}):\n for i in range({size}):\n  {term}\n")
    plans = [p for p in plans_of(program, this_machine(), only=(name,)) if p.tensor_parts]
    kernel = lower(plans[0], plans[0].space.schedule(int(plans[0].space.sample(1, np.random.default_rng(0))[0])))
    assert {i.name for i in kernel.intrinsics} == {name}
    rng = np.random.default_rng(3)
    arrays = {o.name: extremes(o.dtype.numpy, size, rng) for o in intrinsic.inputs}
    bits = {o.name for o in intrinsic.inputs if o.dtype.bits == 1}
    return kernel, {n: a % 2 if n in bits else a for n, a in arrays.items()}


def extremes(dtype: Any, size: int, rng: np.random.Generator) -> Any:
    """Numbers of all bits, with a limit in every third place."""
    kind = np.dtype(dtype)
    whole = kind.kind in "iu"
    floats = [np.inf, -np.inf, 65519.0, 65520.0, 0.0, 1e-40, -6e-8]
    ends = [np.iinfo(kind).min, np.iinfo(kind).max, 0] if whole else floats
    found = np.frombuffer(rng.bytes(size * kind.itemsize), kind).copy()
    places = rng.integers(0, size, size // 3)
    with np.errstate(over="ignore"):
        found[places] = rng.choice(np.array([kind.type(end) for end in ends]), len(places))
    return found


def wrapped(values: Any, kind: Any) -> Any:
    bits = 8 * kind.itemsize
    return np.array([int(v) % (1 << bits) for v in values], np.uint64).astype(f"u{kind.itemsize}").view(kind)


def agrees(kernel: Kernel, arrays: dict[str, Any], wanted: Any, folder: Path) -> None:
    """As machine code and as exported C."""
    found = compiled(kernel)(**{n: x.copy() for n, x in arrays.items()})
    np.testing.assert_array_equal(found, wanted)
    if not missing_features(kernel):
        exported = call(build([print_c(kernel)], folder, "-O1"), kernel, arrays)
        np.testing.assert_array_equal(exported["c"], wanted)
