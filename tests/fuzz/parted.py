"""Random cascades in parts, down to kernels: rows of plans of each are run beside the program.

    python -m tests.fuzz.parted --programs 500

`tests.fuzz.rewritten` looks at the programs in parts themselves, on rows that hurt.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).resolve().parents[1])] if __name__ == "__main__" else []

import numpy as np  # noqa: E402
from fuzz.cascades import cascade  # noqa: E402
from support.match.agreement import disagreement, expect  # noqa: E402
from support.plans import machine  # noqa: E402
from support.programs.in_parts import parts_plans  # noqa: E402

from autosched.ir import parse  # noqa: E402
from autosched.ir.program import Program  # noqa: E402
from autosched.tiling.variants.in_parts import PartSizes  # noqa: E402

ROWS = 2
"""Rows of each plan that are run."""


def drawn(seed: int) -> tuple[PartSizes, int]:
    """Parts, and threads: some parts are one block, some are empty, and some threads have none."""
    r = Random(seed)
    return PartSizes(r.choice([2, 2, 3, 5]), r.choice([1, 2, 4]), r.choice([2, 3, 4, 16])), r.choice([1, 2, 3])


def wrong_plans(program: Program, seed: int, count: Counter[str]) -> Iterator[str]:
    """What is wrong with kernels of a program in parts."""
    sizes, threads = drawn(seed)
    wanted = None
    for plan in parts_plans(program, machine(), threads, (sizes,)):
        count["plans"] += 1
        wanted = wanted or expect(program, seed)
        if wrong := disagreement(plan, plan.space.sample(ROWS, np.random.default_rng(seed)).tolist(), wanted):
            yield f"{sizes}, {threads} threads: {wrong}"


def search(first: int, programs: int, seconds: float = math.inf) -> tuple[Counter[str], list[str]]:
    """Counts, and what was wrong with programs from number `first` on."""
    count, wrong, begun = Counter[str](), list[str](), time.process_time()
    for seed in range(first, first + programs):
        if time.process_time() - begun > seconds:
            break
        text = cascade(seed)
        count["programs"] += 1
        try:
            found = list(wrong_plans(parse(text), seed, count))
        except Exception:
            found = [traceback.format_exc(limit=-4)]
        for said in found:
            wrong.append(f"program {seed}: {said}\n{text}")
            print(wrong[-1], flush=True)
    return count, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=math.inf, help="processor time after which it stops")
    asked = parser.parse_args()
    count, wrong = search(asked.first, asked.programs, asked.seconds)
    print(dict(count))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
