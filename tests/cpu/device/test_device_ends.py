"""Devices check every candidate on data at the ends of their ranges: random ones say little of parts and of masks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.plans import covering_rows, plans_of, this_machine

from autosched.codegen.lower import lower
from autosched.device.correctness.ends import Ends, ends
from autosched.device.correctness.oracle import Oracle, compute
from autosched.device.cpu.device import CpuDevice
from autosched.device.simulator.verify.verify import Verifier
from autosched.ir import load, parse
from autosched.ir.oracle.sets.ends import decisive
from autosched.ir.oracle.slack import NO_SLACK
from autosched.ir.program import Program
from autosched.tiling.candidate import Candidate

FUSED = Path(__file__).parents[3] / "examples" / "fused"

ROWS = """
def lengths(X: f32[n, l], L: s32[n], Y: f32[n], *, n=1, l=40, dropped=0):
    assume(1 <= L <= l)
    M: f32[n]
    Z: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j] if s32(j) < L[i] and s32(j) < s32(l - dropped) else -inf)
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            Z[i] += exp((X[i, j] if s32(j) < L[i] and s32(j) < s32(l - dropped) else -inf) - M[i])
    for i in range(n):
        Y[i] = log(Z[i]) + M[i]
"""


def found(program: Program) -> tuple[Ends, ...]:
    return ends(program, 0, lambda inputs: compute(program, 0, inputs=inputs))[0]


def dropping() -> tuple[Program, int, list[Candidate]]:
    """A program, a seed whose length is short, and candidates that drop the last elements of a row."""
    program, wrong = parse(ROWS), parse(ROWS, sizes={"dropped": 3})
    seed = next(s for s in range(9) if compute(program, s).inputs["L"][0] < 37)
    plan = plans_of(wrong)[0]
    return program, seed, [Candidate(plan, row) for row in list(covering_rows(plan))[:2]]


@pytest.mark.slow
def test_a_kernel_that_drops_the_end_of_a_row_is_found() -> None:
    """Its last elements lie behind the random length: only the greatest length shows them."""
    program, seed, candidates = dropping()

    def measured(oracle: Oracle | None) -> list[tuple[str, str]]:
        with CpuDevice(program, this_machine(), seed=seed, oracle=oracle) as device:
            answers = [device.measure(device.build(c)) for c in candidates]
        return [(m.status, m.message) for m in answers]

    assert all(status == "wrong" and "L at their greatest" in message for status, message in measured(None))
    assert {status for status, _ in measured(compute(program, seed))} == {"ok"}  # on the random length alone


def test_the_simulator_finds_it_too() -> None:
    program, seed, candidates = dropping()
    plan = candidates[0].plan
    kernel = lower(plan, plan.space.schedule(candidates[0].row))
    assert not Verifier(seed)._checked(kernel, program, plan, NO_SLACK).ok
    assert Verifier(seed)._checked(kernel, program, plan, NO_SLACK, compute(program, seed)).ok


def test_lengths_are_at_their_greatest_and_at_both_ends() -> None:
    program = load(f"{FUSED}/decode.py:attention_decode", b=3)
    assert decisive(program) == {"L": (1, 512)}
    sets = found(program)
    names = ["L at their greatest", "L at their ends", "L at their other ends", "Q, K and V of one sign each"]
    assert [s.folder for s in sets] == [*names, "Q, K and V scaled by another power of two in each row"]
    assert [s.found.oracle.inputs["L"].tolist() for s in sets[:3]] == [[512] * 3, [512, 1, 512], [1, 512, 1]]
    assert all(4 >= np.abs(s.found.oracle.inputs["Q"]).max() > 3 for s in sets[:3])


def test_one_length_has_two_ends() -> None:
    program = load(f"{FUSED}/decode.py:attention_decode", b=1)
    assert [s.found.oracle.inputs["L"].tolist() for s in found(program)[:2]] == [[512], [1]]


def test_first_and_last_of_a_sequence_are_at_opposite_ends() -> None:
    program = load(f"{FUSED}/attention_offsets.py")
    inputs = [s.found.oracle.inputs for s in found(program)[:3]]
    rows = [(i["B"][:2].tolist(), i["E"][:2].tolist()) for i in inputs]
    assert rows == [([96, 96], [96, 96]), ([96, 0], [0, 96]), ([0, 96], [96, 0])]


def test_subscripts_stay_inside() -> None:
    program = load(f"{FUSED}/cross_entropy.py:cross_entropy")
    (limits,) = decisive(program).values()
    assert limits[0] == 0
    assert {int(t) for s in found(program)[:3] for t in s.found.oracle.inputs["T"]} == set(limits)


def test_floats_are_wider_where_exponentials_are_taken() -> None:
    wide, signed, powers = found(load(f"{FUSED}/attention.py:attention"))
    assert wide.folder == "Q, K and V reach 4"
    assert signed.folder == "Q, K and V of one sign each"
    values = [signed.found.oracle.inputs[n] for n in "QKV"]
    assert [(v.min() >= 1, v.max() <= -1) for v in values] == [(False, True), (True, False), (False, True)]
    assert powers.folder == "Q, K and V scaled by another power of two in each row"
    (powers,) = found(load(f"{FUSED}/norm_product.py:rms_norm_product"))
    assert "another power of two" in powers.folder


def test_a_maximum_sees_rows_below_its_start() -> None:
    """A kernel that starts from -1, or from 0, is right on random data."""
    text = "def f(X: {0}[n, l], Y: {0}[n], *, n=3, l=9):\n    for i in range(n):\n        Y[i] = {1}\n"
    text += "        for j in range(l):\n            Y[i] = max(Y[i], X[i, j])\n"
    signed, powers = found(parse(text.format("f32", "-inf")))
    assert (signed.found.oracle.inputs["X"] <= -1).all()
    assert powers.found.oracle.inputs["X"].max(axis=1).min() < -1000
    (ends,) = found(parse(text.format("s32", "-9")))
    assert ends.found.oracle.wants["Y"].tolist() == [2**31 - 1, -9, 2**31 - 1]


@pytest.mark.parametrize("m", [9, 102], ids=str)
@pytest.mark.parametrize("t", ["s32", "u8", "f32"])
def test_counts_of_which_nothing_is_assumed_are_near_the_axis(t: str, m: int) -> None:
    """A random one of 32 bits lets all rows count, or none; a float below 1 the first alone."""
    text = f"def f(X: f32[n, m], R: {t}[n], Y: f32[n, m], *, n=140, m=9):\n    for i, j in grid(n, m):\n"
    text += f"        Y[i, j] = X[i, j] if {t}(j) < R[i] else 0.0\n"
    program = parse(text, sizes={"m": m})
    near = next(s for s in found(program) if "near the axes" in s.folder)
    counts = set(near.found.oracle.inputs["R"].tolist())
    assert set(range(m + 1)) <= counts <= set(range(-1, m + 3))


def test_data_that_the_program_cannot_take_are_left_out() -> None:
    """A product of subscripts is outside at its ends; random ones may be inside."""
    text = "def f(T: f32[{}], I: s32[2], Y: f32[2]):\n    for i in range(2):\n        Y[i] = T[I[i] * {}]\n"
    assert decisive(parse(text.format(99, 3))) == {"I": (0, 32)}
    program = parse(text.format(99, "I[1 - i]"))
    inside, _ = ends(program, 0, lambda inputs: compute(program, 0, inputs={"I": np.zeros(2, np.int32)} | inputs))
    assert all(data.found.oracle.inputs["I"].prod() < 99 for data in inside)
