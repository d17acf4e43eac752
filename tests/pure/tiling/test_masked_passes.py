"""One pass over blocks that masks bound on one side or the other: random programs, and those that were wrong."""

from __future__ import annotations

from collections import Counter

import pytest
from fuzz import masked

from autosched import ir
from autosched.ir.rewrites.online.search import online
from autosched.ir.value import Select

KNOWN = {
    "keys from a row's place on": ("j >= i - 1", True, {"n": 100, "l": 200, "d": 16}),
    "guards in place of choices": ("j > i - 17", False, {"n": 64, "l": 64, "d": 32}),
    "guards of blocks that are left": ("j <= i + 136", False, {"n": 64, "l": 200, "d": 32}),
}


@pytest.mark.slow
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
def test_a_conversion_covers_the_rows_that_its_part_writes() -> None:
    """A part of rows with intermediates of its own, of which the others have none."""
    condition, sizes = "j <= i + 33 and j >= i - 33 and i + j < 96", {"n": 96, "l": 129, "d": 16}
    before = ir.parse(masked.attention(condition, choice=True), sizes={"h": 1, **sizes})
    count = Counter[str]()
    assert not list(masked.wrong_kernels(4, count, before))
    assert count["kernels"] >= 2


def test_terms_under_guards_are_zero_where_these_fail() -> None:
    """Kernels fetch whole slices of them."""
    before = ir.parse(masked.attention("j <= i + 136", choice=False), sizes={"h": 1, "n": 64, "l": 200, "d": 32})
    found = next(iter(online(before, real=True, block=64, tile=32)))
    assert found.after is not None
    terms = [s for s in found.after.stages if s.assign.tensor.startswith("M_term")]
    assert terms
    assert not any(s.guards for s in terms)
    assert any(isinstance(s.assign.value, Select) for s in terms)


@pytest.mark.slow
def test_random_masks() -> None:
    """`python -m tests.fuzz.masked --programs 100` looks at more of them."""
    count, wrong = masked.search(0, 2)
    assert not wrong, wrong
    assert count["kernels"] >= 3
