"""Instructions that no program could match are refused when a file of one's own is loaded, with the reason."""

from __future__ import annotations

import pytest

from autosched.errors import SpecError
from autosched.tensorize.spec.load import load_text

CASES = {
    "a mask that has no such bit": (
        "p: b1[16], a: s32[16], c: s32[16]", 16, "if p[i] > 1:\n    c[i] += a[i]", "condition on p never holds",
    ),
    "a mask against itself": (
        "p: b1[16], a: s32[16], c: s32[16]", 16, "if p[i] != 0 and p[i] == 0:\n    c[i] += a[i]", "on p never holds",
    ),
    "a choice that never falls": (
        "p: b1[16], a: s32[16], b: s32[16], c: s32[16]", 16, "c[i] = a[i] if p[i] > 1 else b[i]", "on p never holds",
    ),
    "a length below nothing": (
        "vl: u32[1], a: s32[16], c: s32[16]", 16, "if u32(i) < vl[0] and vl[0] < 0:\n    c[i] += a[i]", "on vl never",
    ),
    "a group that does not divide": (
        "a: s8[40], s: f32[2], c: f32[1]", 40, "c[0] += f32(a[i]) * s[i // 32]", "s has one element for 32 of i",
    ),
    "an operand times zero": ("a: s32[16], c: s32[16]", 16, "c[i] += a[i] * 0", "'a' makes no difference"),
    "an operand less itself": ("a: s32[16], c: s32[16]", 16, "c[i] = a[i] - a[i]", "'a' makes no difference"),
}  # fmt: skip


def load(parameters: str, extent: int, statement: str) -> None:
    body = "".join(f"              {line}\n" for line in statement.splitlines())
    text = f"      def up({parameters}):\n          for i in range({extent}):\n{body}"
    load_text(f"isa: npu\nintrinsics:\n  - name: up\n    semantics: |\n{text}", "npu.yaml")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_refused(case: tuple[str, int, str, str]) -> None:
    parameters, extent, statement, message = case
    with pytest.raises(SpecError, match="no program can match it") as caught:
        load(parameters, extent, statement)
    assert message in caught.value.message
    assert caught.value.location is not None
    assert caught.value.hint


def test_what_a_program_can_match_is_not_refused() -> None:
    load("p: b1[16], a: s32[16], c: s32[16]", 16, "if p[i] == 0:\n    c[i] += a[i]")
    load("a: s8[60], s: f32[2], c: f32[1]", 60, "c[0] += f32(a[i]) * s[i // 30]")


def test_a_temporary_that_is_not_declared() -> None:
    with pytest.raises(SpecError, match="unknown name 't'") as caught:
        load("a: s32[16], c: s32[16]", 16, "t[i] = a[i] * 2\nc[i] = t[i] + 1")
    assert "`t: s32[16]`" in (caught.value.hint or "")
