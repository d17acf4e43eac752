"""Outputs that are written in parts: whole before they are read, or read as they were passed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cards.gpu_plans import H200
from support.match.agreement import disagreement, expect
from support.match.examples import examples
from support.plans import machine, plans_of
from support.programs.parts import IN_PARTS, NOT_WHOLE

import autosched
from autosched.ir import parse, workload
from autosched.tiling.planner.make_plans import make_plans


@pytest.mark.parametrize("name", IN_PARTS)
def test_outputs_in_parts_are_no_inputs(name: str) -> None:
    assert parse(IN_PARTS[name]).inouts == ()


@pytest.mark.parametrize("name", NOT_WHOLE)
def test_what_is_not_whole_is_read(name: str) -> None:
    assert parse(f"def f(A: f32[8], Y: f32[8]):\n    {NOT_WHOLE[name]}\n").inouts == ("Y",)


def test_of_any_size() -> None:
    text = IN_PARTS["pairs of a rotation"].replace("s=6", 's="1..4096"')
    assert parse(text).inouts == ()
    assert workload("conv2d", groups=4, ci=64, co=64, t="f16", out="f16").inouts == ()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", IN_PARTS)
def test_plans_compute_them(name: str) -> None:
    """Outputs begin as what they happen to hold, which the interpreter of kernels refuses to read."""
    program = parse(IN_PARTS[name])
    expected, rng = expect(program, 3), np.random.default_rng(3)
    plans = [*make_plans(program, machine(), {}), *plans_of(program, machine(), only=("x86/vfmadd.f32.ymm",))[:1]]
    for plan in [*plans, *make_plans(program, H200, {})[:2]]:
        assert disagreement(plan, map(int, plan.space.sample(2, rng)), expected) is None


SIZE = 6
STATEMENTS = st.tuples(
    st.sampled_from(["=", "+=", "copy"]),
    st.tuples(st.integers(0, 3), st.integers(1, 4)),  # the loop's bounds
    st.sampled_from([-2, -1, 1, 2, 3]),
    st.integers(0, SIZE),  # subscript: step * i + offset
    st.integers(-2, 2),  # of what is copied, from there
    st.booleans(),  # in a loop with the next one
)


def inside(step: int, offset: int, low: int, count: int) -> bool:
    return all(0 <= step * i + offset < SIZE for i in range(low, low + count))


@given(st.lists(STATEMENTS, min_size=1, max_size=4))
@examples(60)
def test_the_proof_says_what_a_run_says(drawn: list[tuple[str, tuple[int, int], int, int, int, bool]]) -> None:
    lines: list[str] = []
    before: tuple[int, int] | None = None
    for op, (low, count), step, offset, apart, joined in drawn:
        if not inside(step, offset, low, count) or (op == "copy" and not inside(step, offset + apart, low, count)):
            continue
        if not (joined and before == (low, count)):
            lines.append(f"    for i{len(lines)} in range({low}, {low + count}):")
            loop = f"i{len(lines) - 1}"
        before = (low, count)
        value = f"Y[{step} * {loop} + {offset + apart}] + 1" if op == "copy" else "1"
        lines.append(f"        Y[{step} * {loop} + {offset}] {'=' if op == 'copy' else op} {value}")
    if not lines:
        return
    program = parse(f"def f(Y: s32[{SIZE}]):\n" + "\n".join(lines) + "\n")
    assert (program.inouts == ()) == whole("\n".join(line[4:] for line in lines))


def whole(text: str) -> bool:
    """Whether a run of the statements reads nothing that it has not written, and leaves nothing."""

    class Watched(dict[int, int]):
        def __missing__(self, key: int) -> int:
            raise LookupError

    held = Watched()
    try:
        exec(text, {"Y": held, "range": range})
    except LookupError:
        return False
    return len(held) == SIZE


@pytest.mark.parametrize("name", ["halves of a rotation", "prefix sums"])
def test_nobody_has_to_pass_them(name: str) -> None:
    study = autosched.tune(parse(IN_PARTS[name]), "x86-avx2", device="simulator", trials=1)
    program, built = study.best.candidate.plan.program, study.best.build()
    rng = np.random.default_rng(1)
    arrays = [rng.random(program.tensors[n].extents, np.float32) for n in program.inputs]
    expected = autosched.ir.run(program, dict(zip(program.inputs, arrays, strict=True)))
    np.testing.assert_allclose(built(*arrays), expected["Y"], rtol=1e-6)
