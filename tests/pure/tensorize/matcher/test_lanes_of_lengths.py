"""The share of useful lanes where a run-time length ends the last vector: by the time that it takes."""

from __future__ import annotations

import pytest

from autosched.ir import parse
from autosched.tensorize import match
from autosched.tensorize.explanation.brief import filling
from autosched.tensorize.explanation.padding import padding_lines
from autosched.tensorize.spec.load import load_text

ADD = """
isa: quill
intrinsics:
  - name: vadd
    semantics: |
      def vadd(a: f32[32], b: f32[32], vl: u32[1], c: f32[32]):
          for i in range(32):
              c[i] = a[i] + b[i] if u32(i) < vl[0] else c[i]
    timing: {{latency: 4, interval: 4{lengths}}}
"""
PROGRAM = """
def f(A: f32[20, 75], B: f32[20, 75], C: f32[20, 75]):
    for i, j in grid(20, 75):
        C[i, j] = A[i, j] + B[i, j]
"""


@pytest.mark.parametrize(
    ("lengths", "issued"),
    [("", 96), (", lengths: [[8, 1], [16, 2], [24, 3]]", 80), (", lengths: [[8, 1]]", 96),
     (", lengths: [[12, 1.2]]", 75)],
)
def test_the_last_vector_counts_by_its_time(lengths: str, issued: int) -> None:
    """75 elements are two vectors of 32 lanes, and 11 more, which take as long as so many lanes of the 32."""
    (vadd,) = load_text(ADD.format(lengths=lengths))
    (found,) = match(parse(PROGRAM), [vadd])
    mapping = next(m for m in found.mappings if m.axes["i"] == ("j",))
    assert mapping.issued["i"] == (75, issued)
    assert mapping.padding["i"] == (75, 96)
    assert mapping.utilisation == pytest.approx(75 / issued)
    said = filling(mapping)
    assert said == ("" if issued == 75 else f"; {7500 / issued:.3g} % of the lanes useful (i: 75 of {issued})")
    assert bool(padding_lines(mapping)) == (issued == 96 or issued == 80)
