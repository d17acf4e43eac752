"""Products whose loop passes scales of groups, on an instruction with one scale for all that it sums up."""

from __future__ import annotations

import pytest
from support.chips import measured, planned

from autosched.errors import NoScheduleError
from autosched.ir import parse
from autosched.tiling.planner.families import ADAPTED, family_of
from autosched.tiling.variants.grouped_rows import GROUPS

UNIT = """
isa: vla
requires: [vla_64]
intrinsics:
  - name: mma.scaled
    scope: core
    async: true
    summary: A product of which each row and each column has a scale.
    semantics: |
      def mma(a: s8[16, 8], sa: f32[16], b: s8[8, 16], sb: f32[16], c: f32[16, 16]):
          for i, j, k in grid(16, 16, 8):
              c[i, j] += f32(a[i, k]) * sa[i] * (f32(b[k, j]) * sb[j])
    numerics: {accumulate: sequential}
    timing: {latency: 16, interval: 4}
"""
COPY = """
  - name: load.scales
    kind: copy
    moves: {from: memory, to: inputs}
    scope: core
    async: true
    semantics: |
      def load(x: e8m0[4, 16], y: e8m0[4, 16]):
          for i, j in grid(4, 16):
              y[i, j] = x[i, j]
    timing: {latency: 100, interval: 2}
"""


def test_a_chip_copies_scales_of_mx() -> None:
    unit = UNIT.replace("a: s8[16, 8], sa: f32[16]", "a: s8[16, 8], sa: e8m0[16]").replace("* sa[i]", "* f32(sa[i])")
    text = """
def scaled(A: s8[20, 32], SA: e8m0[20, 4], B: s8[32, 24], SB: f32[4, 24], C: f32[20, 24]):
    for i, j in grid(20, 24):
        C[i, j] = 0.0
        for k in range(32):
            C[i, j] += f32(A[i, k]) * f32(SA[i, k // 8]) * (f32(B[k, j]) * SB[k // 8, j])
"""
    with pytest.raises(NoScheduleError, match="nothing copies e8m0 from memory to inputs"):
        planned("vector", parse(text), more=unit, numerics="real")
    best = planned("vector", parse(text), more=unit + COPY, numerics="real")[0]
    assert {m.status for _, m in measured(best, 4)} == {"ok"}


@pytest.mark.parametrize("size", [8, 4])
def test_a_chip_takes_members_of_a_group(size: int) -> None:
    text = f"""
def scaled(A: s8[20, 32], SA: f32[20, {32 // size}], B: s8[32, 24], SB: f32[{32 // size}, 24], C: f32[20, 24]):
    for i, j in grid(20, 24):
        C[i, j] = 0.0
        for k in range(32):
            C[i, j] += f32(A[i, k]) * SA[i, k // {size}] * (f32(B[k, j]) * SB[k // {size}, j])
"""
    plans = planned("vector", parse(text), more=UNIT, numerics="real")
    best = plans[0]
    assert GROUPS in best.name
    assert family_of(best) == ADAPTED
    (part,) = best.tensor_parts
    assert [a.name for a in part.nest.reduction if a.intrinsic_axis] == ["k_member"]
    assert {m.status for _, m in measured(best, 4)} == {"ok"}
    (rewrite,) = best.rewrites
    assert (rewrite.axis, rewrite.numerics) == ("k", "bitwise")
