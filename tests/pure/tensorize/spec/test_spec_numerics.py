"""`numerics:` in YAML: contracts, those of targets, and what makes no sense together."""

from __future__ import annotations

import pytest

from autosched.errors import SpecError
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.load import load_text

TEXT = """\
isa: npu
intrinsics:
  - name: mma
    semantics: |
      def mma(a: {x}[4, 8], b: {x}[8, 4], c: {y}[4, 4]):
          for i, j, k in grid(4, 4, 8):
              {body}
    numerics: {numerics}
"""
ADDS = "c[i, j] += {y}(a[i, k]) * {y}(b[k, j])"
FUSED = "c[i, j] = fma({y}(a[i, k]), {y}(b[k, j]), c[i, j])"


def load(numerics: str, x: str = "f16", y: str = "f32", body: str = ADDS) -> Intrinsic:
    written = (
        body.replace("{y}", y) if x != y else body.replace("{y}(a[i, k])", "a[i, k]").replace("{y}(b[k, j])", "b[k, j]")
    )
    (made,) = load_text(TEXT.format(x=x, y=y, body=written, numerics=numerics), "npu.yaml")
    return made


def test_the_first_target_that_fits_gives_the_contract() -> None:
    made = load(
        "{accumulate: unordered, fraction_bits: 13, terms: 4, rounding: rz, result_bits: 13, targets: ["
        "{when: [v3, big], accumulate: sequential, fused: true},"
        "{when: [v3], accumulate: unordered, fraction_bits: 25, order: k % 2, start: zero}]}"
    )
    assert made.numerics.fraction_bits == 13
    assert made.on(frozenset()).numerics == made.numerics
    assert made.on(frozenset(["v2", "big"])).numerics.result_bits == 13
    wide = made.on(frozenset(["v3"])).numerics
    assert (wide.sum, wide.fraction_bits, wide.start) == ("aligned", 25, "zero")
    assert wide.order == (0, 2, 4, 6, 1, 3, 5, 7)
    assert wide.result_bits is None, "contracts of targets are complete: nothing is inherited"
    assert made.on(frozenset(["v3", "big"])).numerics.sum == "chain"
    assert made.on(frozenset(["v3"])).contracts == ()


@pytest.mark.parametrize(
    ("numerics", "options", "message"),
    [
        ("{sum: aligned}", {}, "aligned sums, and only they, have fraction_bits"),
        ("{sum: tree, fraction_bits: 9}", {}, "aligned sums, and only they, have fraction_bits"),
        ("{fraction_bits: 9, sum_bits: 20}", {}, "sum_bits and accumulator_bits go together"),
        ("{sum: lanes}", {}, "lanes need `terms`"),
        ("{operands_as: f16}", {}, "operands_as matters to aligned sums only"),
        ("{sum: tree}", {"body": FUSED}, "tree sums need a semantics that adds terms"),
        ("{start: zero}", {"body": FUSED}, "chain sums need a semantics that adds terms"),
        ("{rounding: rz}", {"x": "f64", "y": "f64"}, "sums in f64 are rounded to nearest even"),
        ("{order: k % x}", {}, "unknown name 'x'"),
        ("{order: k %}", {}, "is not an expression"),
        ("{rounding: up}", {}, "rounding"),
        ("{fraction_bits: 60}", {}, "fraction_bits"),
        ("{targets: [{accumulate: unordered}]}", {}, "when"),
        ("{targets: [{when: []}]}", {}, "when"),
        ("{targets: [{when: [v3], sum: lanes}]}", {}, "lanes need `terms`"),
        ("{targets: [{when: [v3], targets: []}]}", {}, "unknown key 'targets'"),
        ("{accumulate: exact}", {}, "exact with an accumulator of f32"),
        ("{terms: 4}", {"x": "s8", "y": "s32"}, "terms is for floats"),
        ("{accumulate: sequential}", {"x": "e2m1", "y": "e2m1"}, "an accumulator of e2m1 saturates in the middle"),
    ],
)
def test_contracts_that_make_no_sense(numerics: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(numerics, **options)
    assert message in str(caught.value)
    assert caught.value.location is not None
    assert caught.value.location.line == 8
