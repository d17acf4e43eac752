"""Random products on random arrays that hold an operand in a state, down to kernels.

    python -m tests.fuzz.stationary --programs 200

Arrays hold one factor, the other one or both, in any order of their axes; loads bring a whole tile or a part of it.
Each kernel runs in the interpreter, and loads its states as often as the space says and the simulator charges. Then its
loads are taken out or moved: what the proof of states accepts must still be right.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])] if __name__ == "__main__" else []

import numpy as np  # noqa: E402
from support.cards.checked_kernels import right  # noqa: E402
from support.compiled.kernel_check import check_kernel  # noqa: E402
from support.fuzzing import Found, command, searched  # noqa: E402
from support.stationary import held_chip  # noqa: E402

from autosched.codegen.analysis.held_states import StateError, prove_states  # noqa: E402
from autosched.codegen.interpret.interpreter import run_kernel  # noqa: E402
from autosched.codegen.lower import lower  # noqa: E402
from autosched.codegen.passes.substitute import bind  # noqa: E402
from autosched.codegen.tree.kernel import Assign, For, If, Kernel, KernelError, Stmt  # noqa: E402
from autosched.costmodel.analytic.limits import limit  # noqa: E402
from autosched.device.correctness.oracle import Oracle, compute, slack  # noqa: E402
from autosched.device.simulator.spatial.spatial_model import spatial_estimate  # noqa: E402
from autosched.device.simulator.walk.walk import facts  # noqa: E402
from autosched.ir import parse  # noqa: E402
from autosched.logic import Const  # noqa: E402
from autosched.search.request import TuneRequest  # noqa: E402
from autosched.search.tuning.tune import plans_of  # noqa: E402
from autosched.tensorize.spec.catalogue import Catalogue  # noqa: E402
from autosched.tensorize.spec.load import load_text  # noqa: E402
from autosched.tiling.plans.plan import Plan, TensorPart  # noqa: E402

ROWS = 3
"""Of each plan."""
PRODUCTS = (
    ("A: s8[{m}, {k}], B: s8[{k}, {n}], C: s32[{m}, {n}]", "i, j", "{m}, {n}", "p", "{k}", "A[i, p]", "B[p, j]"),
    ("A: s8[{m}, {k}], B: s8[{n}, {k}], C: s32[{m}, {n}]", "i, j", "{m}, {n}", "p", "{k}", "A[i, p]", "B[j, p]"),
    ("A: s8[{b}, {m}, {k}], B: s8[{k}, {n}], C: s32[{b}, {m}, {n}]", "b, i, j", "{b}, {m}, {n}", "p", "{k}",
     "A[b, i, p]", "B[p, j]"),
    ("A: s8[{b}, {m}, {k}], B: s8[{b}, {k}, {n}], C: s32[{b}, {m}, {n}]", "b, i, j", "{b}, {m}, {n}", "p", "{k}",
     "A[b, i, p]", "B[b, p, j]"),
    ("A: s8[{m} + {b}, {k}], B: s8[{b}, {k}, {n}], C: s32[{m}, {n}]", "i, j", "{m}, {n}", "r, p", "{b}, {k}",
     "A[i + r, p]", "B[r, p, j]"),
)  # fmt: skip
GUARDS = ("", "", "", "if p <= i:", "if j <= i:", "if p % 3 != 1:")


def array_text(seed: int) -> str:
    """An array, and loads of its states."""
    draw = random.Random(seed)
    i, j, k = (draw.choice((1, 2, 4)) if n else draw.choice((1, 2, 3, 4)) for n in (1, 1, 0))
    a = draw.choice((("i, k", (i, k)), ("k, i", (k, i))))
    b = draw.choice((("k, j", (k, j)), ("j, k", (j, k))))
    held = draw.choice((("b",), ("b",), ("a",), ("a", "b")))
    text = f"""
isa: held
requires: [held_array]
intrinsics:
  - name: array
    scope: core
    semantics: |
      def array(a: s8[{a[1][0]}, {a[1][1]}], b: s8[{b[1][0]}, {b[1][1]}], c: s32[{i}, {j}]):
          for i, j, k in grid({i}, {j}, {k}):
              c[i, j] += s32(a[{a[0]}]) * s32(b[{b[0]}])
    operands: {{{", ".join(f"{o}: {{state: of_{o}}}" for o in held)}}}
    timing: {{latency: 8, interval: {max(i, 1)}}}
"""
    for o in held:
        rows, columns = {"a": a, "b": b}[o][1]
        part = draw.choice([n for n in range(1, rows + 1) if rows % n == 0])
        text += f"""
  - name: load.{o}
    kind: copy
    moves: {{from: inputs, to: of_{o}}}
    scope: core
    async: {draw.choice(("true", "false"))}
    semantics: |
      def load(x: s8[{part}, {columns}], y: s8[{part}, {columns}]):
          for i, j in grid({part}, {columns}):
              y[i, j] = x[i, j]
    timing: {{latency: 4, interval: {part}}}
"""
    return text


def product_text(seed: int) -> str:
    draw = random.Random(seed + 1)
    parameters, spatial, sizes, reduced, lengths, first, second = draw.choice(PRODUCTS)
    guard, start = draw.choice(GUARDS), draw.choice(("0", "0", "3", ""))
    of = {"m": draw.randint(1, 11), "n": draw.randint(1, 9), "k": draw.randint(1, 9), "b": draw.randint(1, 3)}
    lines = [f"def product({parameters}):", f"    for {spatial} in grid({sizes}):"]
    lines += [f"        C[{spatial}] = {start}"] if start else []
    many = "," in reduced
    lines.append(f"        for {reduced} in {'grid' if many else 'range'}({lengths}):")
    lines += [f"            {guard}"] if guard else []
    lines.append(f"            {'    ' if guard else ''}C[{spatial}] += s32({first}) * s32({second})")
    return "\n".join(lines).format(**of) + "\n"


def loads_in(kernel: Kernel) -> float:
    """How often states are loaded, counted loop by loop."""
    touches = (t for stmt in kernel.main.body for t in facts(kernel, stmt).touches)
    return sum(t.runs for t in touches if t.scope == "state" and t.write)


def changed(body: tuple[Stmt, ...], states: set[str], draw: random.Random) -> tuple[Stmt, ...]:
    """The statements with some loads of states taken out, moved into the next loop or in front of theirs, or of another
    tile."""
    made: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For):
            inside = changed(stmt.body, states, draw)
            if made and isinstance(made[-1], Assign) and made[-1].buffer in states and draw.random() < 0.5:
                made.append(replace(stmt, body=(made.pop(), *inside)))
                continue
            moved = [s for s in inside if isinstance(s, Assign) and s.buffer in states and draw.random() < 0.3]
            made += bind(tuple(moved), {stmt.var: stmt.lower})
            made.append(replace(stmt, body=tuple(s for s in inside if s not in moved)))
        elif isinstance(stmt, If):
            made.append(replace(stmt, body=changed(stmt.body, states, draw)))
        elif isinstance(stmt, Assign) and stmt.buffer in states and draw.random() < 0.3:
            if draw.random() < 0.5:
                made += bind((stmt,), {draw.choice(("it", "jt", "pt", "pb", "jb", "ib")): Const(0)})
        else:
            made.append(stmt)
    return tuple(made)


def wrong_of_changed(kernel: Kernel, oracle: Oracle, plan: Plan, row: int, seed: int, count: Counter[str]) -> str:
    """What is wrong with a changed kernel whose states are said to be right; nothing where it is refused, or right."""
    states = {n for n, b in kernel.buffers.items() if b.scope == "state"}
    other = replace(kernel, main=replace(kernel.main, body=changed(kernel.main.body, states, random.Random(seed))))
    if other == kernel:
        return ""
    try:
        prove_states(other)
    except StateError:
        count["refused"] += 1
        return ""
    count["accepted"] += 1
    try:
        right(oracle, run_kernel(other, oracle.inputs, oracle.scalars), plan, row)
    except (AssertionError, KernelError) as error:
        return f"accepted, and not right: {error}"
    return ""


def wrong_kernels(seed: int, count: Counter[str]) -> Iterator[str]:
    """What is wrong with kernels of a program."""
    catalogue = Catalogue.builtin().with_intrinsics(load_text(array_text(seed), "held.yaml"))
    target, text = held_chip(), product_text(seed)
    for plan in plans_of(TuneRequest(parse(text), target, device="simulator", catalogue=catalogue))[1][:2]:
        parts = [p for p in plan.parts if isinstance(p, TensorPart) and p.nest.intrinsic.held]
        if not parts:
            continue
        count["plans"] += 1
        oracle = compute(plan.program, seed, slack=slack(plan))
        for row in plan.space.sample(ROWS, np.random.default_rng(seed)):
            count["kernels"] += 1
            kernel = lower(plan, plan.space.schedule(int(row)))
            where = f"{array_text(seed)}{text}{plan.name} {plan.space.schedule(int(row))}: "
            check_kernel(kernel)
            count["proved"] += len(prove_states(kernel))
            try:
                right(oracle, run_kernel(kernel, oracle.inputs, oracle.scalars), plan, int(row))
            except AssertionError as error:
                yield f"{where}{error}"
            values, said, seconds = plan.space.values([int(row)]), 0, 0.0
            for part, operand in ((p, o) for p in parts for o in p.nest.intrinsic.held):
                times = int(values[part.names(f"loads_{operand.name}")][0])
                loading = plan.units.loading(target, operand)
                said += times
                seconds += times * loading.cycles(operand.elements) / target.clock_hz if loading else float("inf")
            if loads_in(kernel) != said:
                yield f"{where}{loads_in(kernel)} loads, {said} by the space"
            model = spatial_estimate(kernel, [facts(kernel, s) for s in kernel.main.body], target, plan.units).seconds
            if not 0.999 * seconds <= model["loads"] <= 1.02 * seconds:  # each group of loads takes whole ticks
                yield f"{where}{model['loads']} s of loads by the simulator, and {seconds} by their number"
            if model["total"] - model["start"] < limit(plan, values)[0] * (1 - 1e-9):
                yield f"{where}{model['total']} s, below the bound {limit(plan, values)[0]}"
            if fault := wrong_of_changed(kernel, oracle, plan, int(row), seed, count):
                yield f"{where}{fault}"


def search(first: int, programs: int, seconds: float = float("inf")) -> Found:
    """Counts, and what was wrong with programs from number `first` on."""
    return searched(wrong_kernels, first, programs, seconds)


if __name__ == "__main__":
    sys.exit(command(__doc__, search))
