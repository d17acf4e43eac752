"""Tables: on a terminal a row has one line, elsewhere all of its text."""

from __future__ import annotations

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autosched.cli.output import GAP, LEAST, shortened, table

PLAN = "loops over b, i_tile (loops over j_block (S: mul(i←j))) [online 32x128]"
COLUMNS, ROW = ("trial", "time", "plan", "schedule"), ("1", "2.3 µs", PLAN, "reg_i=4 reg_j=2 order=j i p " * 9)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_row_has_one_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", seen := Terminal())
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    table(COLUMNS, [ROW], shorten=("plan", "schedule"))
    _, row = seen.getvalue().splitlines()
    assert len(row) <= 80
    assert row.startswith("    1  2.3 µs  loops over b, i")
    assert "[online 3" not in row.split("…")[0]
    assert "32x128]" in row


def test_all_of_a_row_elsewhere_and_brackets_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    table(COLUMNS, [ROW], shorten=("plan", "schedule"))
    _, row = capsys.readouterr().out.splitlines()
    assert PLAN in row
    assert ROW[3].strip() in row


@given(st.lists(st.integers(0, 60), min_size=4, max_size=4), st.integers(20, 200))
def test_rows_fit_where_they_can(lengths: list[int], width: int) -> None:
    row = ["x" * n for n in lengths]
    (found,) = shortened(COLUMNS, [row], ("plan", "schedule"), width)
    assert found[:2] == row[:2]

    def taken(texts: list[str], columns: slice = slice(None)) -> int:
        return sum(max(len(n), len(t)) for n, t in zip(COLUMNS[columns], texts[columns], strict=True))

    least = taken(row, slice(2)) + 2 * LEAST
    assert taken(found) + 3 * GAP <= max(width, least + 3 * GAP)
    if taken(row) + 3 * GAP <= width:
        assert found == row
