"""Teams of warps: which stages they take, that every row computes the oracle's numbers, what the space refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.cards.gpu_plans import CATALOGUE, H200, covering
from support.compiled.kernel_check import check_kernel

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Assign, For, statements
from autosched.codegen.tree.text import print_kernel
from autosched.costmodel.analytic.clock import clock
from autosched.device.correctness.oracle import compute
from autosched.device.simulator.verify.verify import check
from autosched.ir import parse, resolve
from autosched.ir.program import Program
from autosched.ir.value import Call, reads, walk
from autosched.search.tuning.tune import usable
from autosched.tensorize.matcher.match import match
from autosched.tensorize.spec.programs.function import formulas_of
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.plans.float_policy import FloatPolicy
from autosched.tiling.plans.plan import Plan, ScalarPart, WarpCooperativePart
from autosched.tiling.space.request import request
from autosched.tiling.variants.conditional import candidates_of

FORMULAS = formulas_of(CATALOGUE.of_isa("cuda", "portable", kind="function"))
TEXTS = {
    "two axes": """
def group_norm(X: f32[n, g, c, p], Y: f32[n, g, c, p], *, n=2, g=3, c=5, p=7):
    M: f32[n, g]
    for b, h in grid(n, g):
        M[b, h] = 0
        for i, j in grid(c, p):
            M[b, h] += X[b, h, i, j]
        for i2, j2 in grid(c, p):
            Y[b, h, i2, j2] = X[b, h, i2, j2] - M[b, h] / f32(c * p)
""",
    "loops apart": """
def mean(X: f32[m, n], Y: f32[m], S: f32[m], *, m=5, n=67):
    for i in range(m):
        S[i] = 0
        for j in range(n):
            S[i] += X[i, j] * X[i, j]
    for k in range(m):
        Y[k] = sqrt(S[k])
""",
    "in place": """
def scaled(X: f32[m, n], S: f32[m], *, m=3, n=41):
    for i in range(m):
        S[i] = 1
        for j in range(n):
            S[i] = max(S[i], abs(X[i, j]))
        for k in range(n):
            X[i, k] = X[i, k] / S[i]
""",
    "a start that is read": """
def onto(X: s8[m, n], B: s32[n], Y: s32[n], *, m=37, n=45):
    for j in range(n):
        Y[j] = B[j]
        for i in range(m):
            Y[j] -= s32(X[i, j])
""",
    "a start of the row": """
def onto(X: s8[m, n], B: s32[m], Y: s32[m], *, m=6, n=300):
    for i in range(m):
        Y[i] = B[i]
        for j in range(n):
            Y[i] -= s32(X[i, j])
""",
    "one number": """
def dot(A: f16[n], B: f16[n], C: f32[o], *, n=1500, o=1):
    for i in range(o):
        C[i] = 0
        for j in range(n):
            C[i] += f32(A[j]) * f32(B[j])
""",
    "turned": """
def turned(A: f32[m, n], B: f32[n, m], *, m=40, n=67):
    for j, i in grid(n, m):
        B[j, i] = A[i, j] + 1
""",
    "turned and added": """
def turned(A: f16[b, m, n], C: f16[b, n, m], D: f16[m], E: f32[b, n, m], *, b=2, m=33, n=36):
    for z, j, i in grid(b, n, m):
        C[z, j, i] = A[z, i, j] + D[i]
    for z2, j2, i2 in grid(b, n, m):
        E[z2, j2, i2] = f32(C[z2, j2, i2]) * f32(A[z2, i2, j2])
""",
    "chain": """
def chain(A: u8[n], B: u8[n], C: s32[n], *, n=1111):
    for i in range(n):
        B[i] = A[i] + 3
    for j in range(n):
        C[j] = s32(B[j]) * 2
""",
    "a factor of the result": """
def scaled(A: f32[k], X: f32[k, n], B: f32[n], C: f32[n], D: f32[n], *, k=19, n=45):
    for j in range(n):
        C[j] = 0
        for p in range(k):
            C[j] += A[p] * X[p, j] * B[j]
    for l in range(n):
        D[l] = C[l] + B[l]
""",
    "a border": """
def mean(X: s16[h, w, c], Y: s32[h, w, c], *, h=5, w=6, c=11):
    for y, x, k in grid(h, w, c):
        Y[y, x, k] = 0
        for r, s in grid(3, 3):
            if 0 <= y + r - 1 < h and 0 <= x + s - 1 < w:
                Y[y, x, k] += s32(X[y + r - 1, x + s - 1, k])
""",
    "a triangle": """
def below(X: f32[n, n], Y: f32[n], *, n=40):
    for i in range(n):
        Y[i] = 0
        for j in range(n):
            if j <= i:
                Y[i] += X[i, j]
""",
    "some elements": """
def some(A: f32[m, n], B: f32[m, n], *, m=6, n=21):
    for i, j in grid(m, n):
        if i + j < 20:
            B[i, j] = A[i, j + 0] * 2
""",
    "a start without a sum": """
def outer(A: u8[m], B: s8[n], C: s32[m, n], *, m=5, n=21):
    for i, j in grid(m, n):
        C[i, j] = 3
        C[i, j] += s32(A[i]) * s32(B[j])
""",
    "pooling": """
def pool(X: f32[h, w, c], Y: f32[ho, wo, c], *, h=9, w=8, c=6, ho=4, wo=4):
    for y, x, k in grid(ho, wo, c):
        Y[y, x, k] = -inf
        for r, s in grid(3, 2):
            Y[y, x, k] = max(Y[y, x, k], X[y * 2 + r, x * 2 + s, k])
""",
}
WORKLOADS: dict[str, tuple[str, dict[str, Any]]] = {
    "softmax": ("softmax", {"m": 5, "n": 77}),
    "softmax f16": ("softmax", {"m": 3, "n": 264, "t": "f16"}),
    "layer norm": ("layer_norm", {"m": 3, "n": 96}),
    "long sum": ("reduce", {"op": "sum", "over": "rows", "m": 1, "n": 3000}),
    "sum of columns": ("reduce", {"op": "sum", "over": "columns", "m": 150, "n": 37}),
    "maxima": ("reduce", {"op": "max", "over": "rows", "m": 7, "n": 130}),
    "gemv": ("gemv", {"m": 7, "k": 130, "a": "f16", "b": "f16", "out": "f16"}),
    "one row": ("matmul", {"m": 1, "n": 72, "k": 90, "a": "f16", "b": "f16", "out": "f16"}),
    "depthwise in tiles": ("depthwise_conv2d", {"h": 4, "w": 8, "c": 24, "t": "f16", "out": "f16"}),
    "depthwise": ("depthwise_conv2d", {"h": 5, "w": 6, "c": 24, "t": "f16", "out": "f16"}),
    "bias": ("elementwise", {"op": "bias", "m": 5, "n": 44}),
    "sigmoid": ("elementwise", {"op": "sigmoid", "m": 5, "n": 43, "t": "bf16"}),
}


def program_of(name: str) -> Program:
    if name in TEXTS:
        return parse(TEXTS[name])
    workload, sizes = WORKLOADS[name]
    return resolve(workload, sizes)


def plan_of(name: str, policy: FloatPolicy = FloatPolicy(formulas=FORMULAS)) -> Plan:
    return make_plans(program_of(name), H200, {}, 1, policy)[0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [*TEXTS, *WORKLOADS])
def test_rows_compute_the_oracles_numbers(name: str) -> None:
    plan = plan_of(name)
    (part,) = plan.parts
    assert isinstance(part, WarpCooperativePart)
    oracle = compute(plan.program, 0)
    for row in covering(plan):
        kernel = lower(plan, plan.space.schedule(row))
        check_kernel(kernel)
        difference = check(kernel, oracle)
        assert difference.ok, (plan.space.schedule(row).named, difference)


def test_lanes_lie_where_memory_is_contiguous() -> None:
    """Rows are summed along lanes, columns beside each other; a product's lanes follow its matrix."""
    across = {n: part.across for n in WORKLOADS for part in plan_of(n).parts if isinstance(part, WarpCooperativePart)}
    assert {n for n, along in across.items() if along} == {
        "softmax", "softmax f16", "layer norm", "long sum", "maxima", "gemv",
    }  # fmt: skip


def test_a_row_is_read_and_its_exponentials_are_computed_once() -> None:
    plan = make_plans(resolve("softmax", {"m": 3, "n": 256, "t": "f16"}), H200, {}, 1)[0]
    for hold, passes, calls in (("registers", 1, 1), ("read again", 3, 2)):
        row = request(plan.space, {"M.hold": hold, "M.vector": 4}).row
        assert row is not None
        kernel = lower(plan, plan.space.schedule(row))
        found = [s for s in statements(kernel.main.body) if isinstance(s, Assign)]
        assert sum("X" in {r.tensor for r in reads(s.value)} for s in found) == passes
        assert sum(any(isinstance(n, Call) and n.function == "exp" for n in walk(s.value)) for s in found) == calls


def test_a_sum_is_shared_out_among_blocks_by_two_grids() -> None:
    plan = plan_of("long sum")
    row = request(plan.space, {"split": 4, "vector": 4, "warps": 2}).row
    assert row is not None
    kernel = lower(plan, plan.space.schedule(row))
    first, second = (s for s in kernel.main.body if isinstance(s, For))
    assert (first.kind, second.kind) == ("block.y", "block.x")
    assert kernel.buffers["Y_shares"].scope == "workspace"


def test_results_of_a_thread_share_what_they_read() -> None:
    """Four pixels in a line want six of X for each line of the window, and each weight once."""
    plan = plan_of("depthwise in tiles")
    row = request(plan.space, {"S.vector": 4, "S.each_y": 1, "S.each_x": 4}).row
    assert row is not None
    kernel = lower(plan, plan.space.schedule(row))
    found = [r.tensor for s in statements(kernel.main.body) if isinstance(s, Assign) for r in reads(s.value)]
    assert (found.count("X"), found.count("W")) == (18, 9)


def test_bitwise_sums_stay_in_order() -> None:
    """No float sum is shared out among lanes or warps; a maximum is."""
    plan = plan_of("sum of columns", FloatPolicy(reassociate=False))
    assert {d.name: d.domain for d in plan.space.decisions if d.name in ("warps", "split")} == {"warps": (1,)}
    (rows,) = plan_of("long sum", FloatPolicy(reassociate=False)).parts
    assert isinstance(rows, WarpCooperativePart)
    assert not rows.across
    (maxima,) = plan_of("maxima", FloatPolicy(reassociate=False)).parts
    assert isinstance(maxima, WarpCooperativePart)
    assert maxima.across


def test_what_passes_between_threads_is_no_one_team() -> None:
    program = parse("""
def mirrored(A: f32[n], B: f32[n], C: f32[n], *, n=40):
    for i in range(n):
        B[i] = A[i] * 2
    for j in range(n):
        C[j] = B[39 - j]
""")
    parts = make_plans(program, H200, {}, 1)[0].parts
    assert [len(p.members) for p in parts if isinstance(p, WarpCooperativePart)] == [1, 1]


def test_guarded_stages_are_left_to_single_threads() -> None:
    program = parse("""
def masked(A: f32[n], M: s32[n], B: f32[n], *, n=40):
    for i in range(n):
        if M[i] > 0:
            B[i] = A[i]
""")
    (part,) = make_plans(program, H200, {}, 1)[0].parts
    assert isinstance(part, ScalarPart)


def test_the_clock_prefers_several_pixels_a_thread() -> None:
    """Measured on an H100 (f16, 32x112x112x64): 46 us with 2 by 4 pixels, 61 with one."""
    program = resolve("depthwise_conv2d", {"n": 32, "h": 112, "w": 112, "c": 64, "t": "f16", "out": "f16"})
    plan = next(p for p in make_plans(program, H200, {}, 1) if p.name.startswith("S+Y"))
    one, several = ({"S.vector": 4, "S.rows": 8, "S.each_y": y, "S.each_x": x} for y, x in ((1, 1), (2, 4)))
    rows = [request(plan.space, wanted).row for wanted in (one, several)]
    alone, together = clock(plan, plan.space.values(np.asarray(rows)))["total"]
    assert together < 0.95 * alone
    assert together < 60e-6


def test_the_clock_prefers_coalesced_reads_and_enough_blocks() -> None:
    def seconds(program: Program, **wanted: Any) -> float:
        plan = make_plans(program, H200, {}, 1)[0]
        row = request(plan.space, wanted).row
        assert row is not None
        return float(clock(plan, plan.space.values(np.asarray([row])))["total"][0])

    whole = resolve("reduce", {"op": "sum", "over": "rows", "m": 1, "n": 1 << 22})
    assert seconds(whole, split=64, warps=8) < seconds(whole, split=1, warps=8) / 10
    softmax = resolve("softmax", {"m": 4096, "n": 4096})
    wide: dict[str, Any] = {"M.vector": 4, "M.warps": 8}
    assert seconds(softmax, **wide, **{"M.hold": "registers"}) < seconds(softmax, **wide, **{"M.hold": "read again"})
    turned = parse(TEXTS["turned"].replace("m=40, n=67", "m=4096, n=4096"))
    assert seconds(turned, tile=32, warps=8) < seconds(turned, tile=0, vector=4) / 1.5


def test_text_of_a_row() -> None:
    plan = plan_of("loops apart")
    row = request(plan.space, {"S.vector": 2, "S.warps": 1}).row
    assert row is not None
    text = print_kernel(lower(plan, plan.space.schedule(row)))
    assert "S_sum[warp, :32] = S_acc[warp, e * 2] + S_acc[warp, e * 2 + 1]  for e in 0..32" in text
    assert "Y_row[warp, 0] = sqrt(S_row[warp, 0])" in text


def test_one_row_of_a_product_is_laid_out_without_instructions_too() -> None:
    """Memory is the limit there; with many rows it is not."""
    for rows, beside in ((1, True), (256, False)):
        sizes = {"m": rows, "n": 4096, "k": 4096, "a": "bf16", "b": "bf16", "acc": "f32", "out": "bf16"}
        program = resolve("matmul", {**sizes, "tb": 1})
        found = match(program, usable(CATALOGUE, H200, "simulator", ["cuda/mma.m16n8k16.*"]))
        chosen = make_plans(program, H200, candidates_of(found))
        assert any(p.tensor_parts for p in chosen)
        assert any(not p.tensor_parts for p in chosen) == beside


def test_an_element_that_is_not_there_is_not_read() -> None:
    """Rows with zeros behind them: threads of a team would read past the last row's end."""
    text = """
def longer(A: f32[m, n], B: f32[m, 40], *, m=6, n=37):
    for i, j in grid(m, 40):
        B[i, j] = A[i, j] if j < n else 0
"""
    (part,) = make_plans(parse(text), H200, {}, 1)[0].parts
    assert isinstance(part, ScalarPart)
    inside = text.replace("A[i, j] if j < n", "A[i, 0] if j < n")
    (part,) = make_plans(parse(inside), H200, {}, 1)[0].parts
    assert isinstance(part, WarpCooperativePart)
