"""Random products with operands of few bits on CPUs, of which the first register tile computes what others load, down
to kernels.

    python -m tests.fuzz.once --programs 100

Programs are those of `narrow`. Each kernel runs in the interpreter.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])] if __name__ == "__main__" else []

import numpy as np  # noqa: E402
from fuzz.narrow import narrow_text  # noqa: E402
from support.cards.block_chains import CATALOGUE  # noqa: E402
from support.cards.checked_kernels import right  # noqa: E402
from support.compiled.kernel_check import check_kernel  # noqa: E402
from support.fuzzing import Found, command, searched  # noqa: E402

from autosched.codegen.interpret.interpreter import run_kernel  # noqa: E402
from autosched.codegen.lower import lower  # noqa: E402
from autosched.device.correctness.oracle import compute, slack  # noqa: E402
from autosched.ir import parse  # noqa: E402
from autosched.machine.catalogue import load_target  # noqa: E402
from autosched.machine.target import Target  # noqa: E402
from autosched.search.tuning.tune import usable  # noqa: E402
from autosched.tiling.planner.plan_program import plan_program  # noqa: E402
from autosched.tiling.plans.plan import Plan  # noqa: E402
from autosched.tiling.space.tied_groups import settled  # noqa: E402
from autosched.tiling.steps.cpu.computed_once import ONCE  # noqa: E402

ROWS, PLANS = 2, 2
"""Looked at of a program: plans, and rows of each."""
MACHINES = ("intel-sapphire-rapids", "x86-avx2")


@cache
def machine(name: str) -> Target:
    return load_target(name)


def rows_with_one(plan: Plan, most: int, seed: int) -> list[int]:
    """Legal rows in which a first tile computes an operand for all."""
    space, found = plan.space, list[int]()
    for position, decision in enumerate(space.decisions):
        if decision.name.rpartition(".")[2].startswith("once_"):
            inner = settled(space, [position], [decision.domain.index(ONCE)])
            drawn = inner.thinned(most, np.random.default_rng(seed))
            found += [space.row_of(inner.schedule(int(row)).values) for row in drawn]
    return found


def wrong_kernels(seed: int, count: Counter[str]) -> Iterator[str]:
    """What is wrong with kernels of a program."""
    target = machine(MACHINES[seed % len(MACHINES)])
    program, offered = parse(narrow_text(seed)[0]), usable(CATALOGUE, target, "simulator", None)
    plans, level = 0, ("rescaled", "real")[seed // len(MACHINES) % 2]
    for plan in plan_program(program, target, CATALOGUE, offered, numerics=level).every:
        rows = rows_with_one(plan, ROWS, seed)
        if not rows or plans == PLANS:
            continue
        plans += 1
        oracle = compute(plan.program, seed, slack=slack(plan))
        for row in rows:
            count["kernels"] += 1
            kernel = lower(plan, plan.space.schedule(row))
            assert any(name.endswith("_left") for name in kernel.buffers), "nothing is left behind"
            check_kernel(kernel)
            try:
                right(oracle, run_kernel(kernel, oracle.inputs, oracle.scalars, seed=row), plan, row)
            except AssertionError as error:
                yield f"{narrow_text(seed)[0]}{error}"
    count["none"] += not plans


def search(first: int, programs: int, seconds: float = float("inf")) -> Found:
    """Counts, and what was wrong with programs from number `first` on."""
    return searched(wrong_kernels, first, programs, seconds)


if __name__ == "__main__":
    sys.exit(command(__doc__, search))
