"""Random products of a factor with more digits than registers of matrices take: sums of summands of a narrower type.

    python -m tests.fuzz.digits --programs 500

Products alone, on data with infinities and NaN in the wide factor, and passes of attention under masks, whose blocks
are computed whole. Each kernel runs in the interpreter, and as machine code where this machine has the instructions.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])] if __name__ == "__main__" else []

import numpy as np  # noqa: E402
from support.compiled.native import compiled  # noqa: E402
from support.fuzzing import Found, command, searched  # noqa: E402
from support.match.agreement import Expected, expect  # noqa: E402
from support.programs.matrices import FEATURES, target  # noqa: E402

from autosched.codegen.interpret.interpreter import run_kernel  # noqa: E402
from autosched.codegen.lower import lower  # noqa: E402
from autosched.ir import parse, run, workload  # noqa: E402
from autosched.ir.program import Program  # noqa: E402
from autosched.machine.host import host_features  # noqa: E402
from autosched.numerics_levels import DEFAULT_NUMERICS  # noqa: E402
from autosched.search.tuning.tune import usable  # noqa: E402
from autosched.tensorize.adapters.summands import is_summands  # noqa: E402
from autosched.tensorize.spec.catalogue import Catalogue  # noqa: E402
from autosched.tiling.planner.plan_program import plan_program  # noqa: E402
from autosched.tiling.plans.plan import Part, Plan, TileLoopsPart  # noqa: E402

PLANS, ROWS = 2, 2
"""Looked at of a program: plans, and rows of each."""
PASSES = 3
"""One in so many programs is a pass."""
SPECIAL = (np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 0.0, -0.0, 1e-30)


def product_text(seed: int) -> str:
    """A product whose left or right factor is wide, stored in some order, with an epilogue or a start, or neither."""
    rng = random.Random(seed)
    m, n, k = (rng.choice(c) for c in ((1, 15, 16, 35, 48), (16, 33, 64), (32, 33, 64, 70, 96)))
    a, b = rng.choice((("f32", "bf16"), ("bf16", "f32")))
    left = rng.choice((("A: {a}[m, k]", "A[i, p]"), ("A: {a}[k, m]", "A[p, i]")))
    right = rng.choice((("B: {b}[k, n]", "B[p, j]"), ("B: {b}[n, k]", "B[j, p]")))
    start = rng.choice(("0", "0", "1.5"))
    behind = rng.choice(("", "    for i, j in grid(m, n):\n        C[i, j] = max(C[i, j], 0.0)\n"))
    return f"""
def digits({left[0].format(a=a)}, {right[0].format(b=b)}, C: f32[m, n], *, m={m}, n={n}, k={k}):
    for i, j in grid(m, n):
        C[i, j] = {start}
        for p in range(k):
            C[i, j] += f32({left[1]}) * f32({right[1]})
{behind}"""


def pass_of(seed: int) -> Program:
    """Attention, full or under a mask, of odd or whole sizes."""
    rng = random.Random(seed)
    n, keys = rng.choice(((64, 64), (64, 96), (96, 96)))
    mask = rng.choice(("full", "causal", "causal", "window"))
    extra = {"window": 20} if mask == "window" else {}
    return workload("attention", mask=mask, h=1, n=n, l=keys, d=rng.choice((16, 32)), t="bf16", **extra)


def plans_of_summands(program: Program, numerics: str = DEFAULT_NUMERICS) -> tuple[Plan, ...]:
    """The plans that tuning lays out, with the instructions that matter here."""
    catalogue, names = Catalogue.builtin(), ("x86/tdpbf16ps", "x86/vfmadd.f32.zmm", "x86/exp.f32")
    found = usable(catalogue, target(), "cpu", None)
    fitting = [i for i in found if i.name in names]
    return plan_program(program, target(), catalogue, fitting, numerics=numerics).plans


def summed(parts: tuple[Part, ...]) -> bool:
    """Whether a product is on summands, in tile loops or outside."""
    inside = (summed(p.member.parts) for p in parts if isinstance(p, TileLoopsPart))
    own = (a for p in parts if hasattr(p, "nest") for a in p.nest.mapping.adapters)
    return any(map(is_summands, own)) or any(inside)


def spoiled(program: Program, expected: Expected, seed: int) -> Mapping[str, Any]:
    """The inputs with special values in a row of the wide factor."""
    rng = np.random.default_rng(seed)
    arrays = {n: a.copy() for n, a in expected.arrays.items()}
    for name in program.inputs:
        if program.tensors[name].dtype.name == "f32":
            arrays[name].flat[rng.integers(arrays[name].size, size=len(SPECIAL))] = SPECIAL
        else:
            arrays[name][arrays[name] == 0] = 1
    return arrays


def not_numbers_differ(got: Any, want: Any) -> bool:
    """Whether infinities or NaN are elsewhere."""
    a, b = np.asarray(got, np.float64), np.asarray(want, np.float64)
    return not (np.array_equal(np.isnan(a), np.isnan(b)) and np.array_equal(a[np.isinf(b)], b[np.isinf(b)]))


def wrong_kernels(seed: int, count: Counter[str]) -> Iterator[str]:
    """What is wrong with kernels of a program."""
    alone = bool(seed % PASSES)
    program = parse(product_text(seed)) if alone else pass_of(seed)
    expected, native = expect(program, seed), host_features() >= {"amx_tile", "amx_bf16"} & FEATURES
    found = [p for p in plans_of_summands(program) if summed(p.parts)]
    count["none"] += not found
    for plan in found[:PLANS]:
        for row in map(int, plan.space.sample(ROWS, np.random.default_rng(seed))):
            kernel = lower(plan, plan.space.schedule(row))
            yield from (f"{program}{kernel.schedule}: {w}" for w in _wrong(plan, kernel, expected, seed, alone, native))
            count["kernels"] += 1


def _wrong(plan: Plan, kernel: Any, expected: Expected, seed: int, alone: bool, native: bool) -> Iterator[str]:
    program = kernel.program

    def computed(arrays: Mapping[str, Any], machine: bool) -> dict[str, Any]:
        if not machine:
            return dict(run_kernel(kernel, dict(arrays), expected.scalars))
        result = compiled(kernel)(**{n: a.copy() for n, a in arrays.items()} | expected.scalars)
        return dict(zip(program.outputs, result if isinstance(result, tuple) else (result,), strict=True))

    for machine in (False, True)[: 1 + native]:
        where = "as machine code" if machine else "interpreted"
        if said := expected.difference(computed(expected.arrays, machine)):
            yield f"{where}: {said}"
        if alone:
            arrays = spoiled(program, expected, seed)
            with np.errstate(all="ignore"):
                want = {n: run(program, dict(arrays))[n] for n in program.outputs}
            got = computed(arrays, machine)
            if any(not_numbers_differ(got[n], want[n]) for n in want):
                yield f"{where}: infinities or NaN are elsewhere"


def search(first: int, programs: int, seconds: float = float("inf")) -> Found:
    """Counts, and what was wrong with programs from number `first` on."""
    return searched(wrong_kernels, first, programs, seconds)


if __name__ == "__main__":
    sys.exit(command(__doc__, search))
