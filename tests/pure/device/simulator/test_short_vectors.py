"""A vector unit that is told its length: the last vector of a row has the lanes that are left, and takes their time."""

from __future__ import annotations

import numpy as np
import pytest
from support.chips import chip, instructions, measured, planned

import autosched
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import For, If, IntrinsicCall, Stmt
from autosched.costmodel.analytic.limits import limit
from autosched.errors import SpecError
from autosched.tensorize.spec.load import load_text
from autosched.tiling.plans.plan import Plan

ROWS = """
def rows(A: f32[m, n], B: f32[m, n], C: f32[m, n], *, m=3, n=64):
    for i, j in grid(m, n):
        C[i, j] = A[i, j] {} B[i, j]
"""
ROW = """
isa: vla
requires: [vla_64]
intrinsics:
  - name: sums
    semantics: |
      def sums(vl: u32[1], a: s32[4, 16], b: s32[16], c: s32[4]):
          for i, k in grid(4, 16):
              if u32({}) < vl[0]:
                  c[i] += a[i, k] * b[k]
    timing: {{interval: 16, lengths: [[{}, 4]]}}
"""
PRODUCT = """
def product(A: s32[7, 21], B: s32[21], C: s32[7]):
    for i in range(7):
        C[i] = 0
        for k in range(21):
            C[i] += A[i, k] * B[k]
"""


def lanes(plan: Plan) -> set[int]:
    """How many lanes the calls of a plan's kernels are issued with; 0: all."""
    found = set[int]()

    def visit(stmt: Stmt) -> None:
        if isinstance(stmt, IntrinsicCall):
            found.add(stmt.intrinsic.lanes)
        for inner in stmt.body if isinstance(stmt, For | If) else ():
            visit(inner)

    kernel = lower(plan, plan.space.schedule(int(plan.space.sample(1, np.random.default_rng(0))[0])))
    for stmt in kernel.main.body:
        visit(stmt)
    return found


@pytest.mark.parametrize(("operator", "full", "quarter"), [("-", 4, 1), ("/", 16, 4)])
@pytest.mark.parametrize("n", [1, 21, 64, 65, 150])
def test_the_last_vector_of_a_row_is_short(n: int, operator: str, full: int, quarter: int) -> None:
    (plan, *_) = planned("vector", autosched.parse(ROWS.format(operator), n=n))
    whole, left = divmod(n, 64)
    (part,) = plan.tensor_parts
    rows = 3 if dict.fromkeys(part.nest.mapping.axes["i"]) == {"j": None} else 0
    if not rows:  # rows are one after the other in vectors
        rows, (whole, left) = 1, divmod(3 * n, 64)
    assert lanes(plan) == expected(whole, left)
    cycles = rows * (whole * full + -(-left // 16) * quarter)
    for row, m in measured(plan, 2):
        assert m.ok, m.message
        assert m.max_abs_error == 0, (plan.name, row)
        busy = m.extra["model_s"]["vector"] * plan.target.clock_hz
        assert busy == pytest.approx(cycles)
        assert m.time_s >= limit(plan, plan.space.values([row]))[0] >= cycles / plan.target.clock_hz * 0.999


def expected(whole: int, left: int) -> set[int]:
    return ({0} if whole else set()) | ({left} if left else set())


@pytest.mark.parametrize(("axis", "short", "left"), [("k", 8, 5), ("i", 3, 3)])
def test_sums_with_a_length_along_either_axis(axis: str, short: int, left: int) -> None:
    """Of rows, and of what is summed: lanes past the end are not issued."""
    more = ROW.format(axis, short)
    plans = planned("vector", autosched.parse(PRODUCT), more=more)
    mine = [p for p in plans if "vla/sums" in p.name]
    assert mine
    assert lanes(mine[0]) == {0, left}
    for row, m in measured(mine[0], 2):
        assert m.ok, m.message
        assert m.max_abs_error == 0, row
        calls = {"k": 2 * (16 + 4), "i": 2 * (16 + 4)}[axis]
        assert m.extra["model_s"]["array"] * chip("vector").clock_hz == pytest.approx(calls)


@pytest.mark.parametrize(
    ("given", "said"),
    [("[[64, 2]]", "more lanes take fewer"), ("[[16, 5]]", "more lanes take fewer"), ("[[32, 1], [8, 1]]", "more")],
)
def test_lengths_that_make_no_sense(given: str, said: str) -> None:
    text = f"""
isa: vla
intrinsics:
  - name: v
    semantics: |
      def v(vl: u32[1], a: s32[64], c: s32[64]):
          for i in range(64):
              c[i] = a[i] + a[i] if u32(i) < vl[0] else c[i]
    timing: {{interval: 4, lengths: {given}}}
"""
    with pytest.raises(SpecError, match=said):
        load_text(text)
    with pytest.raises(SpecError, match="no operand is its length"):
        load_text(text.replace(" if u32(i) < vl[0] else c[i]", " + s32(vl[0])").replace(given, "[[16, 1]]"))


def test_each_vector_instruction_of_the_chip_has_a_length() -> None:
    vectors = [i for i in instructions("vector") if not i.accumulates and i.kind == "compute"]
    assert len(vectors) == 15
    assert all("vl" in i.operands and i.interval_by_lanes for i in vectors)
