"""Fragments whose elements lie in several lanes, or in fields of other widths than their types: what is refused, what
is proved, and what the emulator sees."""

from __future__ import annotations

import numpy as np
import pytest

from autosched.codegen.cuda.emulation.models import REGISTERS, held
from autosched.errors import SpecError
from autosched.tensorize.check.verify import check
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text

CATALOGUE = Catalogue.builtin()
SCALED = CATALOGUE["cuda/mma.m16n8k32.e2m1.e4m3.f32.mxf8f6f4"]
SPARSE = CATALOGUE["cuda/mma.sp.m16n8k32.f16.f16.f32"]
TEXT = """
isa: cuda
requires: [sm_80]
intrinsics:
  - name: chosen
    scope: warp
    semantics: |
      def chosen(a: f16[16, 16], e: u8[16, 16], c: f32[16, 8]):
          for i, j, k in grid(16, 8, 16):
              c[i, j] += f32(a[i, k]) if e[i, k]{mask} == 1 else 0.0
    numerics: {{accumulate: unordered}}
    operands:
      e: {{{e}}}
"""
FRAGMENT = 'fragment: ["t//4 + 8*(v//8)", "8*(t%2) + v%8"]'


def loaded(e: str, mask: str = " & 3") -> Intrinsic:
    (found,) = load_text(TEXT.format(e=e, mask=mask), "own.yaml")
    return found


@pytest.mark.parametrize(
    ("e", "mask", "said"),
    [
        (FRAGMENT, " & 3", "is no bijection onto"),
        (f"{FRAGMENT}, copies: 4", " & 3", "coordinate 0 is 16"),
        ('fragment: ["t//4 + 8*(v//8)", "v%8"], copies: 2', " & 3", "is held 4 times, not 2"),
        ('fragment: ["t//4 + 8*(v//8)", "8*(t%4//3) + v%8"], copies: 2', " & 3", "is held 3 times, not 2"),
        (f"{FRAGMENT}, copies: 2, bits: 2", "", "does not fit into 2 bits"),
        (f"{FRAGMENT}, copies: 2, bits: 2", " & 7", "does not fit into 2 bits"),
        (f"{FRAGMENT}, copies: 2, bits: 4, shift: 4", " & 3", "no field of a register"),
        (f"{FRAGMENT}, copies: 2, bits: 3", " & 3", "no field of a register"),
        (f"{FRAGMENT}, copies: 2, bits: 2, registers: 2 x b32", " & 3", "does not hold it"),
        (f"{FRAGMENT}, copies: 2, bits: 2, load: [ldmatrix.x4]", " & 3", "elements take other bits"),
        ("copies: 2", " & 3", "copies of no fragment"),
        ("bits: 2", " & 3", "bits of no fragment"),
        ("distinct: 3", " & 3", "no groups of 3"),
    ],
)  # fmt: skip
def test_what_does_not_hold_an_operand_is_refused(e: str, mask: str, said: str) -> None:
    with pytest.raises(SpecError) as error:
        loaded(e, mask)
    assert said in str(error.value)


def test_a_field_of_two_bits() -> None:
    operand = loaded(f"{FRAGMENT}, copies: 2, bits: 2, registers: 1 x b32").operands["e"]
    assert (operand.field_bits, operand.copies, operand.lane_elements(32)) == (2, 2, 16)
    assert operand.in_fields


def test_copies_are_proved() -> None:
    report = check(SCALED, frozenset())
    assert report.ok
    found = {p.what: p.detail for p in report.parts if p.status == "proved"}
    assert found["fragment of sa"] == "each element of (16,) in 2 lanes (exhaustion)"
    assert found["fragment of a"] == "a bijection (z3)"


def test_a_whole_operand_stands_for_its_parts() -> None:
    whole = SPARSE.registered
    assert whole is not None
    assert list(SPARSE.operands) == ["a", "e", "b_0", "b_1", "b_2", "b_3", "c"]
    assert list(whole.operands) == ["a", "e", "b", "c"]
    assert whole.parts == {"b": ("b_0", "b_1", "b_2", "b_3")}
    assert whole.selected == {"b.1": ("b", 1)}
    assert whole.operations == SPARSE.operations == 2 * 16 * 8 * 16


@pytest.mark.parametrize(("intrinsic", "name"), [(SCALED, "a"), (SCALED, "sa"), (SCALED, "b"), (SPARSE, "e")])
def test_the_emulator_reads_what_lanes_hold(intrinsic: Intrinsic, name: str) -> None:
    """Words are made here from the fragment map, lane by lane and bit by bit."""
    issued = intrinsic.registered or intrinsic
    operand, rng = issued.operands[name], np.random.default_rng(0)
    numbers = rng.integers(0, 1 << min(operand.dtype.bits, operand.field_bits - operand.shift), operand.shape)
    storage = held(issued, operand, REGISTERS)
    words = np.zeros((32, storage.shape[1] * 8 // 32), np.uint64)
    assert operand.fragment is not None
    places = operand.fragment.points()[0]
    for t in range(32):
        for v in range(operand.lane_elements(32)):
            bit = v * operand.field_bits
            words[t, bit // 32] |= np.uint64(int(numbers[tuple(places[:, t, v])]) << operand.shift << bit % 32)
    raw = words.astype(np.uint32).view(np.uint8).reshape(-1)
    assert np.array_equal(storage.elements(raw).view(np.uint8), numbers.astype(np.uint8))
    if operand.copies > 1:
        raw[0] ^= 1
        with pytest.raises(AssertionError, match="different elements"):
            storage.elements(raw)
