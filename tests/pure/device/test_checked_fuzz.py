"""Random programs (`tests/fuzz/checked.py`): no right kernel is refused."""

from __future__ import annotations

import pytest
from fuzz.checked import search


def test_some_programs() -> None:
    count, wrong = search(0, 9)
    assert not wrong
    assert count["kernels"] > 20


@pytest.mark.slow
def test_more_programs() -> None:
    count, wrong = search(10_000, 10_000, seconds=50)
    assert not wrong
    assert count["kernels"] > 40


@pytest.mark.slow
def test_zeros_of_either_sign_beneath_a_root() -> None:
    """What was refused: the infinity of the other sign, where no error is known."""
    assert search(1129, 1)[1] == []
