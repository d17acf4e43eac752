"""Loops of a program may be called as generated code calls its own: kernels are the same but for names, and right."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Mapping
from keyword import iskeyword

import numpy as np
import pytest
from support.cards.gpu_plans import H200
from support.match.agreement import disagreement, expect
from support.plans import machine

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import For, Kernel, statements
from autosched.codegen.tree.text import print_statement
from autosched.ir import parse
from autosched.ir.parser.scope import is_word
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.search.tuning.tune import usable
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.plan import Plan, TileLoopsPart
from autosched.tiling.steps import is_gpu

ROWS = """
def rows(A: f32[m, k], B: const[f32[k, n]], C: f32[m, n], *, m=16, n=32, k=8):
    T: f32[m, n]
    S: f32[m]
    for q in range(2):
        for i, j in grid(m, 16):
            T[i, q * 16 + j] = 0
            for p in range(k):
                T[i, q * 16 + j] += A[i, p] * B[p, q * 16 + j]
        for x in range(m):
            S[x] = 0
            for y in range(16):
                S[x] += max(T[x, q * 16 + y], 0.0) if y <= q * 16 + x else 1.0
        for z, w in grid(m, 16):
            C[z, q * 16 + w] = S[z] * max(T[z, q * 16 + w], 0.0) + f32(q)
"""
CHAIN = """
def chain(A: f32[2, 32, 16], B: f32[2, 24, 16], O: f32[2, 32], *, k=16):
    S: f32[8, 8]
    G: f32[8]
    for h, q in grid(2, 4):
        for i in range(8):
            G[i] = 0
        for c in range(min(q + 1, 3)):
            for x, j in grid(8, 8):
                S[x, j] = 0
                for p in range(k):
                    S[x, j] += A[h, q * 8 + x, p] * B[h, c * 8 + j, p]
            for y in range(8):
                for w in range(8):
                    G[y] += S[y, w] if w + c * 8 <= y + q * 8 else 0.0
        for z in range(8):
            O[h, q * 8 + z] = G[z] * f32(q)
"""
TURNS = 6


def loops_of(text: str) -> list[str]:
    """The names of a program's loops."""
    loops = [n.target for n in ast.walk(ast.parse(text)) if isinstance(n, ast.For)]
    return [n.id for t in loops for n in ast.walk(t) if isinstance(n, ast.Name)]


def renamed(text: str, to: Mapping[str, str]) -> str:
    return re.sub(r"\b[a-z]+\b", lambda m: to.get(m[0], m[0]), text)


def planned(program: Program, target: Target) -> Plan:
    """The first plan in tile loops."""
    catalogue, backend = Catalogue.builtin(), "cuda" if is_gpu(target) else "cpu"
    found = plan_program(program, target, catalogue, usable(catalogue, target, backend, ()), threads=1)
    return next(p for p in found.every if any(isinstance(part, TileLoopsPart) for part in p.parts))


def shape(kernel: Kernel) -> str:
    """A kernel's statements without the names of loops and the remarks."""
    loops = {s.var for s in statements(kernel.main.body) if isinstance(s, For)}
    lines = (line.partition("#")[0] for s in kernel.main.body for line in print_statement(s).splitlines())
    return re.sub(r"\b[a-z_]\w*\b(?!=)", lambda m: "v" if m[0] in loops else m[0], "\n".join(lines))


@pytest.mark.sampled("rows-cpu")
@pytest.mark.parametrize("target", [machine(), H200], ids=["cpu", "gpu"])
@pytest.mark.parametrize("text", [ROWS, CHAIN], ids=["rows", "chain"])
def test_any_name_of_generated_code_may_be_a_loops(text: str, target: Target) -> None:
    given, rng = planned(parse(text, filename="f.py"), target), random.Random(42)
    ids = given.space.sample(2, np.random.default_rng(0)).tolist()
    kernels = [lower(given, given.space.schedule(row)) for row in ids]
    used = {s.var for k in kernels for s in statements(k.main.body) if isinstance(s, For)}
    for _ in range(TURNS):
        loops = loops_of(text)
        made = [f"{name}{letter}" for name in loops for letter in "btruvsfg"]
        usable_names = {n for n in {*used, *made, "part", "share", "chunk"} if not iskeyword(n) and not is_word(n)}
        new = rng.sample(sorted(usable_names), len(loops))
        # some keep their names, so that others may be called after them
        to = {old: old if rng.random() < 0.4 else name for old, name in zip(loops, new, strict=True)}
        if len(set(to.values())) < len(loops):
            continue
        program = parse(renamed(text, to), filename="f.py")
        plan = planned(program, target)
        assert disagreement(plan, ids, expect(program)) is None, to
        for row, kernel in zip(ids, kernels, strict=True):
            assert shape(lower(plan, plan.space.schedule(row))) == shape(kernel), to
