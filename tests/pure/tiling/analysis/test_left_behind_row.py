"""Whether stages leave in a tensor what others read: programs by hand, and random ones beside what they read."""

from __future__ import annotations

import re
from collections.abc import Collection
from random import Random

import pytest
from support.loop_trace import run

from autosched.ir import parse
from autosched.ir.prepared import assigns
from autosched.ir.program import Program
from autosched.tiling.analysis.accesses import statements
from autosched.tiling.analysis.left_behind import left_behind

HEAD = """
def f(X: f32[m, k], D: s32[m], Y: f32[m, k], Z: f32[m, k], *, m=3, k=4):
    T: f32[m, k]
    for b in range(2):
        for i, j in grid(m, k):
            T[i, j] = X[i, j]
        for i, j in grid(m, k):
            Y[i, j] = T[i, j]
"""
"""The stages that are asked about are `T` and `Y`."""

BEHIND = {
    "nothing": ("", False),
    "a read": ("    for i, j in grid(m, k):\n        Z[i, j] = T[i, j]\n", True),
    "set in the same iteration": (
        "    for i in range(m):\n        if D[i] != 0:\n            for j in range(k):\n"
        "                T[i, 0] = 0\n                for p in range(k):\n                    T[i, 0] += X[i, p]\n"
        "                Z[i, j] = T[i, 0]\n",
        False,
    ),
    "another element is set": ("    for i in range(m):\n        T[i, 0] = 0\n        Z[i, 0] = T[i, 1]\n", True),
    "an update": ("    for i in range(m):\n        T[i, 0] += 1.0\n        Z[i, 0] = 1.0\n", True),
    "set where a guard holds": (
        "    for i in range(m):\n        if D[i] != 0:\n            T[i, 0] = 0\n        Z[i, 0] = T[i, 0]\n",
        True,
    ),
    "in its own value": ("    for i in range(m):\n        T[i, 0] = T[i, 0] + 1.0\n        Z[i, 0] = T[i, 0]\n", True),
}


@pytest.mark.parametrize("what", BEHIND)
def test_what_is_behind(what: str) -> None:
    text, left = BEHIND[what]
    program = parse(HEAD + text)
    assert left_behind(program, "T", {"T", "Y"}) == left


IN_TURN = """
def f(X: f32[m], Z: f32[m], *, m=3):
    T: f32[m]
    BEFORE
    for b in range(2):
        for q in range(m):
            FIRST
            Z[q] = T[0]
        for i in range(m):
            T[i] = X[i]
"""


@pytest.mark.parametrize(("where", "left"), [("FIRST", False), ("BEFORE", True)])
def test_what_is_read_in_the_next_iteration(where: str, left: bool) -> None:
    program = parse(re.sub("FIRST|BEFORE", lambda m: "T[0] = 1.0" if m[0] == where else "X[0] = 1.0", IN_TURN))
    own = next(s.name for s in program.stages if s.reads and s.assign.tensor == "T")
    assert left_behind(program, "T", {own}) == left


def test_random_programs() -> None:
    """No run reads what is said to be left to nobody; which is said of many."""
    r, nobody = Random(0), 0
    for _ in range(1500):
        program = random_program(r)
        writers = [s.name for s in program.stages if s.assign.tensor == "T"]
        own = set(r.sample(writers, r.randint(1, len(writers)))) if writers else set()
        said = left_behind(program, "T", own)
        assert said or not reads_what_they_left(program, own), f"{own}\n{program}"
        nobody += bool(own) and not said
    assert nobody > 60


def random_program(r: Random) -> Program:
    """Nests of up to three loops, with guards, around uses of a few elements."""
    number = 0

    def body(depth: int, names: list[str]) -> list[str]:
        nonlocal number
        lines: list[str] = []
        for _ in range(r.randint(1, 3)):
            kind, indent = r.random(), "    " * depth
            if kind < 0.4 and depth < 4:
                number += 1
                head = f"{indent}for a{number} in range({r.randint(1, 3)}):"
                lines += [head, *body(depth + 1, [*names, f"a{number}"])]
            elif kind < 0.5 and names and depth < 4:
                lines += [f"{indent}if {r.choice(names)} < {r.randint(1, 2)}:", *body(depth + 1, names)]
            else:
                place = f"{r.choice([*names[-2:], '0', '0'])}, 0"
                form = r.choice(["T[{}] = 1.0", "T[{}] = 2.0", "T[{}] += 3.0", "Z[{}] = T[{}]", "T[{}] = T[{}] + 1.0"])
                lines.append(indent + form.replace("{}", place))
        return lines

    text = "\n".join(body(1, []))
    return parse(f"def f(X: f32[4], Z: f32[4, 4]):\n    T: f32[4, 4]\n    Z[3, 3] = 0\n    T[3, 3] = 0\n{text}\n")


def reads_what_they_left(program: Program, own: Collection[str]) -> bool:
    """Whether another stage reads an element that one of these wrote, and that no other has set since."""
    every = [a for s in program.body for a in assigns(s)]
    mine = {id(a): s.stage in own for a, s in zip(every, statements(program), strict=True)}
    left = set()
    for instance in run(program.body, {}):
        assign, written = instance.assign, instance.write
        if mine[id(assign)]:
            left |= {written} if assign.tensor == "T" else set()
        elif instance.reads & left or (assign.op != "=" and written in left):
            return True
        else:
            left.discard(written)
    return False
