"""How operands must lie: typed fields of the YAML, and the sentences of older files, say the same."""

from __future__ import annotations

import pytest

from autosched.errors import SpecError
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.load import load_text

TEXT = """\
isa: cuda
intrinsics:
  - name: sums
    scope: warpgroup
    semantics: |
      def sums(a: s8[64, 32], b: s8[32, 16], c: s32[64, 16]):
          for i, j, k in grid(64, 16, 32):
              c[i, j] += s32(a[i, k]) * s32(b[k, j])
"""
FIELDS = """\
    shared_memory: {b: required, a: allowed}
    contiguous: {a: k, b: k}
    rules: ["rows: 64"]
"""
SENTENCES = """\
    rules:
      - "b: in shared memory, by descriptor; a: in shared memory or registers"
      - "a and b: contiguous along k"
      - "rows: 64"
"""


def intrinsic(text: str) -> Intrinsic:
    (found,) = load_text(TEXT + text)
    return found


def test_fields_and_sentences_are_one_intrinsic() -> None:
    new, old = intrinsic(FIELDS), intrinsic(SENTENCES)
    assert list(new.shared_memory.items()) == [("b", True), ("a", False)] == list(old.shared_memory.items())
    assert new.contiguous == {"a": "k", "b": "k"} == old.contiguous
    assert new.rules == old.rules
    assert new.version == old.version  # studies of before go on


def test_one_of_both_may_be_a_sentence() -> None:
    found = intrinsic('    shared_memory: {b: required}\n    rules: ["a: contiguous along k"]\n')
    assert (found.shared_memory, found.contiguous) == ({"b": True}, {"a": "k"})
    assert found.rules == ("b: in shared memory, by descriptor", "a: contiguous along k")


def test_without_either_nothing_is_asked() -> None:
    found = intrinsic("")
    assert (found.shared_memory, found.contiguous, found.rules) == ({}, {}, ())


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("shared_memory: {d: required}", 9, "shared_memory: 'd' is no input of the semantics", "inputs: a, b"),
        ("shared_memory: {c: required}", 9, "shared_memory: 'c' is no input of the semantics", "inputs: a, b"),
        ("shared_memory: {a: sometimes}", 9, "required", ""),
        ("contiguous: {d: k}", 9, "contiguous: 'd' is no input of the semantics", "inputs: a, b"),
        ("contiguous: {a: n}", 9, "contiguous: a along 'n', which is no axis", "axes: i, j, k"),
        ('contiguous: {a: k}\n    rules: ["a: contiguous along k"]', 9, "both speak of a", "leave the sentence out"),
        ('shared_memory: {b: allowed}\n    rules: ["b: in shared memory"]', 9, "both speak of b", "leave the sentence"),
    ],
)
def test_what_is_wrong_is_named(text: str, line: int, message: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        intrinsic(f"    {text}\n")
    assert caught.value.location is not None
    assert caught.value.location.line == line
    assert message in str(caught.value)
    assert hint in (caught.value.hint or "")
