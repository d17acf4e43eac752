"""No two rows of a space are one kernel: decisions without effect are held at their first value.

Rows are drawn from all plans of a program, each with neighbours that differ from it in one decision, where two alike
are most likely to be found.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autosched import api
from autosched.codegen.lower import lower
from autosched.codegen.tree.text import print_kernel
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of

S8 = {"a": "s8", "b": "s8", "acc": "s32"}
F16 = {"a": "f16", "b": "f16", "acc": "f32"}
FP8 = {"a": "e4m3", "b": "e4m3", "acc": "f32"}
CPU, CARD = "x86-avx512", "nvidia-h200"
CASES: dict[str, tuple[str, dict[str, Any], str, tuple[str, ...]]] = {
    "matmul": ("matmul", {"m": 96, "n": 80, "k": 72}, CPU, ()),
    "small matmul": ("matmul", {"m": 3, "n": 5, "k": 7}, CPU, ()),
    "bytes": ("matmul", {"m": 17, "n": 33, "k": 9, "a": "u8", "b": "s8", "acc": "s32"}, CPU, ()),
    "fused": ("matmul_bias_gelu", {"m": 64, "n": 96, "k": 64}, CPU, ()),
    "conv2d": ("conv2d", {"h": 7, "w": 7, "ci": 3, "co": 20, "t": "f32", "acc": "f32"}, CPU, ()),
    "depthwise": ("depthwise_conv2d", {"h": 7, "w": 9, "c": 20}, CPU, ()),
    "softmax": ("softmax", {"m": 3, "n": 20}, CPU, ()),
    "layer norm": ("layer_norm", {"m": 6, "n": 200}, CPU, ()),
    "gemv": ("gemv", {"m": 5, "k": 90}, CPU, ()),
    "add": ("elementwise", {"op": "add", "m": 3, "n": 20}, CPU, ()),
    "sum of rows": ("reduce", {"op": "sum", "over": "rows", "m": 3, "n": 20}, CPU, ()),
    "sum of columns": ("reduce", {"op": "sum", "over": "columns", "m": 3, "n": 20}, CPU, ()),
    "wgmma": ("matmul_nt", {"m": 256, "n": 128, "k": 256, **F16}, CARD, ("cuda/wgmma.m64n64k16.f16.f32",)),
    "wgmma e4m3": ("matmul_nt", {"m": 128, "n": 64, "k": 512, **FP8}, CARD, ("cuda/wgmma.m64n64k32.e4m3.e4m3.f32",)),
    "mma": ("matmul", {"m": 40, "n": 24, "k": 48, **F16}, CARD, ("cuda/mma.m16n8k16.f16.f16.f32",)),
    "wmma": ("matmul", {"m": 128, "n": 128, "k": 128, **F16}, CARD, ("cuda/wmma.m16n16k16.f16.f32",)),
    "dp4a": ("matmul_nt", {"m": 9, "n": 70, "k": 84, **S8}, CARD, ("cuda/dp4a*",)),
    "cuda cores": ("matmul", {"m": 30, "n": 70, "k": 50}, CARD, ("cuda/fma*",)),
    "softmax on a card": ("softmax", {"m": 3, "n": 500}, CARD, ()),
    "sum on a card": ("reduce", {"op": "sum", "over": "columns", "m": 70, "n": 50}, CARD, ()),
}
PLANS, ROWS, NEAR = 3, 2, 8
"""Plans of a program, rows of each, and neighbours of each row."""


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_rows_have_sources_of_their_own(case: str) -> None:
    workload, sizes, target, only = CASES[case]
    numerics = "real" if sizes.get("a") == "e4m3" else "reassociated"
    program = api.workload(workload, **sizes)
    asked = TuneRequest(program, api.target(target), device="simulator", only=only, numerics=numerics)
    _, plans = plans_of(asked)
    rng = np.random.default_rng(0)
    seen: dict[str, str] = {}
    count = 0
    for plan in (plans[n] for n in rng.permutation(len(plans))[:PLANS]):
        rows = {int(row) for row in plan.space.sample(ROWS, rng)}
        for row in sorted(rows):
            rows |= {int(r) for r in rng.permutation(plan.space.neighbours(row))[:NEAR]}
        for row in sorted(rows):
            text = print_kernel(lower(plan, plan.space.schedule(row)))
            body = text[text.index("buffers") :]
            here = f"{plan.name}: {plan.space.schedule(row)}"
            assert body not in seen, f"one kernel:\n{seen[body]}\n{here}"
            seen[body] = here
            count += 1
    assert count >= 4
