"""A few programs of the fuzzer of choices and conversions in exported C."""

from __future__ import annotations

import pytest
from fuzz.choices import search
from support.compiled.c_build import needs_compiler

pytestmark = [needs_compiler, pytest.mark.compiler, pytest.mark.x86]


@pytest.mark.parametrize("programs", [6, pytest.param(70, marks=pytest.mark.slow)])
def test_nothing_is_wrong(programs: int) -> None:
    count, wrong = search(0, programs)
    assert not wrong, "\n\n".join(wrong)
    assert count["programs"] == programs
    assert count["in lanes"] > count["kernels"] // 4
