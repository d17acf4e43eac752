"""Random chains within blocks of a GPU whose rows warps hold in registers, down to printed kernels.

    python -m tests.fuzz.handed --programs 100

Each way to split rows is run in the interpreter, in each way of fetching slices, and printed: the printer proves anew
what each lane reads.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])] if __name__ == "__main__" else []

from support.cards.block_chains import A100, H200, RTX, BlockChain, holding  # noqa: E402
from support.compiled.kernel_check import check_kernel  # noqa: E402
from support.fuzzing import Found, command, searched  # noqa: E402
from support.match.agreement import disagreement, expect  # noqa: E402

from autosched.codegen.cuda import print_cuda  # noqa: E402
from autosched.codegen.lower import lower  # noqa: E402

ROWS = 2
"""Rows of each way to split."""


def drawn(seed: int) -> BlockChain:
    """A chain, its sizes (every other one has some that no instruction divides), types and machine."""
    r = Random(seed)
    ragged = seed % 2 == 1

    def size(low: int, high: int) -> int:
        return r.randint(16 * low, 16 * high) if ragged else 16 * r.randint(low, high)

    chains = ["mlp", "swiglu", "linear", "flash", "causal", "window", "layers"]
    chain, tile, block = r.choice(chains), size(1, 5), size(1, 4)
    sizes: dict[str, Any] = {"t": r.choice(["f16", "bf16"])}
    if chain == "linear":
        sizes |= {"h": 1, "n": 2 * block, "block": block, "d": size(1, 3), "e": size(1, 2)}
    elif chain == "causal":
        sizes |= {"n": 2 * tile, "tile": tile, "l": 2 * tile, "block": tile, "d": size(1, 3)}
    elif chain in ("flash", "window"):
        sizes |= {"n": 2 * tile, "tile": tile, "l": 3 * block, "block": block, "d": size(1, 3)}
    elif chain == "layers":
        sizes |= {"m": 2 * tile, "tile": tile, "k": size(1, 3), "l": 2}
    else:
        sizes |= {"m": 2 * tile, "tile": tile, "k": size(1, 2), "f": 2 * block, "block": block, "n": size(1, 3)}
    return BlockChain(chain, r.choice([A100, RTX, H200]), sizes)


def wrong_kernels(seed: int, count: Counter[str]) -> Iterator[str]:
    """What is wrong with kernels of a chain."""
    case = drawn(seed)
    plan = case.plan
    rows = holding(plan, ROWS, seed)
    if not rows:
        count["none"] += 1
        return
    wanted = expect(case.program, seed)
    for row in rows:
        count["kernels"] += 1
        kernel = lower(plan, plan.space.schedule(row))
        check_kernel(kernel)
        if not any(name.endswith("_held") for name in kernel.buffers):
            yield f"{plan.space.schedule(row)} holds nothing in registers"
        print_cuda(kernel, case.machine)
        if wrong := disagreement(plan, [row], wanted):
            yield f"{case}: {wrong}"


def search(first: int, programs: int, seconds: float = math.inf) -> Found:
    """Counts, and what was wrong with programs from number `first` on."""
    return searched(wrong_kernels, first, programs, seconds)


if __name__ == "__main__":
    sys.exit(command(__doc__, search))
