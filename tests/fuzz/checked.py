"""Searches for right kernels that the check of a candidate refuses: rows of plans of random programs on all data sets.

    python -m tests.fuzz.checked --programs 500          # in the loop-tree interpreter
    python -m tests.fuzz.checked --programs 50 --native  # on this machine's CPU
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).resolve().parents[1])] if __name__ == "__main__" else []

import numpy as np  # noqa: E402
from fuzz import choices, gathers, grouped, row_chains, rows, windows  # noqa: E402
from fuzz.cascades import cascade  # noqa: E402
from support.plans import leading, machine, plans_of, this_machine  # noqa: E402

from autosched.codegen.lower import lower  # noqa: E402
from autosched.device.correctness.oracle import slack  # noqa: E402
from autosched.device.cpu.device import CpuDevice  # noqa: E402
from autosched.device.simulator.verify.verify import Verifier  # noqa: E402
from autosched.errors import DataError  # noqa: E402
from autosched.ir import parse  # noqa: E402
from autosched.ir.program import Program  # noqa: E402
from autosched.tiling.candidate import Candidate  # noqa: E402

ROWS, PLANS = 2, 3


def product(seed: int) -> str:
    """A product of integers or floats with what stands behind it: scalars, a clamp, a scale, a choice, a maximum."""
    r = Random(seed)
    a, b, acc = r.choice([("u8", "s8", "s32"), ("s8", "s8", "s32"), ("s16", "s16", "s32"), ("f32", "f32", "f32"),
                          ("f16", "f16", "f32"), ("bf16", "bf16", "f32"), ("f16", "f16", "f16"), ("s32", "s32", "s32"),
                          ("u8", "u8", "s64"), ("e4m3", "e5m2", "f32")])  # fmt: skip
    m, n, k = r.choice([1, 2, 5, 9]), r.choice([1, 3, 16, 21]), r.choice([1, 7, 16, 33])
    size = r.choice(["f32", "f32", "f16"]) if acc.startswith("f") else "f32"
    real = f"{size}(T[i, j])" if acc != size else "T[i, j]"
    behind, out = r.choice([
        (f"{real} * g", size), (f"{real} * g + S[j]", size), (f"max({real} + S[j], {size}(0))", size),
        (f"sat_s8({real} * g)", "s8"), (f"sat_u8(round({real} / 3.0))", "u8"), (f"tanh({real} * S[j])", size),
        (f"{real} if s32(j) < c else S[j]", size), (f"{real} * sigmoid({real})", size),
        (f"{real} * rsqrt({real} * {real} + 0.001)", size), (f"log(abs({real}) + 1.0) - S[j]", size),
        (f"exp({real} / 64.0) * S[j]", size), (f"{real} / (S[j] * S[j] + 1.0)", size), (f"sqrt({real})", size),
        (f"min({real}, g) if {real} > S[j] else g", size),
    ])  # fmt: skip
    scalars = [f"{name}: {kind}" for name, kind in (("g", size), ("c", "s32")) if f" {name}" in behind + " "]
    head = ", ".join([f"A: {a}[m, l]", f"B: {b}[l, n]", f"S: {size}[n]", *scalars, f"Y: {out}[m, n]"])
    return (
        f"def f({head}, *, m={m}, n={n}, l={k}):\n    T: {acc}[m, n]\n"
        f"    for i, j in grid(m, n):\n        T[i, j] = 0\n"
        f"        for k in range(l):\n            T[i, j] += {acc}(A[i, k]) * {acc}(B[k, j])\n"
        f"    for i, j in grid(m, n):\n        Y[i, j] = {behind}\n"
    )


def functions(seed: int) -> str:
    """Functions of elements, scalars and sums, one inside another, in one type."""
    r = Random(seed)
    size = r.choice(["f32", "f32", "f32", "f16", "bf16", "f64"])

    def value(depth: int) -> str:
        if depth == 0 or r.random() < 0.1:
            return r.choice(["X[i, j]", "X[i, j]", "Z[j]", "g", f"{size}(0.5)", f"{size}(j)"])
        match r.randrange(5):
            case 0:
                return f"({value(depth - 1)} {r.choice('+-*/')} {value(depth - 1)})"
            case 1:
                return f"{r.choice(['min', 'max'])}({value(depth - 1)}, {value(depth - 1)})"
            case 2:
                test = f"{value(depth - 1)} {r.choice(['<', '<=', '>', '==', '!='])} {value(depth - 1)}"
                return f"({value(depth - 1)} if {test} else {value(depth - 1)})"
        names = ["exp", "log", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", "round", "floor", "abs"]
        return f"{r.choice(names)}({value(depth - 1)})"

    n, m = r.choice([1, 3, 5]), r.choice([1, 16, 19, 40])
    head = f"def f(X: {size}[n, l], Z: {size}[l], g: {size}, Y: {size}[n, l], S: {size}[n], *, n={n}, l={m}):\n"
    text = f"    for i, j in grid(n, l):\n        Y[i, j] = {value(3)}\n"
    op, start = r.choice([("+", "0"), ("max", "-inf"), ("min", "inf")])
    text += f"    for i in range(n):\n        S[i] = {start}\n        for j in range(l):\n            S[i] "
    term = value(2)
    return head + text + (f"+= {term}\n" if op == "+" else f"= {op}(S[i], {term})\n")


KINDS: tuple[Callable[[int], str | Program], ...] = (
    product, functions, product, functions, lambda seed: choices.Writer(seed).text, cascade, rows.program,
    row_chains.random_row_chain, gathers.random_gather, grouped.grouped_text, windows.random_chain,
)  # fmt: skip


def drawn(seed: int) -> Program:
    """The program of a number."""
    made = KINDS[seed % len(KINDS)](seed // len(KINDS))
    return parse(made) if isinstance(made, str) else made


def refused(program: Program, seed: int, native: bool, count: Counter[str]) -> Iterator[str]:
    """What the check says of kernels of a program, where it refuses one."""
    plans = leading(plans_of(program, this_machine() if native else machine()), PLANS)
    device = CpuDevice(program, this_machine(), seed=seed) if native else None
    try:
        for plan in plans:
            for row in plan.space.sample(ROWS, np.random.default_rng(seed)).tolist():
                count["kernels"] += 1
                if device is not None:
                    found = device.measure(device.build(Candidate(plan, row)))
                    count["sets left out"] += len(found.extra.get("not_checked", ()))
                    said = "" if found.ok else f"{found.status}: {found.message}"
                else:
                    kernel = lower(plan, plan.space.schedule(row))
                    one = Verifier(seed)._checked(kernel, program, plan, slack(plan))
                    said = "" if one.ok else str(one)
                if said:
                    yield f"{plan.name}#{row}: {said}"
    finally:
        if device is not None:
            device.close()


def search(
    first: int, programs: int, seconds: float = math.inf, native: bool = False
) -> tuple[Counter[str], list[str]]:
    """Counts, and what was refused of programs from number `first` on."""
    count, wrong, begun = Counter[str](), list[str](), time.monotonic()
    for seed in range(first, first + programs):
        if time.monotonic() - begun > seconds:
            break
        program = drawn(seed)
        count["programs"] += 1
        try:
            found = list(refused(program, seed % 3, native, count))
        except DataError:
            count["data outside"] += 1
            continue
        except Exception:
            found = [traceback.format_exc(limit=-4)]
        for said in found:
            wrong.append(f"program {seed}: {said}\n{program}")
            print(wrong[-1], flush=True)
    return count, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=math.inf, help="time after which it stops")
    parser.add_argument("--native", action="store_true", help="on this machine's CPU")
    asked = parser.parse_args()
    count, wrong = search(asked.first, asked.programs, asked.seconds, asked.native)
    print(dict(count))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
