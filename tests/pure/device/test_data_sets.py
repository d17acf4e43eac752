"""Data sets beside the random one: scalars, strengths, domains, and what is left out."""

from __future__ import annotations

import numpy as np
import pytest
from support.plans import machine, plans_of

from autosched.codegen.lower import lower
from autosched.device.correctness.ends import FurtherSets, ends, further, not_checked
from autosched.device.correctness.oracle import compute, says
from autosched.device.cuda.launch_job import CudaJob, LaunchCall, Pointer, Value
from autosched.device.job import EntryPoint, Job
from autosched.device.simulator.device import SimulatorDevice
from autosched.errors import InternalError, UsageError
from autosched.ir import parse
from autosched.ir.oracle.sets.by_rows import powers, rows
from autosched.ir.program import Program
from autosched.tiling.candidate import Candidate
from autosched.tiling.space.space import Space

EACH = "def f({0}, *, n=12):\n    for i in range(n):\n        Y[i] = {1}\n"


def found(program: Program, seed: int = 0) -> FurtherSets:
    return further(program, seed, frozenset(), lambda inputs: compute(program, seed, inputs=inputs))


def scalars(program: Program) -> list[dict[str, float]]:
    given = [{n: float(v) for n, v in d.found.oracle.scalars.items()} for d in found(program).sets]
    usual = {n: float(v) for n, v in compute(program, 0).scalars.items()}
    return [one for one in given if one != usual]


def test_scalars_are_zero_one_negative_and_large() -> None:
    program = parse(EACH.format("X: f32[n], s: f32, Y: f32[n]", "X[i] * s"))
    assert {one["s"] for one in scalars(program)} == {0.0, -3.0, 1.0, 5.0, -1.0, 0.5}


def test_scalars_keep_to_what_is_assumed() -> None:
    text = EACH.format("X: s32[n], s: s32, Y: s32[n]", "X[i] >> s")
    program = parse(text.replace("    for", "    assume(2 <= s <= 9)\n    for"))
    values = {one["s"] for one in scalars(program)}
    assert {2.0, 9.0, 3.0} <= values <= set(range(2, 10))


def test_a_length_is_at_the_ends_of_its_axis_and_beside_a_tile() -> None:
    text = "def f(X: f32[l], c: s32, Y: f32[l], *, l=40):\n    for i in range(l):\n"
    program = parse(text + "        Y[i] = X[i] if s32(i) < c else 0.0\n")
    assert {40.0, 1.0, 39.0, 17.0, 33.0, 0.0} <= {one["c"] for one in scalars(program)}


def test_a_scalar_that_makes_outputs_infinite_is_left_out_and_told() -> None:
    program = parse(EACH.format("X: f32[n], s: f32, Y: f32[n]", "X[i] / s"))
    sets = found(program)
    assert 0.0 not in {one["s"] for one in scalars(program)}
    assert [str(left) for left in sets.left_out] == [
        "the data set 's = 0': outputs would hold more NaN or infinities than on random data"
    ]
    said = not_checked(compute(program, 0), sets.left_out)
    assert said == {"not_checked": list(map(str, sets.left_out))}


def test_subscripts_are_as_far_out_as_they_may_be() -> None:
    """At 10 the square is outside; 9 is the greatest that is not."""
    text = "def f(T: f32[100], I: s32[n], Y: f32[n], *, n=3):\n    assume(0 <= I <= 10)\n    K: s32[n]\n"
    text += "    for i in range(n):\n        K[i] = I[i] * I[i]\n    for i in range(n):\n        Y[i] = T[K[i]]\n"
    program = parse(text)
    seed = next(s for s in range(9) if 10 not in compute_or_nothing(program, s))
    sets, left = ends(program, seed, lambda inputs: compute(program, seed, inputs=inputs))
    (most,) = (d for d in sets if "one end each row" in d.folder)
    assert sorted(set(most.found.oracle.inputs["I"].tolist())) == [0, 9]
    assert left == ()


def compute_or_nothing(program: Program, seed: int) -> list[int]:
    try:
        return compute(program, seed).inputs["I"].tolist()
    except UsageError:
        return [10]


def test_what_cannot_be_made_to_fit_is_told() -> None:
    """One number alone in the middle of what is assumed is inside."""
    program = parse("def f(T: f32[10], I: s32[n], Y: f32[n], *, n=3):\n    assume(3 <= I <= 9)\n    K: s32[n]\n"
                    "    for i in range(n):\n        K[i] = I[i] * I[i] - 36\n"
                    "    for i in range(n):\n        Y[i] = T[K[i]]\n")  # fmt: skip
    inside = {"I": np.full(3, 6, np.int32)}
    sets, left = ends(program, 0, lambda inputs: compute(program, 0, inputs=inside | inputs))
    assert not any("I at" in d.folder for d in sets)
    assert ["I at one end each row" in str(one) and "extent 10" in str(one) for one in left] == [True]


@pytest.mark.parametrize(("value", "least", "most"), [("X[i] * log(X[i])", 0, 1), ("sqrt(-1.0 - X[i])", -4, -1)])
def test_floats_are_drawn_where_the_program_has_numbers(value: str, least: float, most: float) -> None:
    program = parse(EACH.format("X: f32[n], Y: f32[n]", value))
    for seed in range(3):
        oracle = compute(program, seed)
        assert says(oracle) == 1.0
        assert least <= oracle.inputs["X"].min()
        assert oracle.inputs["X"].max() <= most


def test_outputs_that_are_never_numbers_are_told() -> None:
    program = parse(EACH.format("X: f32[n], Y: f32[n]", "sqrt(-1.0 - X[i] * X[i])"))
    (said,) = not_checked(compute(program, 0), ())["not_checked"]
    assert said == "100% of an output is NaN, infinite or without a tolerance"
    plan = plans_of(program, machine())[0]
    device = SimulatorDevice(program, machine())
    measured = device.measure(device.build(Candidate(plan, int(plan.space.few[0]))))
    assert said in measured.extra["not_checked"]


def test_rows_run_where_nothing_is_summed() -> None:
    text = "def f(A: f32[3, 5], B: f32[5, 4], C: f32[3, 4]):\n    for i, j in grid(3, 4):\n        C[i, j] = 0\n"
    program = parse(text + "        for k in range(5):\n            C[i, j] += A[i, k] * B[k, j]\n")
    a, b = rows(program, "A", (3, 5)), rows(program, "B", (5, 4))
    assert (a.count, np.broadcast_to(a.number, (3, 5))[:, 4].tolist()) == (3, [0, 1, 2])
    assert (b.count, np.broadcast_to(b.number, (5, 4))[2].tolist()) == (4, [0, 1, 2, 3])


@pytest.mark.parametrize(("kind", "acc", "up"), [("f32", "f32", 12), ("f16", "f32", 12), ("f16", "f16", 3)])
def test_nothing_overflows(kind: str, acc: str, up: int) -> None:
    text = f"def f(A: {kind}[3, 64], B: {kind}[64, 4], C: {acc}[3, 4]):\n    for i, j in grid(3, 4):\n"
    text += "        C[i, j] = 0\n        for k in range(64):\n"
    program = parse(text + f"            C[i, j] += {acc}(A[i, k]) * {acc}(B[k, j])\n")
    assert powers(program, program.tensors["A"].dtype)[0] == up
    (one, _) = found(program).sets
    assert "another power of two" in one.folder
    assert np.isfinite(one.found.oracle.wants["C"].astype(np.float64)).all()


def test_jobs_take_other_scalars() -> None:
    job = Job((), EntryPoint("main", ("X",), (("i32", b"1"), ("i32", b"2"))), scalars=("a", "b"))
    assert job.given({"b": b"3"}).scalars == (("i32", b"1"), ("i32", b"3"))
    assert job.given({}) == job.main
    call = LaunchCall("k", (1, 1, 1), (1, 1, 1), 0, (Pointer("X"), Value(b"1", "a"), Value(b"2", "b")))
    given = CudaJob(b"", (call,)).given({"a": b"9"})
    assert given.calls[0].arguments == (Pointer("X"), Value(b"9", "a"), Value(b"2", "b"))


def test_a_mistake_of_ours_has_a_name() -> None:
    """A space without the decisions that lowering reads is one: it was a bare KeyError."""
    text = "def f(A: f32[8, 8], B: f32[8, 8], C: f32[8, 8]):\n    for i, j in grid(8, 8):\n        C[i, j] = 0\n"
    program = parse(text + "        for k in range(8):\n            C[i, j] += A[i, k] * B[k, j]\n")
    plan = plans_of(program, machine())[0]
    object.__setattr__(plan, "space", Space(plan.name, ()))
    candidate = Candidate(plan, 0)
    with pytest.raises(KeyError):
        lower(plan, plan.space.schedule(0))
    with pytest.raises(InternalError, match=r"#0 failed: KeyError: 'threads' \(autosched\..*, line \d+\)") as raised:
        SimulatorDevice(program, machine()).build(candidate)
    assert raised.value.message.startswith(f"lowering of {plan.name}#0")
