"""Operands computed on the way: whatever the expression and the row, kernels compute the program from narrow data."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.match.agreement import disagreement, expect
from support.match.examples import examples
from support.paths import TESTS
from support.plans import machine
from support.programs.computed import COMPUTED, computed_plans, computed_texts

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Assign, For, statements
from autosched.codegen.tree.text import print_kernel
from autosched.costmodel.analytic.clock import clock, floors
from autosched.ir import parse
from autosched.ir.value import reads
from autosched.tiling.steps.common.computed import element_bytes

TARGETS = (machine(), machine(frozenset({"avx2", "fma"}), registers=16, vector_bytes=32))


@pytest.mark.sampled("mx", "column", "fp8", "fp4_packed_rows", "converted")
@pytest.mark.parametrize("name", COMPUTED)
def test_they_compute_the_program(name: str) -> None:
    program = COMPUTED[name]
    plans = computed_plans(program)
    assert plans
    for plan in plans[:4]:
        ids = plan.space.sample(4, np.random.default_rng(3)).tolist()
        assert disagreement(plan, ids, expect(program)) is None


@pytest.mark.slow
@examples(20)
@given(computed_texts(), st.integers(0, 1), st.integers(1, 2), st.integers(0, 99))
def test_random_expressions(text: str, target: int, threads: int, seed: int) -> None:
    program = parse(text, filename="f.py")
    plans = computed_plans(program, TARGETS[target], threads)
    event(f"plans: {min(len(plans), 1)}")
    expected = expect(program, seed)
    for place in {c.place for p in plans for t in p.tensor_parts for c in t.nest.computed.values()}:
        event(place)
    for plan in plans[:4]:
        ids = plan.space.sample(3, np.random.default_rng(seed))
        values = plan.space.values(ids)
        total = clock(plan, values)["total"]
        assert np.isfinite(total).all()
        assert (sum(f(values) for f in floors(plan)) <= total * (1 + 1e-9)).all()
        assert disagreement(plan, ids.tolist(), expected) is None


def test_narrow_data_stay_narrow() -> None:
    """No copy holds the weights as floats, and the clock counts the bytes that are there."""
    program = COMPUTED["column"]
    plan = next(p for p in computed_plans(program) if p.intrinsics == ("x86/vfmadd.f32.zmm",))
    kernel = lower(plan, plan.space.schedule(int(plan.space.sample(1, np.random.default_rng(0))[0])))
    copies = {b.name: b.dtype.name for b in kernel.buffers.values() if b.scope in ("packed", "workspace")}
    assert copies == {"W_panel": "s8"}
    (part,) = plan.tensor_parts
    assert element_bytes(part.nest, "b") == 1 + 4 / 24
    (paired, *_) = (t.nest for p in computed_plans(COMPUTED["turned"]) for t in p.tensor_parts)
    assert element_bytes(paired, "b") == 1 / 2 + 1 / 8 + 4 / 8


def test_a_scale_is_loaded_once_for_its_group() -> None:
    """The loop over a group's units reads nothing that stays for them."""
    plan = computed_plans(COMPUTED["ends"])[0]
    kernel = lower(plan, plan.space.schedule(int(plan.space.sample(1, np.random.default_rng(0))[0])))
    groups = [s for s in statements(kernel.main.body) if isinstance(s, For) and s.note.startswith("groups of 8")]
    assert groups
    for group in groups:
        (units,) = (s for s in group.body if isinstance(s, For) and s.var == "pu")
        read = {r.tensor for s in statements(units.body) if isinstance(s, Assign) for r in reads(s.value)}
        assert read == {"X", "W_panel", "b_kept"}


@pytest.mark.slow
def test_the_loops_of_four_bits_and_groups() -> None:
    """Golden text: words of eight weights, scales and zero points in registers for their group."""
    plan = next(p for p in computed_plans(COMPUTED["turned"]) if p.intrinsics == ("x86/vfmadd.f32.zmm",))
    wanted = {"reg_i": 3, "reg_j": 2, "unroll": 8, "pack_a": 0, "block_p": 0}
    ids = plan.space.enumerate().ids
    values = plan.space.values(ids)
    row = int(ids[np.all([values[name] == value for name, value in wanted.items()], axis=0)][0])
    file = TESTS / "golden" / "kernel_four_bits.txt"
    text = print_kernel(lower(plan, plan.space.schedule(row)))
    if os.environ.get("AUTOSCHED_UPDATE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()


WRITTEN_AGAIN = """
def f(X: f32[m, k], W: s8[k, n], S: f32[n], Y: f32[m, n], *, m=4, k=20, n=32):
    D: f32[k, n]
    for p, j in grid(k, n):
        D[p, j] = f32(W[p, j]) * S[j]
    for j in range(n):
        S[j] = 0.0
    for i, j in grid(m, n):
        Y[i, j] = 0.0
        for p in range(k):
            Y[i, j] += X[i, p] * D[p, j]
"""
READ_TWICE = """
def f(X: f32[m, k], W: s8[k, n], S: f32[n], D: f32[k, n], Y: f32[m, n], *, m=4, k=20, n=32):
    for p, j in grid(k, n):
        D[p, j] = f32(W[p, j]) * S[j]
    for i, j in grid(m, n):
        Y[i, j] = 0.0
        for p in range(k):
            Y[i, j] += X[i, p] * D[p, j]
"""
A_PART = """
def f(X: f32[m, k], W: s8[k, n], Y: f32[m, n], *, m=4, k=20, n=32):
    D: f32[k, n]
    for p, j in grid(k, n):
        D[p, j] = 0.0
    for p, j in grid(k - 1, n):
        D[p, j] = f32(W[p, j])
    for i, j in grid(m, n):
        Y[i, j] = 0.0
        for p in range(k):
            Y[i, j] += X[i, p] * D[p, j]
"""


@pytest.mark.parametrize("text", [WRITTEN_AGAIN, READ_TWICE, A_PART])
def test_what_must_be_stored_is_stored(text: str) -> None:
    """An element is not computed later where that would give another, nor where somebody else wants it."""
    assert not computed_plans(parse(text, filename="f.py"))
