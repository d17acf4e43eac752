"""Random cascades: whatever is proved has to compute what the program does.

    python -m tests.fuzz.cascades --programs 5000

Each program is a few reductions that read each other, of random terms, guards, types, orders and nests, some with a
statement between that overwrites what they read. What `autosched.rewrites` accepts is run twice: in f64, where it has
to agree with the program, and in its own types, where it has to be as close as its certificate says and to be no
number where the program is none.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).resolve().parents[1])] if __name__ == "__main__" else []

import numpy as np  # noqa: E402
from support.rewritten.compare import differences  # noqa: E402
from support.rewritten.oracle import run  # noqa: E402
from support.rewritten.suite import inputs, masked  # noqa: E402

import autosched  # noqa: E402
from autosched import ir  # noqa: E402
from autosched.ir.program import Program  # noqa: E402
from autosched.ir.rewrites.verdict import RewriteVerdict  # noqa: E402

HEAD = (
    "def f(X: f32[{n}, {l}], Y: f32[{n}, {l}], V: f32[{l}], W: f32[{l}, 2], G: u8[{n}, {l}], c: f32, M: f32[{n}], "
    "N: f32[{n}], Z: f32[{n}], A: f32[{n}], B: f32[{n}, 2], P: f32[{n}, {l}]):\n"
)
KINDS = ("random", "one", "none", "wide", "ties", "greatest", "nan", "infinite")

CONDITIONS = (
    "j <= i + 1",
    "j <= i - 2",  # nothing for the first rows
    "i + j < 4",  # nothing for the last
    "G[i, j] != 0",
    "j % 2 == 0",
    "X[i, j] > Y[i, j]",
    "j >= i",
)


@dataclass
class Found:
    """What was wrong, by the program's number; and counts."""

    wrong: list[tuple[int, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def cascade(seed: int) -> str:
    """A program's text."""
    return _Writer(Random(seed)).program()


class _Writer:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.number = 0
        self.references: list[str] = []
        self.sums: list[str] = []
        self.op = "max"
        self.of = "X[i, j]"

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def number_(self) -> str:
        return self.pick("0.5", "2", "0.25", "1", "-1", "3")

    def data(self) -> str:
        leaf = self.pick("X[i, j]", "X[i, j]", "Y[i, j]", "V[j]", "f32(j)", "tanh(Y[i, j])", "abs(X[i, j])")
        match self.random.randrange(8):
            case 0:
                return f"{leaf} * {self.number_()}"
            case 1:
                return f"({leaf} + {self.pick('V[j]', 'Y[i, j]', '1')})"
            case 2:
                return f"{leaf} * c"
            case 3:
                return f"({leaf} if {self.condition()} else {self.pick('0', leaf + ' * 0.5')})"
        return leaf

    def condition(self) -> str:
        return self.pick(*CONDITIONS)

    def score(self) -> str:
        """What a reference is the greatest of."""
        score = self.data()
        hidden = "-inf" if self.op == "max" else "inf"
        return f"({score} if {self.condition()} else {hidden})" if self.random.random() < 0.3 else score

    def exponential(self) -> str:
        reference = self.random.choice(self.references)
        of = self.of if self.random.random() < 0.8 else self.data()
        sign = "-" if (self.op == "min") == (self.random.random() < 0.9) else ""
        inside = f"{sign}({of} - {reference})"
        match self.random.randrange(12):
            case 0:
                return f"exp({inside} * {self.number_()})"
            case 1:
                return f"exp({inside} * c)"
            case 2:
                return f"exp({inside} + {self.data()})"
            case 3:
                return f"exp({of}) / exp({reference})"
            case 4 if self.sums:
                return f"exp({of} - ({reference} + log({self.random.choice(self.sums)})))"
            case 5:
                return f"exp({inside} / 2)"
            case 6:
                return f"sqrt(exp({inside}))"
        return f"exp({inside})"

    def factor(self) -> str:
        match self.random.randrange(22):
            case 0 if self.sums:
                return f"(1 / {self.random.choice(self.sums)})"
            case 1:
                return self.random.choice(self.references)
            case 2:
                return f"({self.data()} - {self.random.choice(self.references)})"
            case 3:
                return f"({self.exponential()} if {self.condition()} else 0)"
            case 4:
                return f"f32(bf16({self.exponential()}))"
            case 5 if self.sums:
                return f"rsqrt({self.random.choice(self.sums)} * 0.5 + 1)"
            case 6:
                return f"tanh({self.of} - {self.random.choice(self.references)})"
            case 7:
                return f"sqrt({self.data()})"
            case 8:
                return f"({self.exponential()} + {self.exponential()})"
            case 9 if self.sums:
                return f"log({self.random.choice(self.sums)})"
            case 10:
                return f"({self.data()} / ({self.data()}))"
            case 11:
                return f"exp({self.data()} * 0.25)"
            case k if k < 14:
                return self.data()
        return self.exponential()

    def term(self) -> str:
        factors = [self.factor() for _ in range(self.random.randint(1, 3))]
        joined = " * ".join(f"({f})" for f in factors)
        return joined if self.random.random() < 0.85 else f"{joined} {self.pick('+', '-')} {self.factor()}"

    def reduction(self, name: str, op: str, term: str, index: str = "i") -> str:
        start = {"max": "-inf", "min": "inf", "+": "0", "-": "0"}[op]
        if self.random.random() < 0.1:
            start = {"max": "-2", "min": "2"}.get(op, self.pick("1", "c"))
        at = f"{name}[{index}]"
        update = f"{at} = {op}({at}, {term})" if op in ("max", "min") else f"{at} {op}= {term}"
        if self.random.random() < 0.12:
            update = f"if {self.condition()}:\n    {update}"
        inner = _indented(update)
        loop = "for j in range(l):\n" if self.random.random() > 0.03 else "for j in range(1, l):\n"
        body = f"{at} = {start}\n{loop}{inner}"
        return f"for e in range(2):\n{_indented(body)}" if "e" in index else body

    def program(self) -> str:
        r = self.random
        n, length = r.randint(1, 3), r.choice([1, 2, 5, 8, 11])
        self.op = self.pick("max", "max", "max", "min")
        self.of = self.score()
        stages = [self.reduction("M", self.op, self.of)]
        self.references.append("M[i]")
        if r.random() < 0.3:
            other = self.data() if r.random() < 0.5 else f"{self.data()} {self.pick('-', '+')} M[i]"
            stages.append(self.reduction("N", self.pick("max", "min", "+"), other))
            self.references.append("N[i]")
        if r.random() < 0.7:
            stages.append(self.reduction("Z", "+", self.exponential()))
            self.sums.append("Z[i]")
        if r.random() < 0.25:
            stages.append(f"for j in range(l):\n    P[i, j] = {self.term()}")
            stages.append(self.reduction("A", self.pick("+", "+", "-"), "P[i, j] * V[j]"))
        else:
            stages.append(self.reduction("A", self.pick("+", "+", "+", "-"), self.term()))
        if r.random() < 0.4:
            stages.append(self.reduction("B", "+", f"{self.term()} * W[j, e]", "i, e"))
        if r.random() < 0.12:
            to, of = self.pick("X", "Y", "P"), self.pick("X[i, j] * 2", "Y[i, j]", "0")
            overwrite = f"for j in range(l):\n    {to}[i, j] = {of}"
            stages.insert(r.randint(0, len(stages)), overwrite)
        if r.random() < 0.06:
            k = r.randrange(len(stages) - 1)
            stages[k], stages[k + 1] = stages[k + 1], stages[k]
        nests = self._nests(stages)
        body = "\n".join(f"for i in range({n}):\n{_indented(x)}" for x in nests)
        text = HEAD.format(n=n, l=length) + _indented(body) + "\n"
        return re.sub(r"\bl\)", f"{length})", text)

    def _nests(self, stages: list[str]) -> list[str]:
        nests = [stages[0]]
        together = self.random.random()
        for stage in stages[1:]:
            if self.random.random() < together:
                nests[-1] += "\n" + stage
            else:
                nests.append(stage)
        return nests


def _indented(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())


def check(seed: int, found: Found) -> None:
    """One program with all of its rewrites."""
    text = cascade(seed)
    before = ir.parse(text)
    found.counts["programs"] += 1
    block = Random(seed).choice([1, 2, 3, 8])
    for numerics in ("rescaled", "real"):
        for v in autosched.rewrites(before, numerics=numerics, block=block):
            if v.name not in ("online", "defer"):
                continue
            if v.after is None:
                assert v.reason is not None
                found.counts[f"refused: {v.reason.code}"] += numerics == "rescaled"
            elif numerics == "rescaled" or v.numerics == "real":
                found.counts[f"accepted: {v.name} at {v.numerics}"] += 1
                found.wrong += [(seed, f"{v.name}: {w}") for w in wrong_in(before, v, block, seed)]


def wrong_in(before: Program, found: RewriteVerdict, block: int, seed: int) -> list[str]:
    """How a rewritten program differs by more than it may."""
    assert found.after is not None
    given = {"c": np.float32(Random(seed).choice([0.5, 1.0, -0.5]))}
    wide = {"c": np.float64(given["c"])}
    double, other = (ir.parse(re.sub(r"\b(f32|bf16)\b", "f64", str(p))) for p in (before, found.after))
    for kind in ("random", "ties"):
        data = inputs(before, kind, seed)
        exact = {n: a.astype(np.float64) if a.dtype == np.float32 else a for n, a in data.items()}
        expected, got = run(double, exact, wide), run(other, exact, wide)
        for name in before.written:
            a, b = got[name], expected[name]
            with np.errstate(all="ignore"):
                if found.numerics == "real" or found.name == "defer":
                    a, b = (np.where(np.isfinite(a) & np.isfinite(b), x, 0) for x in (a, b))
                size = np.abs(b[np.isfinite(b)]).max(initial=1.0)
                if not np.allclose(a, b, rtol=1e-6, atol=1e-6 * min(size, 1e6), equal_nan=True):
                    return [f"in f64, {kind}: {name} is {a}, not {b}"]
    if found.name == "defer" or found.numerics == "real":
        return []
    for kind in KINDS:
        data = inputs(before, kind, seed)
        if masked(found) and not all(np.isfinite(data[n]).all() for n in found.finite):
            continue  # as is assumed, and said
        wrong = differences(before, found, data, given, block, kind == "random")
        if wrong:
            return [f"{kind}: {wrong[0]}"]
    return []


def search(first: int, programs: int, seconds: float = math.inf, live: bool = False) -> Found:
    """Checks programs one after the other, until the processor time is used up."""
    found = Found()
    begun = time.process_time()
    for seed in range(first, first + programs):
        if time.process_time() - begun > seconds:
            break
        before = len(found.wrong)
        check(seed, found)
        for at, text in found.wrong[before:] if live else ():
            print(f"WRONG, program {at}: {text}", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--seconds", type=float, default=math.inf, help="processor time after which it stops")
    asked = parser.parse_args()
    found = search(asked.first, asked.programs, asked.seconds, True)
    for what, n in sorted(found.counts.items()):
        print(f"{n:8} {what}")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
