"""Simplified indices have the value of what was written, at every point of the ranges."""

from __future__ import annotations

import itertools
import random

import pytest

from autosched.codegen.cuda.simplify import Simplifier
from autosched.logic import Binary, Bool, Const, Int, Var, evaluate, maximum, minimum
from autosched.tiling.steps.gpu.operands.shared_layout import exclusive_or

RANGES = {"f": (0, 63), "u": (-2, 3), "t": (0, 31)}
F, U, T = Var("f"), Var("u"), Var("t")


def drawn(rng: random.Random, depth: int) -> Int:
    if depth == 0:
        return rng.choice([F, U, T, Const(rng.randint(-3, 9))])
    a, b, c = drawn(rng, depth - 1), drawn(rng, depth - 1), rng.choice([1, 2, 3, 4, 8, 16])
    return rng.choice([a + b, a - b, a * c, a // c, a % c, minimum(a, b), maximum(a, b)])


def test_random_expressions_keep_their_value() -> None:
    rng = random.Random(0)
    simplifier = Simplifier(RANGES)
    for _ in range(400):
        node = drawn(rng, 5)
        limit = rng.randint(-5, 60)
        conditions: list[Bool] = [node < limit, node >= limit, node.eq(limit)]
        short, shorter = simplifier.number(node), [simplifier.condition(c) for c in conditions]
        for _ in range(15):
            env = {n: rng.randint(*r) for n, r in RANGES.items()}
            assert evaluate(short, env) == evaluate(node, env), (str(node), str(short), env)
            for long, brief in zip(conditions, shorter, strict=True):
                assert bool(evaluate(brief, env)) == bool(evaluate(long, env)), (str(long), str(brief), env)


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ((F + U * 64) % 4, "f % 4"),
        (F // 4 * 4 + F % 4, "f"),
        ((F % 4 * 8 + 5) // 8, "f % 4"),
        (F % 2 + F // 2 % 4 * 2, "f % 8"),
        (minimum(T, 40), "t"),
        ((T * 8 + F % 8) // 16, "t // 2"),
    ],
)
def test_what_copies_and_fragments_ask_for_gets_short(node: Int, said: str) -> None:
    assert str(Simplifier(RANGES).number(node)) == said


def test_comparisons_that_say_the_same_look_the_same() -> None:
    simplifier = Simplifier(RANGES)
    assert simplifier.condition(F * 8 + T % 4 * 2 + 1 < 20) == simplifier.condition(F * 8 + T % 4 * 2 < 20)
    assert simplifier.condition(F * 8 + T % 4 * 2 + 1 < 21) != simplifier.condition(F * 8 + T % 4 * 2 < 21)


def test_a_swizzle_is_an_exclusive_or() -> None:
    node = exclusive_or(F % 4, T // 2 % 4, 4)
    short = Simplifier(RANGES).number(node)
    assert isinstance(short, Binary)
    assert (str(short.left), short.op, str(short.right)) == ("f % 4", "^", "t // 2 % 4")
    plain = exclusive_or(F % 4, Const(0) % 4, 4)
    for f, t in itertools.product(range(8), range(8)):
        assert evaluate(node, {"f": f, "t": t}) == (f % 4) ^ (t // 2 % 4)
        assert evaluate(Simplifier(RANGES).number(plain), {"f": f}) == f % 4
