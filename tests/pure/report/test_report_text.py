"""Numbers as people read them: so many digits, however round the number."""

from __future__ import annotations

import pytest

from autosched.report.text import counted, seconds, speed


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (1e-3, "1.00 ms"), (999.6e-6, "1.00 ms"), (999.4e-6, "999 µs"), (1.004e-5, "10.0 µs"), (9.994e-6, "9.99 µs"),
        (9.996e-6, "10.0 µs"), (1.5e-10, "0.15 ns"), (1234.0, "1230 s"), (0.0, "0 s"), (None, "-"), (float("nan"), "-"),
    ],
)  # fmt: skip
def test_seconds(value: float | None, said: str) -> None:
    assert seconds(value) == said


@pytest.mark.parametrize(
    ("operations", "value", "said"),
    [
        (5.9e13, 1.0, "59.00 TOP/s"), (999.96e9, 1.0, "1.000 TOP/s"), (267.3e6, 1e-3, "267.3 GOP/s"),
        (12, 1.0, "12.00 OP/s"), (5, None, "-"), (0, 1.0, "-"),
    ],
)  # fmt: skip
def test_speed(operations: float, value: float | None, said: str) -> None:
    assert speed(operations, value) == said


def test_counted() -> None:
    assert [counted(n, "plan") for n in (0, 1, 2, 1200)] == ["0 plans", "1 plan", "2 plans", "1,200 plans"]
