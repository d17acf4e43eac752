"""Random windows over keys, in one pass over tiles and blocks on a CPU, down to kernels.

    python -m tests.fuzz.slid --programs 500

Bounds on either side move with the row, at any distance from where tiles, blocks and vectors begin: windows narrower
than a vector or wider than the sequence, rows without a key, windows that begin in front of the first key, sequences of
one element. Masks choose scores, or guard the sums.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).resolve().parents[1])] if __name__ == "__main__" else []

import numpy as np  # noqa: E402
from support.fuzzing import Found, command, searched  # noqa: E402
from support.match.agreement import disagreement, expect  # noqa: E402
from support.paths import ROOT  # noqa: E402
from support.plans import machine  # noqa: E402
from support.programs.one_pass import one_pass_plans  # noqa: E402

from autosched.ir import parse  # noqa: E402
from autosched.ir.program import Program  # noqa: E402
from autosched.machine.target import Target  # noqa: E402

EXAMPLE = ROOT / "examples" / "fused" / "attention.py"
WINDOW = "i + l - n - window < j <= i + l - n"
CHOICE = re.compile(r"( +)x = (.+) if (.+) else -inf\n +(.+)")
"""A score, the mask, and what the score is added to."""
ROWS = 3
"""Rows of each plan that are run."""


def window(r: Random, n: int, keys: int) -> str:
    """A lower bound, an upper bound, or both, of key `j` for row `i`."""
    width = r.choice([0, 1, 2, 5, 15, 16, 17, 31, 33, 64, 200])
    far = r.choice([keys - n, 0, -20, -3, 7, 25])
    behind = f"(i + {far})"
    lower = [f"{behind} - {width} < j", f"j >= {behind} - {width}", f"max(0, {behind} - {width}) <= j"]
    lower += [f"2 * i - {width} <= j", f"j > i // 2 - {width}", f"i - j < {width + 1}"]
    upper = [f"j <= {behind}", f"j < {behind}", f"j < min({behind} + 1, {max(keys - 3, 1)})", f"j <= 2 * i + {far}"]
    kinds = r.choice([(lower, upper)] * 4 + [(lower,), (upper,), (lower, lower, upper), (lower, upper, upper)])
    return " and ".join(r.choice(kind) for kind in kinds).replace("+ -", "- ")


def program(seed: int) -> Program:
    """Attention with a random window, as a choice or as guards, and random sizes."""
    r = Random(seed)
    n, keys = r.choice([1, 2, 7, 20, 33, 64, 70]), r.choice([1, 3, 16, 40, 64, 65, 100])
    _, head, text = EXAMPLE.read_text().partition("def attention_window")
    text = (head + text).replace(WINDOW, window(r, n, keys))
    if r.random() < 0.3:
        text = CHOICE.sub(r"\1if \3:\n\1    x = \2\n\1    \4", text)
    return parse(text, sizes={"h": r.choice([1, 2]), "n": n, "l": keys, "d": r.choice([4, 16])})


def drawn(seed: int) -> tuple[Target, tuple[tuple[int, int], ...]]:
    """A machine, and rows of a tile and elements of a block."""
    r = Random(seed)
    sizes = [(t, b) for t in (1, 5, 16, 20, 64) for b in (16, 32, 48, 64)]
    return r.choice([machine(), machine(frozenset(["avx2", "fma"]), 16, 32)]), tuple(r.sample(sizes, 2))


def wrong_kernels(seed: int, count: Counter[str], given: Program | None = None) -> Iterator[str]:
    """What is wrong with kernels of a program: the one of this number, or the one given."""
    before, (target, sizes) = given or program(seed), drawn(seed)
    wanted = None
    for plan in one_pass_plans(before, target, sizes=sizes):
        count["plans"] += 1
        wanted = wanted or expect(before, seed)
        if wrong := disagreement(plan, plan.space.sample(ROWS, np.random.default_rng(seed)).tolist(), wanted):
            yield f"{plan.name}: {wrong}\n{before}"


def search(first: int, programs: int, seconds: float = math.inf) -> Found:
    """Counts, and what was wrong with programs from number `first` on."""
    return searched(wrong_kernels, first, programs, seconds)


if __name__ == "__main__":
    sys.exit(command(__doc__, search))
