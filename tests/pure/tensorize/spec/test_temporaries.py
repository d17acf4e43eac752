"""Instructions whose semantics has several statements: temporaries are filled in, and what is none is refused."""

from __future__ import annotations

import pytest

from autosched.errors import SpecError
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.load import load_text


def load(body: str, more: str = "") -> Intrinsic:
    lines = "".join(f"      {line}\n" for line in body.splitlines())
    return load_text(f"isa: made\nintrinsics:\n  - name: up\n    semantics: |\n{lines}{more}")[0]


HEAD = "def f(a: s16[8], c: s16[8]):\n t: s16[8]\n"


def test_steps_are_one_statement() -> None:
    text = """def f(a: s16[8], b: s16[8], c: s16[8]):
 p: s32[8]
 r: s32[8]
 for i in range(8):
  p[i] = s32(a[i]) * s32(b[i])
 for i in range(8):
  r[i] = p[i] + 16384
  c[i] = s16(r[i] >> 15)"""
    plain = """def f(a: s16[8], b: s16[8], c: s16[8]):
 for i in range(8):
  c[i] = s16((s32(a[i]) * s32(b[i]) + 16384) >> 15)"""
    assert load(text).program == load(plain).program


def test_loops_are_called_as_the_text_calls_them() -> None:
    """Keys of operands name them, though a second loop over `k` has another name in a program."""
    text = """def f(a: u8[4, 2], b: s8[4, 2], c: s32[4]):
 p: s32[4, 2]
 for i, k in grid(4, 2):
  p[i, k] = s32(a[i, k]) * s32(b[i, k])
 for i, k in grid(4, 2):
  c[i] += p[i, k]"""
    found = load(text, "    operands: {a: {packed: [k, i]}}\n")
    assert [a.name for a in found.axes] == ["i", "k"]


def test_a_temporary_may_hold_the_target() -> None:
    found = load(HEAD + " for i in range(8):\n  t[i] = a[i] + c[i]\n  c[i] = t[i] + 1")
    assert "c[i] = a[i] + c[i] + 1" in str(found.program)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (" for i in range(8):\n  t[i] = a[i]\n  c[i] = t[7 - i]", "is read at an element that is not written yet"),
        (" for i in range(8):\n  c[i] = t[i]\n  t[i] = a[i]", "is read at an element that is not written yet"),
        (" for i in range(8):\n  t[i] = a[i]\n  t[i] = a[i] + 1\n  c[i] = t[i]", "more than one statement"),
        (" for i in range(8):\n  t[i] = a[i]\n  c[i] = a[i]", "'t' is not used"),
        (" for i in range(8):\n  if i < 4:\n   t[i] = a[i]\n  c[i] = t[i]", "is written under a condition"),
        (" for i in range(4):\n  t[i] = a[i]\n for i in range(8):\n  c[i] = t[i]", "is not written from end to end"),
        (" for i in range(8):\n  t[0] = a[i]\n  c[i] = t[0]", "is not indexed by each of its loops once"),
        (" u: s16[8]\n for i in range(8):\n  u[i] = t[i]\n  t[i] = a[i]\n  c[i] = u[i]", "'u' reads 't'"),
    ],
)  # fmt: skip
def test_what_is_no_temporary(body: str, said: str) -> None:
    with pytest.raises(SpecError, match=said) as error:
        load(HEAD + body)
    assert error.value.location is not None
    assert error.value.location.line > 4


def test_a_sum_that_reads_itself_through_a_temporary() -> None:
    """The temporary held what the target was before the first turn."""
    text = """def f(a: s16[8], c: s16[1]):
 t: s16[8]
 for i in range(8):
  t[i] = a[i] + c[0]
 for i in range(8):
  c[0] += t[i]"""
    with pytest.raises(SpecError, match="holds c, which changes while it is added to"):
        load(text)
