"""Programs that are no plain products, on the emulated card: those that found something, and random ones
(`AUTOSCHED_EXAMPLES=200` draws that many)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from support.cards.gpu_plans import H200
from support.cards.hand_kernels import needs_compiler
from support.compiled.kernel_check import check_kernel
from support.match.agreement import expect
from support.match.examples import examples
from support.plans import plans_of as tensor_plans
from support.programs.lower_programs import lowered_texts

from autosched.codegen.cuda.emulation import run_printed
from autosched.codegen.lower import lower
from autosched.errors import AutoschedError
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.request import request

pytestmark = [needs_compiler, pytest.mark.compiler]
TEXTS = {
    # Subscripts that are data were cast to a type that device code does not know.
    "gathered rows": """
def f(E: f32[11, n], I: s32[m], Y: f32[m, n], S: f32[m], *, m=9, n=8):
    assume(0 <= I <= 10)
    for i, j in grid(m, n):
        Y[i, j] = E[I[i], j] + 1.0
    for i in range(m):
        S[i] = 0
        for j in range(n):
            S[i] += Y[i, j]
""",
    # A grid has no bounds that move: the elements of a row asked, and no block had them.
    "asked in a triangle": """
def f(A: f32[10, 20], B: f32[16, 20], F: u8[10, 16], Y: f32[10, 16]):
    for i in range(10):
        for j in range(i, 16):
            if F[i, j] != 0:
                for p in range(20):
                    Y[i, j] += A[i, p] * B[j, p]
""",
    # Each thread asks of 16 elements.
    "asked in runs": """
def f(A: f32[5, 20], B: f32[32, 20], F: u8[5, 32], Y: f32[5, 32]):
    for i, j in grid(5, 32):
        if F[i, j] > 127:
            for p in range(20):
                Y[i, j] += A[i, p] * B[j, p]
""",
    # Bounds that depend on other axes have no extent, which the plans with turned operands asked for.
    "triangle of bytes": """
def f(A: s8[m, m], B: s8[m, n], C: s32[m, n], *, m=12, n=34):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(i, m):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
""",
    # Which lane holds which element of a WMMA fragment nobody knows: none can be dropped for itself.
    "corner left out": """
def f(A: f16[m, k], B: f16[k, n], C: f32[m, n], *, m=17, n=18, k=16):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            if i + j < 20:
                C[i, j] += f32(A[i, p]) * f32(B[p, j])
""",
    # A sum of one term has no depth to be cut into slices.
    "one term": """
def f(A: f32[m, 1], B: f32[1, n], C: f32[m, n], *, m=9, n=10):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(1):
            C[i, j] += A[i, p] * B[p, j]
""",
}


def check(plans: Sequence[Plan], program: Program, seed: int) -> None:
    """A random row of each plan."""
    expected, rng = expect(program, seed), np.random.default_rng(seed)
    for plan in plans:
        kernel = lower(plan, plan.space.schedule(int(plan.space.sample(1, rng)[0])))
        check_kernel(kernel)
        wrong = expected.difference(run_printed(kernel, H200, expected.arrays, expected.scalars))
        assert wrong is None, f"{program}{plan.name}\n{kernel.schedule}\n{wrong}"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", TEXTS)
def test_rows_compute_the_program(name: str) -> None:
    program = parse(TEXTS[name])
    check(plans_of(TuneRequest(program, H200, device="simulator"))[1][:2], program, 3)


def test_sums_of_which_some_are_dropped_are_not_held_in_opaque_fragments() -> None:
    plans = tensor_plans(parse(TEXTS["corner left out"]), H200, only=("cuda/wmma*",))
    assert not any(plan.tensor_parts for plan in plans)


TURNED = """
def f(A: f16[m, k], B: f16[k, n], R: f32[n], D: bf16[n, m], *, m=112, n=16, k=24):
    T: f32[m, n]
    for i, j in grid(m, n):
        T[i, j] = 0
        for p in range(k):
            T[i, j] += f32(A[i, p]) * f32(B[p, j])
    for i, j in grid(m, n):
        D[j, i] = bf16(T[i, j] + R[j])
"""


@pytest.mark.parametrize("epilogue", ["direct", "shared", "TMA", "TMA by span"])
def test_what_leaves_a_block_lies_as_the_last_stage_says(epilogue: str) -> None:
    """Boxes were once those of the product."""
    program = parse(TURNED)
    plan, *_ = tensor_plans(program, H200, only=("cuda/wgmma.m64n16k16.f16.f32",))
    row = request(plan.space, {"epilogue": epilogue}).row  # for spans, two tiles of 64 rows
    assert row is not None
    kernel, expected = lower(plan, plan.space.schedule(row)), expect(program)
    assert expected.difference(run_printed(kernel, H200, expected.arrays, expected.scalars)) is None


SUM = """
def f(A: f16[m, k], B: f16[k, n], R: f32[n], {output}: f32[m, n], *, m=70, n=68, k=40):
{temporary}    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += f32(A[i, p]) * f32(B[p, j])
"""
BEHIND = {
    "updated in place": ("C", ["C[i, j] = C[i, j] + R[j]", "C[i, j] = max(C[i, j], 0)"]),
    "updated, then stored": ("D", ["C[i, j] = C[i, j] + R[j]", "D[i, j] = max(C[i, j], 0)"]),
    "added to what was there": ("D", ["D[i, j] += C[i, j]"]),
    "stored twice": ("D", ["D[i, j] = C[i, j]", "D[i, j] = D[i, j] * C[i, j]"]),
    "stored, updated, added": ("D", ["D[i, j] = C[i, j]", "C[i, j] = C[i, j] + R[j]", "D[i, j] += C[i, j]"]),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", BEHIND)
def test_stages_behind_a_product_run_once_and_read_what_is_there(name: str) -> None:
    """Where spans left one after the other, sums were updated for each; a stage that reads what another had put into a
    tile read memory, where it was not yet."""
    output, behind = BEHIND[name]
    text = SUM.format(output=output, temporary="" if output == "C" else "    C: f32[m, n]\n")
    program = parse(text + "".join(f"    for i, j in grid(m, n):\n        {line}\n" for line in behind))
    expected = expect(program)
    for only in ("cuda/wgmma.m64n64k16.f16.f32", "cuda/mma.m16n8k16.f16.f16.f32"):
        plan, *_ = tensor_plans(program, H200, only=(only,))
        ways = next((d.labels for d in plan.space.decisions if d.name == "epilogue"), ())
        assert bool(ways) == (name not in ("stored twice", "stored, updated, added"))
        for wish in ({"epilogue": way} for way in ways) if ways else ({},):
            row = request(plan.space, wish).row
            if row is not None:
                kernel = lower(plan, plan.space.schedule(row))
                found = run_printed(kernel, H200, expected.arrays, expected.scalars)
                assert expected.difference(found) is None, (only, wish)


@pytest.mark.slow
@examples(3, phases=[Phase.generate])  # each compiles for seconds
@given(lowered_texts(1500), st.integers(0, 2**31))
def test_random_programs(text: str, seed: int) -> None:
    try:
        program = parse(text, filename="f.py")
    except AutoschedError:  # it cannot be proved to stay inside its tensors
        return
    _, plans = plans_of(TuneRequest(program, H200, device="simulator"))
    check([plans[seed % len(plans)]], program, seed)
