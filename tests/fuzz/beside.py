"""Random products on registers that hold matrices, with fused stages that are computed beside the next tile's products.

    python -m tests.fuzz.beside --programs 500

Each kernel runs in the interpreter, and as machine code where this machine has the instructions.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])] if __name__ == "__main__" else []

from support.compiled.native import compiled  # noqa: E402
from support.fuzzing import Found, command, searched  # noqa: E402
from support.match.agreement import disagreement, expect  # noqa: E402
from support.plans import covering_rows  # noqa: E402
from support.programs.matrices import FEATURES, matrix_plans  # noqa: E402

from autosched.codegen.lower import lower  # noqa: E402
from autosched.codegen.tree.kernel import For, IntrinsicCall, Kernel, statements  # noqa: E402
from autosched.ir import parse  # noqa: E402
from autosched.machine.host import host_features  # noqa: E402

PLANS, ROWS = 2, 3
"""Looked at of a program: plans, and rows of each."""
TYPES = (("u8", "s8", "s32"), ("s8", "s8", "s32"), ("bf16", "bf16", "f32"))
STAGES = {
    "bias": ("bias: f32[n], R: f32[m, n]", "R[i, j] = f32(C[i, j]) + bias[j]"),
    "gelu": ("bias: f32[n], R: bf16[m, n]", """x = f32(C[i, j]) * 0.01 + bias[j]
        R[i, j] = bf16(0.5 * x * (1.0 + erf(x * 0.7071067811865476)))"""),
    "added": ("D: f32[m, n], R: f32[m, n]", "R[i, j] = max(f32(C[i, j]) + D[i, j], 0.0)"),
    "onto": ("R: f32[m, n]", "R[i, j] += f32(C[i, j])"),
    "bytes": ("bias: f32[n], R: s8[m, n]", "R[i, j] = sat_s8(round(f32(C[i, j]) * bias[j]))"),
    "turned": ("bias: f32[n], R: f32[n, m]", "R[j, i] = f32(C[i, j]) * bias[j]"),
    "some": ("bias: f32[n], R: f32[m, n]", "R[i, j] = f32(C[i, j]) + bias[j] if j <= i else 0.0"),
    "two": ("bias: f32[n], R: f32[m, n], Q: f32[m, n]", """Q[i, j] = f32(C[i, j]) + bias[j]
    for i, j in grid(m, n):
        R[i, j] = f32(C[i, j]) * bias[j]"""),
    "in_place": ("", "C[i, j] = C[i, j] * C[i, j]"),
}  # fmt: skip


def beside_text(seed: int) -> str:
    """A product with stages behind it; its sums stay, or are nothing but a step."""
    rng = random.Random(seed)
    a, b, acc = rng.choice(TYPES)
    given, stage = STAGES[name := rng.choice(list(STAGES))]
    kept = name == "in_place" or rng.random() < 0.4
    m, n = rng.choice((16, 32, 35, 48, 64, 70, 97)), rng.choice((16, 33, 48, 64, 80, 100))
    unit = 32 if a == "bf16" else 64
    k = unit * rng.choice((4, 5, 6, 9, 17)) - rng.choice((0, 0, 0, 3, 20))
    const = f"const[{b}[k, n]]" if rng.random() < 0.7 else f"{b}[k, n]"
    parameters = [f"A: {a}[m, k]", f"B: {const}", *([given] if given else []), *([f"C: {acc}[m, n]"] if kept else [])]
    start = rng.choice(("0", "0", "7"))
    return f"""
def beside({", ".join(parameters)}, *, m={m}, n={n}, k={k}):
{"" if kept else f"    C: {acc}[m, n]"}
    for i, j in grid(m, n):
        C[i, j] = {start}
        for p in range(k):
            C[i, j] += {acc}(A[i, p]) * {acc}(B[p, j])
    for i, j in grid(m, n):
        {stage}
"""


def overlapped(kernel: Kernel) -> bool:
    """Whether products stand in a loop over an accumulator's rows."""
    loops = [s for s in kernel.statements if isinstance(s, For) and s.var == "er"]
    return any(isinstance(s, IntrinsicCall) for loop in loops for s in statements(loop.body))


def wrong_kernels(seed: int, count: Counter[str]) -> Iterator[str]:
    """What is wrong with kernels of a program."""
    text = beside_text(seed)
    program = parse(text)
    expected, native = expect(program, seed), host_features() >= {"amx_tile", "amx_int8", "amx_bf16"} & FEATURES
    found = [p for p in matrix_plans(program, threads=1 + seed % 2) if any(t.epilogue for t in p.tensor_parts)]
    count["none"] += not found
    for plan in found[:PLANS]:
        for row in list(covering_rows(plan, seed))[:ROWS]:
            count["kernels"] += 1
            if wrong := disagreement(plan, [row], expected):
                yield f"{text}{wrong}"
            kernel = lower(plan, plan.space.schedule(row))
            count["beside"] += overlapped(kernel)
            if not native:
                continue
            result = compiled(kernel)(**{n: a.copy() for n, a in expected.arrays.items()} | expected.scalars)
            results = result if isinstance(result, tuple) else (result,)
            if wrong := expected.difference(dict(zip(kernel.program.outputs, results, strict=True))):
                yield f"{text}as machine code, {kernel.schedule}: {wrong}"


def search(first: int, programs: int, seconds: float = float("inf")) -> Found:
    """Counts, and what was wrong with programs from number `first` on."""
    return searched(wrong_kernels, first, programs, seconds)


if __name__ == "__main__":
    sys.exit(command(__doc__, search))
