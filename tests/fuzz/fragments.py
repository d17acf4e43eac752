"""Random products of blocks with scales, and of 2:4 sparse data, on instructions of a warp, whose operands lie over
lanes by maps of the YAML, down to printed kernels.

    python -m tests.fuzz.fragments --programs 100

Elements are those of mxfp8, mxfp6, mxfp4 and nvfp4, of any length of the sum and any number of rows and columns; scales
lie beside their rows or apart, and the program goes through all terms by one loop or through groups. Sparse data are
f16, bf16, s8 or u8, and say by a subscript or by choices which elements are meant. Each kernel runs in the interpreter,
and is printed.
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

from support.cards.checked_kernels import wrong_interpreted  # noqa: E402
from support.fuzzing import Found, command, searched  # noqa: E402

from autosched.ir import parse  # noqa: E402
from autosched.machine.catalogue import load_target  # noqa: E402
from autosched.machine.target import Target  # noqa: E402
from autosched.search.tuning.tune import usable  # noqa: E402
from autosched.tensorize import match  # noqa: E402
from autosched.tensorize.spec.catalogue import Catalogue  # noqa: E402
from autosched.tiling.planner.make_plans import make_plans  # noqa: E402
from autosched.tiling.plans.plan import Plan  # noqa: E402
from autosched.tiling.variants.conditional import candidates_of  # noqa: E402

CATALOGUE = Catalogue.builtin()
ROWS, PLANS = 2, 2
"""Looked at of a program: plans, and rows of each."""
KINDS = ("sp", "mxf8f6f4", "mxf4", "nvf4")
"""Of instructions; the programs take turns."""
_HALVES, _BYTES = (("f16", "bf16"), (16, 32), "f32"), (("s8", "u8"), (32, 64), "s32")
SPARSE = [(t, k, c) for types, depths, c in (_HALVES, _BYTES) for t in types for k in depths]
"""Elements of what is sparse, how many an instruction takes of a whole row, and the type of sums."""
NARROW = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")


@dataclasses.dataclass(frozen=True)
class Scaled:
    """Types of the elements of both sides, the type of a scale and how many elements have one, and how many of a row an
    instruction takes."""

    a: str
    b: str
    scale: str
    group: int
    depth: int


@cache
def blackwell() -> Target:
    """A small card with block scales: an RTX 4090 whose features are of sm_120a."""
    card = load_target("nvidia-rtx4090")
    features = card.features | {"sm_90", "sm_100", "sm_120", "sm_120a"}
    return dataclasses.replace(card, cores=3, features=features, compiler={**card.compiler, "arch": "sm_120a"})


@cache
def ampere() -> Target:
    """A small card with sparse products."""
    return dataclasses.replace(load_target("nvidia-a100"), cores=3)


def drawn_name(r: Random, kind: str) -> str:
    """The name of an instruction of a kind."""
    if kind == "sp":
        t, k, c = r.choice(SPARSE)
        return f"cuda/mma.sp.m16n8k{k}.{t}.{t}.{c}"
    if kind == "mxf8f6f4":
        return f"cuda/mma.m16n8k32.{r.choice(NARROW)}.{r.choice(NARROW)}.f32.{kind}"
    return f"cuda/mma.m16n8k64.e2m1.e2m1.f32.{kind}"


def text_for(name: str, r: Random) -> str:
    """A program for an instruction."""
    _, *parts = name.split(".")
    if parts[0] == "sp":
        return sparse_text(r, parts[2], parts[4])
    _, a, b, _, kind = parts
    scale, group = ("e4m3", 16) if kind == "nvf4" else ("e8m0", 32)
    return scaled_text(r, Scaled(a, b, scale, group, 32 if kind == "mxf8f6f4" else 64))


def scaled_text(r: Random, of: Scaled) -> str:
    m, n, groups = r.randint(1, 40), r.randint(1, 30), r.randint(1, 5)
    k, g = groups * of.group, of.group
    by_groups = of.depth == g or r.random() < 0.3
    beside, across = r.random() < 0.6, r.random() < 0.3
    loops = f"for h, q in grid({groups}, {g}):" if by_groups else f"for p in range({k}):"
    p, h = (f"{g} * h + q", "h") if by_groups else ("p", f"p // {g}")
    start = r.choice(["0", "0", "D[i, j]"])
    held = {
        "A": f"{of.a}[{m}, {k}]", "S": f"{of.scale}[{f'{m}, {groups}' if beside else f'{groups}, {m}'}]",
        "B": f"{of.b}[{f'{k}, {n}' if across else f'{n}, {k}'}]",
        "T": f"{of.scale}[{f'{n}, {groups}' if beside else f'{groups}, {n}'}]",
    } | ({"D": f"f32[{m}, {n}]"} if start != "0" else {})  # fmt: skip
    s, t = (f"S[i, {h}]", f"T[j, {h}]") if beside else (f"S[{h}, i]", f"T[{h}, j]")
    b = f"B[{p}, j]" if across else f"B[j, {p}]"
    said = "    assume(0 <= S)\n    assume(0 <= T)\n" if of.scale == "e4m3" else ""
    return (
        f"def f({', '.join(f'{name}: {shape}' for name, shape in held.items())}, C: f32[{m}, {n}]):\n{said}"
        f"    for i, j in grid({m}, {n}):\n        C[i, j] = {start}\n        {loops}\n"
        f"            C[i, j] += (f32(A[i, {p}]) * f32({s})) * (f32({b}) * f32({t}))\n"
    )


def sparse_text(r: Random, t: str, c: str) -> str:
    """Of each four elements of a row A holds two, and E which; sums are of type c."""
    m, n, k = r.randint(1, 40), r.randint(1, 30), 2 * r.randint(1, 30)
    across, flat, start = r.random() < 0.3, r.random() < 0.6, r.choice(["0", "0", "D[i, j]"])

    def element(number: str, chosen: bool) -> str:
        place = f"4 * (q // 2) + {number}" if flat else f"q // 2, {number}"
        if chosen:
            place = f"s32(4 * (q // 2)) + {number}" if flat else place
        return f"B[{place}, j]" if across else f"B[j, {place}]"

    value = element("s32(E[i, q])", True)
    if r.random() < 0.5:
        value = element("3", False)
        for number in (2, 1, 0):
            value = f"{element(str(number), False)} if E[i, q] & 3 == {number} else ({value})"
        value = f"({value})"
    rows = f"{2 * k}" if flat else f"{k // 2}, 4"
    held = f"A: {t}[{m}, {k}], E: u8[{m}, {k}], B: {t}[{f'{rows}, {n}' if across else f'{n}, {rows}'}]"
    held += f", D: {c}[{m}, {n}]" if start != "0" else ""
    return (
        f"def f({held}, C: {c}[{m}, {n}]):\n    assume(E <= 3)\n    assume(distinct(E, 2))\n"
        f"    for i, j in grid({m}, {n}):\n        C[i, j] = {start}\n        for q in range({k}):\n"
        f"            C[i, j] += {c}(A[i, q]) * {c}({value})\n"
    )


def program_text(seed: int) -> tuple[str, str]:
    """A program, and the instruction that it is for."""
    r = Random(seed)
    name = drawn_name(r, KINDS[seed % len(KINDS)])
    return text_for(name, r), name


def planned(seed: int) -> list[Plan]:
    """Plans of a program on its instruction."""
    return plans_on(*program_text(seed))


def plans_on(text: str, name: str) -> list[Plan]:
    """Plans of a program on an instruction, restated as an adapter says where it has to be."""
    program, target = parse(text), ampere() if ".sp." in name else blackwell()
    offered = usable(CATALOGUE, target, "simulator", [name])
    found = match(program, offered)
    if adapted := [m for m in found[0].mappings if m.adapters]:
        program = adapted[0].program
        found = match(program, offered)
    plans = make_plans(program, target, candidates_of(found), 1)
    return [p for p in plans if p.tensor_parts][:PLANS]


def wrong_kernels(seed: int, count: Counter[str]) -> Iterator[str]:
    """What is wrong with kernels of a program."""
    for plan in planned(seed):
        count["plans"] += 1
        for error in wrong_interpreted(plan, ROWS, seed, count):
            yield f"{program_text(seed)[0]}{error}"


def search(first: int, programs: int, seconds: float = float("inf")) -> Found:
    return searched(wrong_kernels, first, programs, seconds)


if __name__ == "__main__":
    sys.exit(command(__doc__, search))
