"""`sequences:` in YAML: machines that run others in an instruction's place, and what its operands take there."""

from __future__ import annotations

import pytest

from autosched.errors import SpecError
from autosched.machine.catalogue import load_target
from autosched.machine.offered import offered
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text

TEXT = """
isa: cuda
intrinsics:
  - name: dot
    scope: warp
    semantics: |
      def dot(a: s8[16, 32], b: s8[32, 8], c: s32[16, 8]):
          for i, j, k in grid(16, 8, 32):
              c[i, j] += s32(a[i, k]) * s32(b[k, j])
    operands:
      a: {{fragment: ["t//4 + 8*((v//4)%2)", "4*(t%4) + v%4 + 16*(v//8)"]}}
      b: {{fragment: ["4*(t%4) + v%4 + 16*(v//4)", "t//4"]}}
      c: {{fragment: ["t//4 + 8*(v//2)", "2*(t%4) + v%2"]}}
    sequences: {sequences}
"""


def load(sequences: str) -> Intrinsic:
    (made,) = load_text(TEXT.format(sequences=sequences), "npu.yaml")
    return made


def test_the_first_target_that_fits_says_what_operands_take() -> None:
    made = load("[{when: [v3, unit]}, {when: [v3], registers: {a: 8, b: 4}}]")
    assert made.sequence == made.on(frozenset(["v2"])).sequence == {}
    assert made.on(frozenset(["v3"])).sequence == {"a": 8, "b": 4}
    assert made.on(frozenset(["v3", "unit"])).sequence == {}
    assert made.on(frozenset(["v3"])).sequences == ()


@pytest.mark.parametrize(
    ("sequences", "message"),
    [
        ("[{when: [v3], registers: {d: 8}}]", "'d' is no operand"),
        ("[{when: [v3], registers: {a: 3}}]", "a fills 4 registers by itself, more than 3"),
        ("[{when: [v3], registers: {a: 0}}]", "registers"),
        ("[{registers: {a: 8}}]", "when"),
        ("[{when: [v3], register: {a: 8}}]", "unknown key 'register'"),
    ],
)
def test_sequences_that_make_no_sense(sequences: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(sequences)
    assert message in str(caught.value)
    assert caught.value.location is not None


def test_hopper_widens_what_ada_has_a_unit_for() -> None:
    intrinsic = Catalogue.builtin()["cuda/mma.m16n8k32.e4m3.e4m3.f32"]
    (hopper,) = offered([intrinsic], load_target("nvidia-h200"))
    (ada,) = offered([intrinsic], load_target("nvidia-rtx4090"))
    assert (hopper.sequence, ada.sequence) == ({"a": 8, "b": 4, "c": 8}, {})
