"""Printing and parsing are inverse, and the printed form of the built-ins is what the golden files hold."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from ir_programs import program_texts, reduction_texts

import autosched.ir as ir

GOLDEN = Path(__file__).parent.parent / "golden" / "programs"
MANY = settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))


@MANY
@given(program_texts() | reduction_texts())
def test_parsing_a_printed_program_gives_the_program(text: str) -> None:
    program = ir.parse(text)
    printed = ir.print_program(program)
    again = ir.parse(printed)
    assert again == program, printed
    assert ir.print_program(again) == printed
