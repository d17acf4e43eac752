"""Registers that a thread needs at once, where rows are held in registers: a buffer counts from what is written to it
first until it is read last, so that what a stage makes of sums takes their place."""

from __future__ import annotations

from collections.abc import Mapping

from autosched.codegen.tree.kernel import Assign, For, IntrinsicCall, Stmt, bodies
from autosched.ir.value import Read, walk

Span = tuple[int, int]


def most_live(body: tuple[Stmt, ...], sizes: Mapping[str, int]) -> int:
    """The most registers, of buffers of these `sizes`, that statements have use for at one point of them."""
    found = _Spans(sizes)
    found.body(body)
    ends: dict[int, int] = {}
    for name, (first, last) in found.spans.items():
        ends[first] = ends.get(first, 0) + sizes[name]
        ends[last] = ends.get(last, 0) - sizes[name]
    most = live = 0
    for at in sorted(ends):
        live += ends[at]
        most = max(most, live)
    return most


class _Spans:
    """From where to where each buffer is in use. A statement reads at one point, and writes at the next."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes, self.at = sizes, 0
        self.spans: dict[str, Span] = {}

    def body(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            self.at += 2
            match stmt:
                case Assign():
                    self.touch({n.tensor for n in walk(stmt.value) if isinstance(n, Read)}, self.at)
                    self.touch({stmt.buffer}, self.at + 1)
                case IntrinsicCall():
                    self.touch({r.buffer for r in stmt.operands.values()}, self.at)
                case For(kind="serial"):
                    self.loop(stmt)
                case _:
                    for inner in bodies(stmt):
                        self.body(inner)

    def loop(self, loop: For) -> None:
        """What is in use in front of a loop and in it, or read in it before it is written, is so all the while."""
        begin, before = self.at, set(self.spans)
        inside = _Spans(self.sizes)
        inside.at = begin
        inside.body(loop.body)
        self.at = inside.at + 2
        for name, (first, last) in inside.spans.items():
            carried = name in before or first % 2 == 0
            self.touch({name}, begin if carried else first)
            self.touch({name}, self.at if carried else last)

    def touch(self, names: set[str], at: int) -> None:
        for name in names & self.sizes.keys():
            first, last = self.spans.get(name, (at, at))
            self.spans[name] = min(first, at), max(last, at)
