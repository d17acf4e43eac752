"""What keeps a product on CUDA cores is said, and what would help."""

from __future__ import annotations

import pytest
from support.cards.gpu_plans import CATALOGUE

from autosched.cli.answers.wide_factors import wide_factor_lines
from autosched.ir import parse
from autosched.machine.catalogue import load_target
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of

H200 = load_target("nvidia-h200")
PRODUCT = """
def f(X: f32[64, 64], V: f16[64, 64], C: f32[64, 64]):
    P: {kind}[64, 64]
    for i, j in grid(64, 64):
        P[i, j] = {kind}(exp(X[i, j]))
    for i, e in grid(64, 64):
        C[i, e] = 0
        for j in range(64):
            C[i, e] += f32(P[i, j]) * f32(V[j, e])
"""
SAID = (
    "C is computed on CUDA cores: V is f16, and P stays f32; tensor cores take both where the program rounds it to f16"
)


@pytest.mark.parametrize(("kind", "said"), [("f32", [SAID]), ("f16", [])])
def test_a_product_of_a_wide_and_a_narrow_factor(kind: str, said: list[str]) -> None:
    plan = plans_of(TuneRequest(parse(PRODUCT.format(kind=kind)), H200))[1][0]
    assert plan.tensor_parts
    known = CATALOGUE.of_isa("cuda", features=H200.features, kind="compute")
    assert wide_factor_lines(plan, known) == said
