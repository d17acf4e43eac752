"""Random products with operands of few bits on GPUs, whose operands blocks compute on the way, down to printed kernels.

    python -m tests.fuzz.narrow --programs 100

Weights have 4 or 8 bits, with or without zero points and scales, of rows, columns or groups, in any order of
dimensions; activations are f32, f16 or bf16. Each kernel runs in the interpreter, and is printed.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).resolve().parents[1])] if __name__ == "__main__" else []

from support.cards.block_chains import A100, CATALOGUE, H200, RTX  # noqa: E402
from support.cards.checked_kernels import wrong_interpreted  # noqa: E402
from support.fuzzing import Found, command, searched  # noqa: E402

from autosched.ir import parse  # noqa: E402
from autosched.machine.catalogue import load_target  # noqa: E402
from autosched.machine.target import Target  # noqa: E402
from autosched.search.tuning.tune import usable  # noqa: E402
from autosched.tensorize.adapters.operand_types import multiplies_matrices  # noqa: E402
from autosched.tiling.planner.plan_program import plan_program  # noqa: E402
from autosched.tiling.plans.plan import Plan  # noqa: E402

ROWS, PLANS = 2, 2
"""Looked at of a program: plans, and rows of each."""
ASKED = {
    A100: ("cuda/mma.m16n8k16.*", "cuda/mma.m16n8k8.tf32*", "cuda/fma.f32.v4"),
    RTX: ("cuda/mma.m16n8k*", "cuda/wmma.m16n16k16.*", "cuda/fma.f32.v1"),
    H200: ("cuda/wgmma.m64n16k*", "cuda/mma.m16n8k16.*", "cuda/fma.f32.v4"),
}


@cache
def machine(name: str) -> Target:
    return dataclasses.replace(load_target(name), cores=3)


def narrow_text(seed: int) -> tuple[str, str]:
    """A program, and the types of its activations and weights."""
    r = Random(seed)
    m, n, g = r.choice([1, 5, 16, 17]), r.choice([8, 24, 33]), r.choice([8, 16, 32])
    k = g * r.choice([1, 2, 3]) - r.choice([0, 0, 0, 3])
    kg = -(-k // g)
    t, w, s = r.choice(["f32", "f16", "bf16"]), r.choice(["u4", "s4", "u8", "s8", "e4m3", "e2m1"]), r.choice(
        ["f32", "f16", "e4m3", "e8m0"])  # fmt: skip
    packed = w in ("u4", "e2m1") and k % 2 == 0 and r.random() < 0.4
    across = not packed and r.random() < 0.3  # weights of a column are neighbours
    weight = f"f32(W[{'j, p' if across else 'p, j'}])"
    if packed:
        bits = "u4(W[p // 2, j] >> u8(p % 2 * 4))"
        weight = f"f32({'bits_e2m1(' + bits + ')' if w == 'e2m1' else bits})"
    zero = w in ("u4", "u8", "s8") and r.random() < 0.5
    if zero:
        weight = f"({weight} - f32(Z[p // {g}, j]))"
    scale = r.choice(["", f"f32(S[p // {g}, j])", f"f32(S[p // {g}, j])", "f32(C[j])", f"f32(R[i, p // {g}])"])
    side = f"({weight} * {scale})" if scale and "R" not in scale else weight
    if r.random() < 0.3 and t != "f32" and "R" not in scale:
        side = f"f32({t}({side}))"  # as kernels of libraries round it
    x = "f32(X[i, p])" if t != "f32" else "X[i, p]"
    term = f"{x} * {side}" if "R" not in scale else f"{x} * {side} * {scale}"
    shapes = {
        "W": f"{'u8' if packed else w}[{f'{n}, {k}' if across else f'{k // 2 if packed else k}, {n}'}]",
        "Z": f"{w}[{kg}, {n}]", "S": f"{s}[{kg}, {n}]", "C": f"{s}[{n}]", "R": f"{s}[{m}, {kg}]",
    }  # fmt: skip
    given = [f"{name}: const[{shape}]" for name, shape in shapes.items() if f"{name}[" in term]
    start = r.choice(["0", "0", "B[j]"])
    given += [f"B: f32[{n}]"] if start != "0" else []
    text = (
        f"def f(X: {t}[{m}, {k}], {', '.join(given)}, Y: f32[{m}, {n}]):\n    for i, j in grid({m}, {n}):\n"
        f"        Y[i, j] = {start}\n        for p in range({k}):\n            Y[i, j] += {term}\n"
    )
    return text, f"{t} x {w}"


def planned(seed: int) -> list[Plan]:
    """Plans of a program with operands that blocks compute, those on instructions that multiply matrices first."""
    name = (A100, RTX, H200)[seed % 3]
    program = parse(narrow_text(seed)[0])
    offered = usable(CATALOGUE, machine(name), "simulator", ASKED[name])
    level = ("rescaled", "real")[seed // 3 % 2]
    found = plan_program(program, machine(name), CATALOGUE, offered, numerics=level).every
    on_the_way = [p for p in found if any(t.nest.computed for t in p.tensor_parts)]
    on_the_way.sort(key=lambda p: not any(multiplies_matrices(m.intrinsic) for m in p.mappings))
    return on_the_way[:PLANS]


def wrong_kernels(seed: int, count: Counter[str]) -> Iterator[str]:
    """What is wrong with kernels of a program."""
    for plan in planned(seed):
        count["matrices"] += any(multiplies_matrices(m.intrinsic) for m in plan.mappings)
        for error in wrong_interpreted(plan, ROWS, seed, count):
            yield f"{narrow_text(seed)[0]}{error}"


def search(first: int, programs: int, seconds: float = float("inf")) -> Found:
    return searched(wrong_kernels, first, programs, seconds)


if __name__ == "__main__":
    sys.exit(command(__doc__, search))
