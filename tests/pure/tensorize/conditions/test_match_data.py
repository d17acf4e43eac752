"""Values of constant data: what they discharge, what is refused, and that kernels are for these values alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.computes import execute
from support.match.examples import examples
from support.plans import machine
from support.programs.adapted import adapted_plans
from support.programs.guarded import CLAMPING, plans, programs

import autosched
from autosched.codegen.lower import lower
from autosched.device.simulator.verify.runner import InterpretedKernel
from autosched.errors import AutoschedError, UsageError
from autosched.ir import parse, random_inputs
from autosched.ir.data import known_values, with_data
from autosched.ir.oracle.interpreter import run
from autosched.search.tuning.identity import data_of, with_stored_data
from autosched.tensorize import match
from autosched.tensorize.spec.catalogue import Catalogue

PROGRAMS = programs()
KNOWN = Catalogue.builtin()


def weights(low: int, high: int, dtype: type = np.int8) -> np.ndarray:
    return np.random.default_rng(3).integers(low, high, (11, 19), endpoint=True).astype(dtype)


def alternating(value: int, other: int) -> np.ndarray:
    found = np.full((11, 19), value, np.int8)
    found[1::2] = other
    return found


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        (weights(-64, 64), "match"), (weights(-128, 127), "conditional"), (alternating(127, 1), "match"),
        (alternating(127, 2), "conditional"), (alternating(-128, 0), "match"), (alternating(65, 65), "conditional"),
    ],
)  # fmt: skip
def test_discharged_by_range_and_by_group(values: np.ndarray, verdict: str) -> None:
    found = autosched.match(PROGRAMS["weights"], CLAMPING, data={"B": values})
    assert found.verdict == verdict
    if verdict == "match":
        known = with_data(PROGRAMS["weights"], {"B": values}).data["B"]
        for mapping in found.mappings:
            assert f"B holds the data given (sha256 {known.text})" in mapping.certificate.assumptions


@pytest.mark.slow
@examples(10)
@given(st.integers(0, 2**32 - 1), st.integers(40, 127), st.integers(0, 4))
def test_what_data_discharge_is_right(seed: int, most: int, zeros: int) -> None:
    """Whatever the other operand holds: its extremes are tried."""
    rng = np.random.default_rng(seed)
    b = rng.integers(-most, most, (11, 19), endpoint=True).astype(np.int8)
    b[rng.integers(0, 11, zeros)] = 0
    program = with_data(PROGRAMS["weights"], {"B": b})
    (found,) = match(program, [KNOWN.find(CLAMPING)])
    if found.verdict != "match":
        return
    for a in (np.full((3, 11), 255, np.uint8), rng.choice(np.array([0, 255], np.uint8), (3, 11))):
        want = run(program, {"A": a, "B": b})["C"]
        for mapping in found.mappings:
            np.testing.assert_array_equal(execute(mapping, {"A": a, "B": b, "C": np.zeros_like(want)}), want)


def test_data_that_adapters_convert_are_known_too() -> None:
    b = weights(100, 150, np.uint8)
    program = with_data(PROGRAMS["unsigned"], {"B": b})
    found = [p for p in plans(program, mode="refuse") if CLAMPING in p.intrinsics]
    assert found
    converted = next(p.program for p in found if "B_s8" in p.program.tensors)
    known = known_values(converted, "B_s8")
    assert known is not None
    assert (known.low, known.high) == (int(b.min()) - 128, int(b.max()) - 128)


def test_what_is_prepared_from_data_need_not_be_whole() -> None:
    """Columns that no loop visits have no sum; that of the others was not computed either."""
    text = """
def f(A: s8[9, 11], B: const[s8[11, 8]], C: s32[9, 8]):
    for i in range(9):
        for j in range(3, 8):
            C[i, j] = 0
            for p in range(11):
                C[i, j] += s32(A[i, p]) * s32(B[p, j])
"""
    b = np.random.default_rng(3).integers(-60, 60, (11, 8)).astype(np.int8)
    program = with_data(parse(text), {"B": b})
    summed = next(p.program for p in adapted_plans(program, machine()) if "B_sum" in p.program.tensors)
    known, sums = known_values(summed, "B_sum"), b[:, 3:].astype(np.int32).sum(axis=0)
    assert known is not None
    assert (known.low, known.high) == (min(0, sums.min()), max(0, sums.max()))


def test_data_that_break_the_condition_leave_nothing_to_check() -> None:
    program = with_data(PROGRAMS["weights"], {"B": weights(-128, 127)})
    for mode in ("guard", "assume"):
        for plan in plans(program, mode=mode):
            asked = [c for m in plan.mappings for c in (*m.conditions, *m.assumed)]
            assert all(c.assume is not None and c.assume.subject != "B" for c in asked)


def test_data_that_break_a_condition_leave_the_one_on_the_other_operand() -> None:
    found = autosched.match(PROGRAMS["weights"], CLAMPING, data={"B": weights(-128, 127)})
    assert found.verdict == "conditional"
    assert {c.text for m in found.mappings for c in m.conditions} == {"0 <= A <= 128"}
    others = [text for c in found.mappings[0].conditions for text in c.alternatives]
    assert not any("<= B" in text for text in others)


def test_random_inputs_hold_the_data() -> None:
    b = weights(-9, 9)
    program = with_data(PROGRAMS["weights"], {"B": b})
    np.testing.assert_array_equal(random_inputs(program, np.random.default_rng(0))["B"], b)


def test_a_kernel_refuses_other_data() -> None:
    b = weights(-64, 64)
    plan = plans(with_data(PROGRAMS["weights"], {"B": b}))[0]
    assert plan.relies[0].startswith("B holds the data of SHA-256 ")
    kernel = InterpretedKernel(lower(plan, plan.space.schedule(int(plan.space.enumerate(limit=1).ids[0]))))
    a = np.full((3, 11), 255, np.uint8)
    np.testing.assert_array_equal(kernel(a, b), a.astype(np.int32) @ b.astype(np.int32))
    other = b.copy()
    other[4, 4] ^= 1
    with pytest.raises(UsageError, match="B does not hold the values that this kernel was made for"):
        kernel(a, other)


@pytest.mark.parametrize("values", [weights(-60, 64), alternating(127, 1)], ids=["range", "group"])
def test_a_stored_study_lays_out_the_same_plans_without_the_values(values: np.ndarray) -> None:
    program = with_data(PROGRAMS["weights"], {"B": values})
    found = plans(program)
    assert any(CLAMPING in p.intrinsics and not p.guards for p in found)
    again = plans(with_stored_data(PROGRAMS["weights"], data_of(program, found)))
    assert [p.name for p in again] == [p.name for p in found]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"Q": weights(0, 1)}, "unknown tensor 'Q'"),
        ({"A": np.zeros((3, 11), np.uint8)}, "A, which is not const"),
        ({"B": np.zeros((11, 19), np.int16)}, r"int16\[11, 19\], B is int8\[11, 19\]"),
        ({"B": np.zeros((19, 11), np.int8)}, r"int8\[19, 11\], B is int8\[11, 19\]"),
        ({"B": [[1]]}, "is a list, not a numpy array"),
        ({"B": np.array([None])}, "object"),
    ],
)
def test_refused_data(data: dict[str, object], said: str) -> None:
    with pytest.raises(AutoschedError, match=said):
        with_data(PROGRAMS["weights"], data)


def test_data_against_an_assumption_and_ranges_of_sizes() -> None:
    text = "def f(B: const[s8[n]], C: s32[n], *, n=4):\n    assume(0 <= B <= 9)\n"
    text += "    for i in range(n):\n        C[i] = s32(B[i])"
    with pytest.raises(UsageError, match=r"lies in \[10, 10\], and the program assumes 0 <= B <= 9"):
        with_data(parse(text), {"B": np.full(4, 10, np.int8)})
    with pytest.raises(UsageError, match="the size n is a range"):
        with_data(parse(text, sizes={"n": "1..8"}), {"B": np.full(4, 1, np.int8)})
