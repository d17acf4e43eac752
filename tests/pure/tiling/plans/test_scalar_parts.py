"""Scalar stages: vectorised reductions, rows of stages, formulas. Rows of their spaces compute the program, and the
numerics level says what they may change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.agreement import disagreement, expect
from support.match.examples import examples
from support.plans import covering_rows, machine
from support.programs.scalar_programs import SSE, functions, program, reduction_texts, scalar_plans

from autosched.codegen.lower import lower
from autosched.costmodel.analytic.clock import clock
from autosched.errors import AutoschedError
from autosched.ir import parse, workload
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.plan_program import float_policy_of
from autosched.tiling.plans.plan import FusedLoopsPart, ScalarPart
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.steps.scalar.handles import FORMULAS, VECTOR


@pytest.mark.slow
@examples(25)
@given(reduction_texts(), st.integers(1, 2), st.booleans(), st.integers(0, 2**31))
def test_rows_of_reductions_compute_the_program(text: str, threads: int, narrow: bool, seed: int) -> None:
    try:
        wanted = parse(text, filename="f.py")
    except AutoschedError:
        return
    rng = np.random.default_rng(seed)
    expected = expect(wanted, seed)
    for plan in scalar_plans(wanted, SSE if narrow else None, threads):
        ids = plan.space.enumerate().ids
        seconds = clock(plan, plan.space.values(ids))["total"]
        assert np.isfinite(seconds).all()
        assert (seconds > 0).all()
        rows = rng.choice(ids, size=min(5, len(ids)), replace=False).tolist()
        assert disagreement(plan, rows, expected) is None, text


@pytest.mark.sampled(1)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", ["rows", "down"])
def test_every_decision_computes_the_program(name: str, threads: int) -> None:
    wanted = program(name)
    expected = expect(wanted)
    for plan in scalar_plans(wanted, threads=threads):
        assert disagreement(plan, covering_rows(plan), expected) is None


def test_bits_are_kept_where_they_must_be() -> None:
    """At `bitwise` no sum is reordered, nothing is fused and no function approximated: the tolerance is zero."""
    wanted = workload("gemv", m=7, k=45)
    from support.match.agreement import Expected

    from autosched.ir import run_with_error

    loose = expect(wanted)
    exact = Expected(loose.arrays, loose.scalars, *run_with_error(wanted, loose.arrays, loose.scalars, frozenset()))
    assert not np.any(exact.tolerance["C"])
    (plan,) = scalar_plans(wanted, exact=True)
    assert disagreement(plan, covering_rows(plan), exact) is None
    assert all(p.across is None for p in plan.parts if isinstance(p, ScalarPart))
    calls = workload("softmax")  # programs without calls are given no formulas at all
    assert not float_policy_of(calls, machine(), Catalogue.builtin(), "bitwise").formulas
    assert float_policy_of(calls, machine(), Catalogue.builtin(), "reassociated").formulas


def test_rows_share_loops_only_where_nothing_crosses_rows() -> None:
    joined = next(p for p in scalar_plans(program("rows")) if isinstance(p.parts[0], FusedLoopsPart))
    assert joined.name == "M+S+Y: rows of i"
    crossing = parse(
        """
def crossing(X: f32[m, n], S: f32[m], Y: f32[m, n], *, m=6, n=20):
    for i in range(m):
        S[i] = 0
        for j in range(n):
            S[i] += X[i, j]
    for i in range(m):
        for j in range(n):
            Y[i, j] = X[i, j] * S[m - 1 - i]
""",
        filename="f.py",
    )
    assert not any(isinstance(part, FusedLoopsPart) for plan in scalar_plans(crossing) for part in plan.parts)


def test_a_formula_stands_for_the_library_where_the_row_says_so() -> None:
    wanted = program("rows")
    plan = scalar_plans(wanted)[0]
    values = {d.name: d.domain[-1] for d in plan.space.decisions}
    math = next(d.name for d in plan.space.decisions if d.name.endswith("math"))
    names = {f.name for f in functions().formulas.values()}
    for chosen in plan.space.decisions[[d.name for d in plan.space.decisions].index(math)].domain:
        row = plan.space.row_of(values | {math: chosen})
        kernel = lower(plan, plan.space.schedule(int(plan.space.canonical([row])[0])))
        assert bool(kernel.formulas) == (chosen == FORMULAS)
        assert set(kernel.formulas) <= names


def test_the_clock_prefers_neighbours_in_lanes() -> None:
    """Along a row for the sums of rows, several accumulators, and down a matrix in stretches."""
    for text, wanted in (
        ("for i in range(m):\n        Y[i] = 0\n        for j in range(n):\n            Y[i] += X[i, j]", "j"),
        ("for j in range(n):\n        Z[j] = 0\n        for i in range(m):\n            Z[j] += X[i, j]", "j"),
    ):
        plan = scalar_plans(parse(f"def f(X: f32[m, n], Y: f32[m], Z: f32[n], *, m=512, n=512):\n    {text}\n"))[0]
        ids = plan.space.enumerate().ids
        best = plan.space.schedule(int(ids[np.argmin(clock(plan, plan.space.values(ids))["total"])]))
        part = plan.parts[0]
        assert isinstance(part, ScalarPart)
        assert best.named.get("lanes", part.vector) == wanted
        assert best.values["vector"] >= 16
        assert best.values.get("rows", 1) * best.values["unroll"] > 1


def test_a_decision_is_read_by_its_handle() -> None:
    """With the part's prefix; its neutral value where the space does not decide it."""
    assert VECTOR.of(StepNames("C."), {"C.vector": 8, "vector": 4}) == 8
    assert VECTOR.of(StepNames("C."), {"vector": 4}) == 1
