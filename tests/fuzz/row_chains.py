"""Chains of stages over lines: windows of any stride, step and border, products of channels, elementwise stages, some
of them in place, sums with an earlier stage, lines backwards or twice, results in the middle."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from autosched.ir import parse
from autosched.ir.program import Program


@dataclass
class _Chain:
    rng: random.Random
    width: int
    lines: dict[str, int] = field(default_factory=dict)
    """Of each tensor so far."""
    body: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)

    def stage(self, number: int) -> None:
        source = self.rng.choice([*self.lines][-2:])
        name = f"T{number}"
        kinds = [self.window, self.window, self.product, self.elementwise, self.in_place, self.sum, self.odd]
        self.rng.choice(kinds)(name, source)

    def new(self, name: str, lines: int) -> str:
        self.lines[name] = lines
        w = self.width
        return f"    for y, c in grid({lines}, {w}):\n"

    def window(self, name: str, source: str) -> None:
        size, step, stride = self.rng.randint(1, 3), self.rng.randint(1, 2), self.rng.randint(1, 2)
        h, reach = self.lines[source], (size - 1) * step
        top, bottom = self.rng.randint(0, 2), self.rng.randint(0, 2)
        lines = (h + top + bottom - reach - 1) // stride + 1
        if lines < 1:
            self.elementwise(name, source)
            return
        line = f"y * {stride} + r * {step} - {top}"
        guard = f"            if 0 <= {line} < {h}:\n    " if top or bottom else ""
        self.constants.append(f"W{name}: const[f32[{size}]]")
        self.body.append(
            f"{self.new(name, lines)}        {name}[y, c] = 0\n        for r in range({size}):\n"
            f"{guard}            {name}[y, c] += {source}[{line}, c] * W{name}[r]\n"
        )

    def product(self, name: str, source: str) -> None:
        self.constants.append(f"W{name}: const[f32[{self.width}, {self.width}]]")
        self.body.append(
            f"{self.new(name, self.lines[source])}        {name}[y, c] = 0\n        for q in range({self.width}):\n"
            f"            {name}[y, c] += {source}[y, q] * W{name}[q, c]\n"
        )

    def elementwise(self, name: str, source: str) -> None:
        self.body.append(f"{self.new(name, self.lines[source])}        {name}[y, c] = max({source}[y, c], 0.25)\n")

    def in_place(self, name: str, source: str) -> None:
        if source == "X":
            self.elementwise(name, source)
            return
        lines = self.lines[source]
        self.body.append(
            f"    for y, c in grid({lines}, {self.width}):\n        {source}[y, c] = {source}[y, c] * 0.5\n"
        )

    def sum(self, name: str, source: str) -> None:
        same = [t for t, n in self.lines.items() if n == self.lines[source]]
        other = self.rng.choice(same)
        self.body.append(f"{self.new(name, self.lines[source])}        {name}[y, c] = {source}[y, c] - {other}[y, c]\n")

    def odd(self, name: str, source: str) -> None:
        """Reads that are by rows at no pace: backwards, each line twice, another line of what it is."""
        h = self.lines[source]
        read = self.rng.choice(
            [f"{source}[{h - 1} - y, c]", f"{source}[y // 2, c]", f"{source}[y, c] + {source}[0, c]"]
        )
        self.body.append(f"{self.new(name, h)}        {name}[y, c] = {read}\n")

    def outputs(self) -> Iterator[str]:
        names = [t for t in self.lines if t != "X"]
        return (t for t in names if t == names[-1] or self.rng.random() < 0.1)


def random_row_chain(seed: int) -> Program:
    """A chain of two to six stages over few lines."""
    rng = random.Random(seed)
    chain = _Chain(rng, rng.randint(1, 3), {"X": rng.randint(3, 14)})
    for number in range(rng.randint(2, 6)):
        chain.stage(number)
    if len(chain.lines) == 1:
        chain.elementwise("T9", "X")
    out = list(chain.outputs())
    w = chain.width
    tensors = [f"X: f32[{chain.lines['X']}, {w}]", *chain.constants, *(f"{t}: f32[{chain.lines[t]}, {w}]" for t in out)]
    inner = [f"    {t}: f32[{n}, {w}]\n" for t, n in chain.lines.items() if t != "X" and t not in out]
    return parse(f"def f({', '.join(tensors)}):\n{''.join(inner)}{''.join(chain.body)}", filename="f.py")
