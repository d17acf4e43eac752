"""Random masks of attention in one pass on a GPU, down to kernels whose rows warps hold in registers.

    python -m tests.fuzz.masked --programs 100

Masks bound keys on either side, leave rows or blocks empty, or bound nothing; they choose scores, or guard the sums.
Each way to split rows is run, in each way of fetching slices, also on data whose rows are computed as written.
"""

from __future__ import annotations

import dataclasses
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).resolve().parents[1])] if __name__ == "__main__" else []

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402
from support.cards.block_chains import A100, H200, RTX, holding  # noqa: E402
from support.cards.gpu_plans import CATALOGUE  # noqa: E402
from support.compiled.kernel_check import check_kernel  # noqa: E402
from support.fuzzing import Found, command, searched  # noqa: E402
from support.paths import ROOT  # noqa: E402

from autosched import ir  # noqa: E402
from autosched.codegen.interpret.interpreter import run_kernel  # noqa: E402
from autosched.codegen.lower import lower  # noqa: E402
from autosched.device.correctness.compare import compare  # noqa: E402
from autosched.device.correctness.oracle import Oracle, compute, slack  # noqa: E402
from autosched.ir.program import Program  # noqa: E402
from autosched.machine.catalogue import load_target  # noqa: E402
from autosched.search.tuning.tune import usable  # noqa: E402
from autosched.tiling.planner.plan_program import plan_program  # noqa: E402
from autosched.tiling.variants.one_pass import one_pass_programs  # noqa: E402

EXAMPLE = ROOT / "examples" / "fused" / "attention_rounded.py"
CAUSAL = "j <= i + l - n"
CHOICE = re.compile(r"( +)x = (.+) if (.+) else -inf\n +(.+)")
"""A score, the mask, and what the score is added to."""
PASSES = 2
"""Plans of each program that are looked at."""


def program(seed: int, choice: bool) -> Program:
    """Attention with a random mask, as a choice or as guards, and random sizes."""
    r = Random(seed)
    n, l, d = r.choice([64, 96, 100, 128]), r.choice([64, 96, 129, 200]), r.choice([16, 32])  # noqa: E741
    return ir.parse(attention(mask(r, n, l), choice), sizes={"h": 1, "n": n, "l": l, "d": d})


def mask(r: Random, n: int, keys: int) -> str:
    """One to three conditions on a row `i` and a key `j`."""
    if r.random() < 0.3:
        width, far = r.choice([1, 5, 16, 33, 64, 90, 150]), r.choice([keys - n, keys - n, 0, -9, 40])
        return f"i + {far} - {width} < j <= i + {far}".replace("+ -", "- ")
    found = []
    for _ in range(r.choice([1, 1, 2, 3])):
        far = r.choice([-70, -33, -5, -1, 0, 1, 7, 16, 31, 64, 100])
        kinds = [f"j <= i + {far}", f"j >= i - {abs(far)}", f"j <= i + {keys - n}"]
        kinds += [f"j > i + {keys - n} - {abs(far) + 1}"]
        kinds += [f"j < {max(far, 0) + 1}", f"j >= {max(far, 0)}", f"i + j < {n}", f"i + j >= {keys // 2}"]
        kinds += [f"j <= 2 * i + {far}", f"2 * j <= i + {far}", "j // 8 <= i // 8", "(i + j) % 3 != 1"]
        kinds += [f"i >= {abs(far)}"]
        found.append(r.choice(kinds).replace("+ -", "- "))
    return " and ".join(found)


def attention(condition: str, choice: bool) -> str:
    """The text of causal attention with another mask, which chooses scores, or guards what they are added to."""
    _, head, text = EXAMPLE.read_text().partition("def attention_rounded_causal")
    text = (head + text).replace(CAUSAL, condition)
    return text if choice else CHOICE.sub(r"\1if \3:\n\1    x = \2\n\1    \4", text)


def wrong_kernels(seed: int, count: Counter[str], given: Program | None = None) -> Iterator[str]:
    """What is wrong with kernels of a program: the one of this number in both forms, or the one given."""
    if given is None:
        for choice in (True, False):
            yield from wrong_kernels(seed, count, program(seed, choice))
        return
    before, machine = given, Random(seed).choice([A100, RTX, H200, H200])
    target = dataclasses.replace(load_target(machine), cores=3)
    found = usable(CATALOGUE, target, "simulator", None)
    sizes = Random(seed).sample([(128, 64), (64, 64), (32, 64)], PASSES)
    for variant in one_pass_programs(before, found, "real", sizes, one_loop=True):
        planned = plan_program(variant.program, target, CATALOGUE, found, numerics="real")
        plan = next((p for p in planned.plans if holding(p, 1, seed)), None)
        if plan is None:
            count["none"] += 1
            continue
        for number, row in enumerate(holding(plan, 1, seed)):
            count["kernels"] += 1
            kernel = lower(plan, plan.space.schedule(row))
            check_kernel(kernel)
            usual = compute(before, seed, slack=slack(plan))
            special = [] if given or number else [compute(before, seed, inputs=_special(usual), slack=slack(plan))]
            for oracle in (usual, *special):
                got = run_kernel(kernel, oracle.inputs, oracle.scalars, seed=row)
                for name, want in oracle.wants.items():
                    tolerance = np.broadcast_to(np.asarray(oracle.tolerances[name], np.float64), want.shape)
                    found_here = compare(got[name].reshape(-1), want.reshape(-1), tolerance.reshape(-1))
                    if not found_here.ok:
                        yield f"{machine}, {plan.space.schedule(row)}: {name}: {found_here}"


def _special(usual: Oracle) -> dict[str, npt.NDArray[np.generic]]:
    """Infinite scores in one row, which is computed as written then: what the blocks left there is not to be used."""
    queries = usual.inputs["Q"].copy()
    queries[:, queries.shape[1] // 2] = np.inf
    return {**usual.inputs, "Q": queries}


def search(first: int, programs: int, seconds: float = math.inf) -> Found:
    """Counts, and what was wrong with programs from number `first` on."""
    return searched(wrong_kernels, first, programs, seconds)


if __name__ == "__main__":
    sys.exit(command(__doc__, search))
