"""One pass over blocks that masks bound on one side or the other: random programs, and those that were wrong."""

from __future__ import annotations

from collections import Counter

import pytest
from fuzz import masked

from autosched import ir

KNOWN = {
    "keys from a row's place on": ("j >= i - 1", True, {"n": 100, "l": 200, "d": 16}),
    "guards in place of choices": ("j > i - 17", False, {"n": 64, "l": 64, "d": 32}),
}


@pytest.mark.parametrize("why", KNOWN)
def test_programs_that_were_wrong(why: str) -> None:
    """The kernels read elements without a value: scores of blocks that the mask may leave out, and terms that a guard
    skips."""
    condition, choice, sizes = KNOWN[why]
    before = ir.parse(masked.attention(condition, choice), sizes={"h": 1, **sizes})
    count = Counter[str]()
    assert not list(masked.wrong_kernels(3, count, before))
    assert count["kernels"] >= 2


@pytest.mark.slow
def test_random_masks() -> None:
    """`python -m tests.fuzz.masked --programs 100` looks at more of them."""
    count, wrong = masked.search(5, 5)
    assert not wrong, wrong
    assert count["kernels"] >= 15
