"""Random sums of groups on GPUs that are added up as they are summed, down to printed kernels.

    python -m tests.fuzz.added --programs 100

Groups are written out, or come of a factor that `defer` takes from a sum. Those that are written out lie in any order
of dimensions, in batches and in groups of groups; what adds them up may have factors, functions and a start, or
something that forbids it: a guard, another reader, its own result, targets that iterations share. Axes have names of
the kernels' own variables, and what follows may write an operand. Each kernel runs in the interpreter, and is printed.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).resolve().parents[1])] if __name__ == "__main__" else []

from fuzz.narrow import ASKED, machine, narrow_text  # noqa: E402
from support.cards.block_chains import A100, CATALOGUE, H200, RTX  # noqa: E402
from support.cards.checked_kernels import wrong_interpreted  # noqa: E402
from support.fuzzing import Found, command, searched  # noqa: E402

from autosched.ir import parse  # noqa: E402
from autosched.search.tuning.tune import usable  # noqa: E402
from autosched.tiling.planner.plan_program import plan_program  # noqa: E402
from autosched.tiling.plans.plan import Plan  # noqa: E402

ROWS, PLANS = 3, 2
"""Looked at of a program: plans, and rows of each."""
MORE = {A100: "cuda/mma.m16n8k32.*", RTX: "cuda/mma.m16n8k32.*", H200: "cuda/wgmma.m64n64k*"}
FORBIDDEN = ("reader", "guard", "own", "less", "meets")


def added_text(seed: int) -> str:
    """A program."""
    r = Random(seed)
    if r.random() < 0.3:
        return narrow_text(seed)[0]
    m, n = r.choice([5, 16, 17, 64]), r.choice([8, 24, 33, 64])
    g, groups = r.choice([8, 16, 32, 40]), r.choice([1, 2, 3])
    t = r.choice(["f16", "bf16", "e4m3", "s8"])
    acc = "s32" if t == "s8" else "f32"
    batch, two, wrong = r.random() < 0.25, r.random() < 0.2, r.choice([*FORBIDDEN, *[""] * 12])
    outer = [("q", groups), *([("o", 2)] if two else []), ("i", m), ("j", n), *([("b", 2)] if batch else [])]
    r.shuffle(outer)
    at = ", ".join(name for name, _ in outer)
    place = f"(o * {groups} + q) * {g} + p" if two else f"q * {g} + p"
    k, b = g * groups * (2 if two else 1), "b, " if batch else ""
    across = r.random() < 0.5
    left, right = f"A[{b}i, {place}]", f"B[j, {place}]" if across else f"B[{place}, j]"
    part = f"P[{at}]"
    factors = ["R[i, q]", "S[q, j]", "T[q]", "S[q, j // 8]", "R[i, q] * S[q, j]"] + (["O[o]"] if two else [])
    value = r.choice([part, *[f"{part} * {f}" for f in factors], f"{r.choice(factors)} * {part}", f"{part} * {part}"])
    if acc == "f32" and r.random() < 0.2:
        value = f"exp({part} * 0.001) * R[i, q]"
    start = r.choice(["0", "0", "0", "D[j]", None])
    target = f"C[{b}i, j]" if wrong != "meets" else f"C[{b}i, {r.choice(['j // 2', 'j % 5', 'max(j, 3)'])}]"
    column = r.choice(["j", "j", "e", "jr", "warp", "v"])
    value = f"{value} * {target}" if wrong == "own" else value
    guard = f"if p < {g - 1}:\n                " if wrong == "guard" else ""
    shapes = {"A": f"{t}[{'2, ' * batch}{m}, {k}]", "B": f"{t}[{f'{n}, {k}' if across else f'{k}, {n}'}]",
              "R": f"{acc}[{m}, {groups}]", "S": f"{acc}[{groups}, {n}]", "T": f"{acc}[{groups}]", "O": f"{acc}[2]",
              "D": f"{acc}[{n}]"}  # fmt: skip
    used = {name: shape for name, shape in shapes.items() if f"{name}[" in f"{left} {right} {value} {start}"}
    given = [f"{name}: {shape}" for name, shape in used.items()]
    given += [f"C: {acc}[{'2, ' * batch}{m}, {n}]"] + ([f"X: {acc}[{m}, {n}]"] if wrong == "reader" else [])
    sizes = ", ".join(str(size) for _, size in outer)
    spatial = f"{'b, ' * batch}i, j in grid({'2, ' * batch}{m}, {n})"
    inner = f"o, q in grid(2, {groups})" if two else f"q in range({groups})"
    there = f"[{'0, ' * batch}x, y]"
    behind = f"    for x, y in grid({m}, {min(n, k)}):\n        A{there} = {t}(C{there})\n"
    added = (
        f"    for {spatial}:\n"
        + (f"        {target} = {start}\n" if start is not None else "")
        + f"        for {inner}:\n            {target} {'-=' if wrong == 'less' else '+='} {value}\n"
    )
    first = "".join("0, " if name not in "ij" else f"{name}, " for name, _ in outer)[:-2]
    return (
        f"def f({', '.join(given)}):\n    P: {acc}[{sizes}]\n"
        f"    for {at} in grid({sizes}):\n        {part} = 0\n        for p in range({g}):\n"
        f"            {guard}{part} += {acc}({left}) * {acc}({right})\n"
        + re.sub(r"\bj\b", column, added)
        + (f"    for i, j in grid({m}, {n}):\n        X[i, j] = P[{first}]\n" if wrong == "reader" else "")
        + (behind if r.random() < 0.15 and t != "e4m3" else "")
    )


def planned(seed: int) -> list[Plan]:
    """Plans of a program that add sums of groups up."""
    name = (A100, RTX, H200)[seed % 3]
    offered = usable(CATALOGUE, machine(name), "simulator", (*ASKED[name], MORE[name]))
    level = ("rescaled", "real")[seed // 3 % 2]
    found = plan_program(parse(added_text(seed)), machine(name), CATALOGUE, offered, numerics=level).every
    return [p for p in found if any(t.nest.groups for t in p.own_tensor_parts)][:PLANS]


def wrong_kernels(seed: int, count: Counter[str]) -> Iterator[str]:
    """What is wrong with kernels of a program."""
    plans = planned(seed)
    count["programs with groups"] += bool(plans)
    for plan in plans:
        for error in wrong_interpreted(plan, ROWS, seed, count):
            yield f"{added_text(seed)}{error}"


def search(first: int, programs: int, seconds: float = float("inf")) -> Found:
    return searched(wrong_kernels, first, programs, seconds)


if __name__ == "__main__":
    sys.exit(command(__doc__, search))
