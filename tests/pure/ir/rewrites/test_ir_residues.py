"""Guards on remainders become splits of loops: the same results from a fraction of the iterations."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from support.match.agreement import disagreement
from support.plans import covering_rows, machine, plans_of

from autosched.ir import parse, random_inputs, run, workload
from autosched.ir.program import Program
from autosched.ir.rewrites.rewrite import simplify, split_residues

ONE = """
def f(X: s32[n], W: s32[k], Y: s32[m], *, n=5, k={k}, m={m}, d={d}, pad={pad}):
    for y in range(m):
        Y[y] = 7
        for r in range(k):
            if ({form}) % d == {c} and 0 <= ({form}) // d < n:
                Y[y] += X[({form}) // d] * W[r]
"""


def points(program: Program) -> int:
    return sum(prod(a.extent for a in s.axes) for s in program.stages)


def same(program: Program, after: Program) -> None:
    arrays = random_inputs(program, np.random.default_rng(3))
    wanted, found = run(program, arrays), run(after, arrays)
    for name, want in wanted.items():
        assert np.array_equal(want, found[name])


@pytest.mark.parametrize("c", [0, 1])
@pytest.mark.parametrize("form", ["y + pad - r", "y - pad + r", "3 * y + r + 2 * pad", "r - 5 * y + 4 * k"])
@pytest.mark.parametrize(("k", "pad"), [(4, 1), (3, 0), (1, 1)])
def test_the_split_computes_the_same_in_half_the_steps(form: str, c: int, k: int, pad: int) -> None:
    program = parse(ONE.format(form=form, c=c, d=2, k=k, m=8, pad=pad))
    rewrite = split_residues(program)
    if form.startswith("3") and rewrite is None:
        pytest.fail("3 y + r is solved by r = y (mod 2)")
    assert rewrite is not None
    same(program, rewrite.after)
    assert "%" not in str(rewrite.after).split('"""')[-1]
    assert points(rewrite.after) == 8 * -(-k // 2)
    assert len(rewrite.proof) == 1


def test_strides_of_three() -> None:
    program = parse(ONE.format(form="y - r", c=0, d=3, k=5, m=9, pad=0))
    rewrite = split_residues(program)
    assert rewrite is not None
    same(program, rewrite.after)
    assert points(rewrite.after) == 9 * 2


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("m=8", "m=7"), "seven outputs do not split in two"),
        (("Y[y] = 7", "Y[y] = X[0]"), None),
        (("Y[y] += X", "Y[y] += Y[0] * X"), "an iteration reads what another writes"),
        (("% d == 0", "% d <= 0"), "the guard is no equation"),
        (("for r in range(k)", "for r in range(y % 2, k)"), "bounds that move"),
    ],
)
def test_what_is_left_as_it_is(change: tuple[str, str], why: str | None) -> None:
    text = ONE.format(form="y + pad - r", c=0, d=2, k=4, m=8, pad=1)
    assert change[0] in text
    program = parse(text.replace(*change))
    assert (split_residues(program) is None) == (why is not None), why


@pytest.mark.slow
def test_a_transposed_convolution_becomes_a_convolution() -> None:
    program = workload("conv2d_transposed", h=3, w=4, ci=4, co=18)
    after, steps = simplify(program)
    assert points(after) * 4 == points(program)
    assert len(next(s for s in steps if s.name == "split residues").proof) == 2
    same(program, after)
    plans = plans_of(after, machine(), threads=2, only=("x86/vfmadd.f32.zmm",))
    plan = next(p for p in plans if p.name.endswith("(i←o)"))
    assert "padded" in {label for d in plan.space.decisions for label in d.labels}
    assert disagreement(plan, list(covering_rows(plan))[:4]) is None
