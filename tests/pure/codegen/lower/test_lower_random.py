"""Random programs: random legal rows of their plans compute what the oracle computes, and the clock rates every row.

`AUTOSCHED_EXAMPLES=2000` runs that many programs of each kind instead of a few.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.match.agreement import disagreement, expect
from support.match.examples import EXAMPLES, examples
from support.plans import leading, machine, plans_of
from support.programs.lower_programs import lowered_texts, recurrence_texts

from autosched.costmodel.analytic.clock import FORK_SECONDS, clock
from autosched.errors import AutoschedError
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.tiling.plans.plan import Plan

TARGETS = (
    machine(),
    machine(frozenset({"avx2", "fma"}), registers=16, vector_bytes=32),
    machine(frozenset(), registers=16, vector_bytes=16),
)
MOST_RATED = 4000  # rows of a space that the clock is asked about


def parsed(text: str) -> Program:
    """The program; a text that the parser cannot prove to stay inside its tensors is none."""
    try:
        return parse(text, filename="f.py")
    except AutoschedError:
        assume(False)
        raise


def check_rows(program: Program, target: int, threads: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    expected = expect(program, seed)
    for plan in leading(plans_of(program, TARGETS[target], threads=threads), 3):
        ids = plan.space.enumerate().ids
        assert len(ids), f"{plan.name} has no legal row"
        check_clock(plan, ids[:MOST_RATED])
        rows = rng.choice(ids, size=min(2, len(ids)), replace=False).tolist()
        assert disagreement(plan, rows, expected) is None


def check_clock(plan: Plan, ids: npt.NDArray[np.int64]) -> None:
    """Every row has a time, and one that differs from another in more threads alone is slower by no more than a fork
    for each part."""
    values = plan.space.values(ids)
    total = clock(plan, values)["total"]
    assert total.shape == ids.shape
    assert np.isfinite(total).all()
    assert (total > 0).all()
    counts = [d.name for d in plan.space.decisions if d.name.split(".")[-1] == "threads"]
    splits = [d.name for d in plan.space.decisions if d.name.split(".")[-1] == "split"]
    others = [d.name for d in plan.space.decisions if d.name not in (*counts, *splits)]
    alone: dict[bytes, float] = {}
    rest = np.stack([values[n] for n in others] or [np.zeros(len(ids), np.int64)], axis=1)
    used = np.stack([values[n] for n in counts], axis=1)
    for key, n, seconds in zip(rest, used, total, strict=True):
        if (n == 1).all():
            alone[key.tobytes()] = seconds
    for key, seconds in zip(rest, total, strict=True):
        single = alone.get(key.tobytes(), np.inf)
        assert seconds <= single * (1 + 1e-9) + FORK_SECONDS * len(counts)


def test_where_data_decide_nothing_outside_is_touched() -> None:
    """Of `i < 3 and M3[i] > 0` the first half says where `C0` has elements; it used to be asked too late."""
    text = """
def f(A0: u8[1], A1: s8[4, 1], C0: s32[3], M3: s32[4]):
    for i in range(4):
        for p in range(1):
            if i < 3 and M3[i] > 0:
                C0[i] += s32(A0[p]) * s32(A1[i, p])
"""
    check_rows(parsed(text), 0, 1, 0)


@pytest.mark.slow
def test_rows_at_once_begin_and_end_together() -> None:
    """Lines of a triangle are of different lengths: four of them at once wrote what lies before the diagonal."""
    text = """
def f(A0: u8[4], A1: s8[6], C0: s32[4, 6, 1], D0: s32[4, 6, 1]):
    for i in range(4):
        for j in range(i, 6):
            for b in range(1):
                C0[i, j, b] += s32(A0[i]) * s32(A1[j + b])
    for i in range(4):
        for j in range(i, 6):
            for b in range(1):
                D0[i, j, b] = C0[i, j, b]
"""
    for seed in range(4):
        check_rows(parsed(text), 0, 1, seed)


@pytest.mark.slow
@examples(14)
@given(lowered_texts(3000 if EXAMPLES else 600), st.integers(0, 2), st.integers(1, 2), st.integers(0, 2**31))
def test_rows_of_contractions_compute_the_program(text: str, target: int, threads: int, seed: int) -> None:
    check_rows(parsed(text), target, threads, seed)


@pytest.mark.slow
@examples(20)
@given(recurrence_texts(), st.integers(1, 2), st.integers(0, 2**31))
def test_rows_of_recurrences_compute_the_program(text: str, threads: int, seed: int) -> None:
    check_rows(parsed(text), 2, threads, seed)
