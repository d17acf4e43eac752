# ruff: noqa: E501  (programs stand on one line)
"""Printing and parsing are inverse, and the printed form of the built-ins is what the golden files hold."""

from __future__ import annotations

import inspect
import os

import pytest
from hypothesis import given
from support.match.examples import examples
from support.paths import TESTS
from support.programs.ir_programs import program_texts, reduction_texts

import autosched.ir as ir

GOLDEN = TESTS / "golden" / "programs"
MANY = examples(150)


@pytest.mark.slow
@MANY
@given(program_texts() | reduction_texts())
def test_parsing_a_printed_program_gives_the_program(text: str) -> None:
    program = ir.parse(text)
    printed = str(program)
    again = ir.parse(printed)
    assert again == program, printed
    assert str(again) == printed


GOLDENS = [
    *((name, name, {}) for name in ir.workload_names()),
    ("matmul_u8_s8", "matmul", {"a": "u8", "b": "s8", "m": "1..4096"}),
    ("matmul_out", "matmul", {"t": "f16", "out": "f16", "tb": 1}),
    ("conv2d_grouped", "conv2d", {"groups": 4, "stride": 2, "dilation": 2, "t": "s8"}),
    ("conv2d_1x1", "conv2d", {"kh": 1, "kw": 1, "pad": 0}),
]


@pytest.mark.parametrize(("file", "name", "defines"), GOLDENS, ids=[g[0] for g in GOLDENS])
def test_golden_text(file: str, name: str, defines: dict[str, object]) -> None:
    """The golden files change with `AUTOSCHED_GOLDEN=update pytest`; look at the difference before committing it."""
    program = ir.workload(name, **defines)  # type: ignore[arg-type]
    text = str(program)
    path = GOLDEN / f"{file}.txt"
    if os.environ.get("AUTOSCHED_GOLDEN") == "update":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
    assert ir.parse(text) == program


@pytest.mark.parametrize(
    "doc",
    [
        "plain",
        "two\nlines",
        'a "quote"',
        'ends with "',
        "back\\slash",
        'three """ quotes',
        "  tabs\tand é",
        "a\n    b\nc",
        "trailing \nspace",
    ],
)
def test_docstrings_survive(doc: str) -> None:
    program = ir.parse(f"def f(C: f32[1]):\n    {doc!r}\n    C[0] = 0\n")
    assert ir.parse(str(program)) == program
    assert program.doc == inspect.cleandoc(doc)


@pytest.mark.parametrize(
    "line",
    ["C[i] = 0.1", "C[i] = -A[i]", "C[i] = -f32(1.5)", "C[i] = A[i] - (A[i] - 1)", "C[i] = 1 - A[i]", "C[i] = (A[i] - 1) - A[i]", "C[i] = A[i] * -2", "C[i] = -inf",
     "C[i] = 1.0 if A[i] > 0 else 0.0", "C[i] = 1 if i < 3 else 2", "C[i] = A[i] if not (i < 3 or A[i] > 0) else -1", "C[i] = f32(s32(7) >> 1)",
     "C[i] = min(1, A[i], 2)", "C[i] = max(C[i], 3)", "C[i] = A[i if i < 4 else 7 - i]", "C[i] = f32(i if i < 4 else -i)", "C[i] = A[(i * 3 - 2) % 8 // 2]",
     "C[i] = f32(s64(i) * -9223372036854775808)", "C[i] = g * A[max(i - 1, 0)]", "C[i] = f32(bf16(0.1)) + 16777217", "C[i] = fma(A[i], 2, -1)"],
)  # fmt: skip
def test_corners_survive(line: str) -> None:
    program = ir.parse(f"def f(A: f32[8], g: f32, C: f32[8]):\n    for i in range(8):\n        {line}\n")
    assert ir.parse(str(program)) == program, str(program)


def test_assumptions_and_intermediates_survive() -> None:
    program = ir.parse(
        'def f(A: f32[m], B: s8[m], g: f32, C: f32[m], *, m="4..64", t="bf16"):\n    T: t[m, 2]\n    assume(-0.5 <= A <= 1e30)\n'
        "    assume(B >= -3)\n    assume(g <= 2)\n    assume(m % 4 == 0)\n    assume(8 <= m)\n    T[0, 1] = 0\n    C[0] = f32(T[0, 1])\n"
    )
    assert len(program.assumptions) == 5
    assert ir.parse(str(program)) == program
