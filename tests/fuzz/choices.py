"""Searches for wrong numbers in exported C of elementwise programs: choices on data and on axes around reads, some of
which keep a read inside its tensor, and conversions between all types, in lanes.

    python -m tests.fuzz.choices --programs 500

Kernels run beside closed memory, once before and once behind it, and are compared with the loop-tree interpreter.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])] if __name__ == "__main__" else []

import numpy as np  # noqa: E402
from support.compiled.c_build import build, call, missing_features  # noqa: E402
from support.compiled.fenced import before_the_fence, behind_the_fence  # noqa: E402
from support.plans import machine, plans_of, this_machine  # noqa: E402
from support.programs.value_cases import corners, differing  # noqa: E402

from autosched.codegen.c import print_c  # noqa: E402
from autosched.codegen.interpret.interpreter import run_kernel  # noqa: E402
from autosched.codegen.lower import lower  # noqa: E402
from autosched.codegen.tree.kernel import Kernel  # noqa: E402
from autosched.ir import parse  # noqa: E402
from autosched.ir.dtypes import DTYPES, DType  # noqa: E402
from autosched.ir.program import Program  # noqa: E402

TYPES = ("f32", "f32", "f32", "s32", "u8", "s8", "u4", "s4", "e2m1", "e4m3", "e5m2", "e4m3fnuz", "bf16", "f16", "s16")
ROWS, BATCH = 2, 6


class Writer:
    """Draws one program; `text` is it."""

    def __init__(self, seed: int) -> None:
        self.random = r = Random(seed)
        self.n, self.m = r.randint(2, 5), r.choice([16, 17, 31, 33, 48, 70])
        self.types = {name: r.choice(TYPES) for name in "XUV"}
        of, self.out = r.choice(TYPES), r.choice(TYPES)
        body = [f"        Y[i, j] = {self.cast(self.value(of, 3), of, self.out)}"]
        x, u, v = (self.types[name] for name in "XUV")
        head = f"X: {x}[{self.n}, {self.m}], U: {u}[{self.m}], V: {v}[{self.n}], L: s32[{self.n}], N: s32[{self.m}]"
        lines = [f"def f({head}, Y: {self.out}[{self.n}, {self.m}]):", f"    for i, j in grid({self.n}, {self.m}):"]
        self.text = "\n".join([*lines, *body, ""])

    def value(self, dtype: str, depth: int) -> str:
        r = self.random
        if depth == 0 or r.random() < 0.15:
            return self.leaf(dtype)
        match r.randrange(6):
            case 0 | 1:
                then, other = self.value(dtype, depth - 1), self.value(dtype, depth - 1)
                return f"({then} if {self.condition(depth - 1)} else {other})"
            case 2:
                other = r.choice(TYPES)
                return self.cast(self.value(other, depth - 1), other, dtype)
            case 3 if not DTYPES[dtype].is_float:
                if r.random() < 0.5:
                    return f"({self.value(dtype, depth - 1)} {r.choice(['<<', '>>'])} {dtype}({self.amount()}))"
                return f"({self.value(dtype, depth - 1)} {r.choice('&|^')} {self.value(dtype, depth - 1)})"
            case _:
                a, b = self.value(dtype, depth - 1), self.value(dtype, depth - 1)
                if r.random() < 0.3:
                    return f"{r.choice(['min', 'max'])}({a}, {b})"
                return f"({a} {r.choice('+-*')} {b})"

    def amount(self) -> str:
        return self.random.choice(["i % 2 * 4", "i % 4", "3", "j % 2", "0"])

    def cast(self, text: str, of: str, into: str) -> str:
        if of == into:
            return text
        a, b = DTYPES[of], DTYPES[into]
        if a.bits == b.bits and not b.padding and not a.is_float and self.random.random() < 0.4:
            return f"bits_{into}({text})"
        if a.is_float and not b.is_float:
            return f"sat_{into}({text})"
        return f"{'sat_' if not b.is_float and self.random.random() < 0.4 else ''}{into}({text})"

    def leaf(self, dtype: str) -> str:
        r = self.random
        match r.randrange(8):
            case 0:
                return self.cast(f"V[{r.choice(['i', 'i', f'{self.n - 1} - i'])}]", self.types["V"], dtype)
            case 1:
                place = r.choice(["j", "j // 2", "j % 4", f"{self.m - 1} - j", "j // 16"])
                return self.cast(f"U[{place}]", self.types["U"], dtype)
            case 2:
                return f"{dtype}({r.choice(['j', 'i', 'j * 3 - 7', 'i * 50 + j', 'j // 5', 'j % 7'])})"
            case 3:
                return f"{dtype}({r.choice(['1', '2', '3'])})"
            case 4:
                return self.kept_inside(dtype)
            case _:
                return self.cast("X[i, j]", self.types["X"], dtype)

    def kept_inside(self, dtype: str) -> str:
        """A read past the row's end, under a condition that is false there."""
        by, r = self.random.randint(1, 9), self.random
        if r.random() < 0.5:
            read, condition = f"X[i, j + {by}]", r.choice([f"j + {by} < {self.m}", f"j < {self.m - by}"])
        else:
            some = [f"j >= {by}", f"j - {by} >= 0", f"j > {by} and j != {by + 2}"]
            read, condition = f"X[i, j - {by}]", r.choice(some)
        read = self.cast(read, self.types["X"], dtype)
        return f"({read} if {condition} else {dtype}({r.choice(['0', '1'])}))"

    def condition(self, depth: int) -> str:
        r = self.random
        match r.randrange(10):
            case 0 | 1:
                return f"s32({r.choice(['j', 'j', 'j * 2', 'j + 3', 'i * 9 + j', 'j // 3'])}) {self.sign()} L[i]"
            case 2:
                return f"N[{r.choice(['j', 'j // 4'])}] {self.sign()} {r.choice(['0', 'L[i]', 's32(j)'])}"
            case 3:
                return f"j {self.sign()} i * {r.randint(0, 9)} + {r.randint(0, 12)}"
            case 4:
                return f"j > i * 3 - {r.randint(0, 5)} and j <= i * 7 + {r.randint(0, 9)}"
            case 5:
                return f"L[i] {self.sign()} {r.randint(-2, 9)}"
            case 6 if depth:
                return f"not ({self.condition(depth - 1)})"
            case 7 if depth:
                return f"({self.condition(depth - 1)}) {r.choice(['and', 'or'])} ({self.condition(depth - 1)})"
            case _:
                dtype = r.choice(TYPES)
                return f"{self.value(dtype, min(depth, 1))} {self.sign()} {self.value(dtype, 0)}"

    def sign(self) -> str:
        return self.random.choice(["<", "<=", ">", ">=", "==", "!="])


def drawn(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Numbers at which arithmetic goes wrong, and of narrow types all patterns."""
    if dtype.bits <= 8:
        size = np.uint8 if dtype.kind != "int" else np.int8
        low, high = (0, 1 << dtype.bits) if dtype.kind != "int" else (dtype.limits[0], dtype.limits[1] + 1)
        found = rng.integers(low, high, shape).astype(size)
        return found.view(dtype.numpy) if dtype.is_float else found.astype(dtype.numpy)
    held = corners(dtype)
    return held[rng.integers(0, len(held), shape)]


def inputs(program: Program, seed: int) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    found = {n: drawn(program.tensors[n].dtype, program.tensors[n].extents, rng) for n in program.inputs}
    for name, most in (("L", 40), ("N", 3)):
        if name in found:
            found[name] = rng.integers(-3, most, found[name].shape).astype(np.int32)
    return found


def kernels(program: Program, seed: int) -> list[Kernel]:
    """Rows of its plans, for this machine or one without AVX-512."""
    narrow = machine(frozenset({"avx2", "fma"}), registers=16, vector_bytes=32)
    made = []
    for plan in plans_of(program, narrow if seed % 3 == 0 else this_machine())[:2]:
        ids = plan.space.sample(ROWS, np.random.default_rng(seed))
        made += [lower(plan, plan.space.schedule(int(row))) for row in ids]
    return [k for k in made if not missing_features(k)]


def wrong_kernels(seeds: list[int], folder: Path, count: Counter[str]) -> list[str]:
    """What is wrong with kernels of these programs, built as one library."""
    made: list[tuple[int, str, Kernel]] = []
    for seed in seeds:
        text = Writer(seed).text
        count["programs"] += 1
        made += [(seed, text, replace(k, name=f"f{len(made) + n}")) for n, k in enumerate(kernels(parse(text), seed))]
    codes = [print_c(k) for _, _, k in made]
    count["kernels"] += len(codes)
    count["in lanes"] += sum("lanes[" not in c.source and "for (ptrdiff_t e" not in c.source for c in codes)
    level = ("-O1", "-O2", "-O3")[seeds[0] // BATCH % 3]
    library = build(codes, folder, level, "-Wno-type-limits", "-Wno-psabi")
    wrong = []
    for seed, text, kernel in made:
        arrays = inputs(kernel.program, seed)
        with np.errstate(all="ignore"):
            want = run_kernel(kernel, arrays)["Y"]
        for place in (before_the_fence, behind_the_fence):
            got = call(library, kernel, arrays, place=place)["Y"]
            if (bad := differing(got, want)).any():
                at = tuple(int(x) for x in np.argwhere(bad)[0])
                wrong.append(f"seed {seed}\n{text}{kernel.schedule}\nY{at} is {got[at]}, not {want[at]}")
                break
    return wrong


def search(first: int, programs: int, seconds: float = math.inf) -> tuple[Counter[str], list[str]]:
    """Counts, and what was wrong with programs from number `first` on; each few of them in a process of their own."""
    count, wrong, begun = Counter[str](), list[str](), time.monotonic()
    for at in range(first, first + programs, BATCH):
        if time.monotonic() - begun > seconds:
            break
        seeds = list(range(at, min(at + BATCH, first + programs)))
        reader, writer = os.pipe()
        if (child := os.fork()) == 0:
            own = Counter[str]()
            try:
                with TemporaryDirectory() as folder:
                    said = wrong_kernels(seeds, Path(folder), own)
            except BaseException:
                said = [f"seeds {seeds}: {traceback.format_exc()}"]
            os.write(writer, repr((dict(own), [s[:8000] for s in said[:3]])).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as answer:
            text = answer.read().decode()
        _, status = os.waitpid(child, 0)
        if not text:
            wrong.append(f"seeds {seeds}: ended by signal {status & 127}")
            continue
        known, said = eval(text, {"__builtins__": {}})
        count += Counter(known)
        wrong += said
    return count, wrong


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--first", type=int, default=0)
    asked.add_argument("--programs", type=int, default=120)
    asked.add_argument("--seconds", type=float, default=math.inf)
    options = asked.parse_args()
    count, wrong = search(options.first, options.programs, options.seconds)
    print(*wrong, sep="\n\n")
    print(", ".join(f"{n} {name}" for name, n in count.items()) + f", {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
