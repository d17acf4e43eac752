"""Outputs written in parts are proved by z3 in threads beside the search, which asks z3 too."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from autosched import ir
from autosched.ir import parse
from autosched.tensorize import Catalogue, match

ROPE = """def f(X: f32[n, d], K: f32[n, d], Y: f32[n, d], *, n={n}, d=6):
    for i in range(n):
        for j in range(d // 2):
            Y[i, 2 * j] = X[i, j] * K[i, j] - X[i, j + d // 2] * K[i, j + d // 2]
            Y[i, 2 * j + 1] = X[i, j] * K[i, j + d // 2] + X[i, j + d // 2] * K[i, j]
"""


def test_threads_ask_beside_the_matcher() -> None:
    """Both once asked in one context of z3, which crashed or answered nonsense."""

    def inputs(n: int) -> frozenset[str]:
        return frozenset(parse(ROPE.format(n=n)).inputs)

    product = ir.workload("matmul", m=64, n=64, k=64, a="u8", b="s8", acc="s32")
    (instruction,) = Catalogue.builtin().select(["x86/vpdpbusd.zmm"])
    with ThreadPoolExecutor(1) as beside:
        asked = [beside.submit(inputs, n) for n in range(1, 25)]
        while not asked[-1].done():
            assert match(product, [instruction])[0].verdict == "match"
    assert {a.result() for a in asked} == {frozenset({"X", "K"})}
