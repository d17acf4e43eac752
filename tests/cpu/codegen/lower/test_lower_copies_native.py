"""Copies of operands as machine code: what the interpreter is held to
(tests/pure/codegen/lower/operands/test_lower_copies.py)."""

from __future__ import annotations

import pytest
from pure.codegen.lower.operands.test_lower_copies import BORDERED, INTERLEAVED, ONLY, SHUFFLED
from support.compiled.native import check_machine_code
from support.match.agreement import expect
from support.plans import plans_of, this_machine
from support.programs.copies import rows_with

from autosched.codegen.lower import lower
from autosched.machine.host import host_features

pytestmark = pytest.mark.x86
HERE = this_machine()


@pytest.mark.slow
@pytest.mark.parametrize("name", INTERLEAVED | SHUFFLED | BORDERED)
def test_copies_as_machine_code(name: str) -> None:
    if "avx2" not in host_features():
        pytest.skip("needs AVX2")
    program = (INTERLEAVED | SHUFFLED | BORDERED)[name]
    expected = expect(program, 2)
    for plan in plans_of(program, HERE, threads=2, only=ONLY)[:3]:
        for kind in ("interleaved", "padded", "direct"):
            for row in rows_with(plan, kind, 1):
                check_machine_code([lower(plan, plan.space.schedule(row))], expected)
