"""Output of the command line: answers to standard output, everything else to standard error, numbers with units."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from autosched.escape import for_terminal, json_text
from autosched.report.text import JOULES, scaled
from autosched.store.records import Measurement

_WIDE = 100_000
GAP = 2
"""Blanks between two columns."""
LEAST = 8
"""Characters that a column keeps, however narrow the terminal."""


def talk() -> Console:
    """The console for everything that is not the answer."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def answer(text: str) -> None:
    """A line or block of the answer."""
    sys.stdout.write(for_terminal(text.rstrip("\n")) + "\n")
    sys.stdout.flush()


def answer_json(value: Any) -> None:
    """The answer as one JSON value."""
    answer(json_text(value, indent=2, default=_plain))


def _plain(value: Any) -> Any:
    if isinstance(value, set | frozenset | tuple):
        return sorted(value) if isinstance(value, set | frozenset) else list(value)
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)


def complain(message: str, hint: str | None = None) -> None:
    """Print an error and its hint, in the one form that errors have."""
    sys.stderr.write(for_terminal(f"error: {message}\n" + (f"help: {hint}\n" if hint else "")))


def table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], title: str | None = None, shorten: Sequence[str] = ()
) -> None:
    """A table on standard output; columns that hold numbers are set to the right. On a terminal those to `shorten` have
    what the others leave of its width."""
    shown = Table(title=title, box=None, pad_edge=False, header_style="bold", title_justify="left")
    texts = [[for_terminal(str(x)) for x in row] for row in rows]
    terminal = Console(file=sys.stdout, highlight=False, markup=False) if sys.stdout.isatty() else None
    if terminal is not None and shorten:
        texts = shortened(columns, texts, shorten, terminal.width)
    for c, name in enumerate(columns):
        numeric = bool(rows) and all(isinstance(r[c], int | float) or _is_number(str(r[c])) for r in rows)
        shown.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in texts:
        shown.add_row(*row)
    if terminal is not None:
        terminal.print(shown)
    else:  # one line a row, however long: programs read it line by line
        text = io.StringIO()
        Console(file=text, highlight=False, markup=False, width=_WIDE, color_system=None).print(shown)
        answer("\n".join(line.rstrip() for line in text.getvalue().splitlines()))


def shortened(
    columns: Sequence[str], rows: Sequence[Sequence[str]], which: Sequence[str], width: int
) -> list[list[str]]:
    """The rows with the texts of some columns cut so that each row fits into `width`: the shorter columns stay whole as
    far as an equal share of the rest lets them.

    >>> shortened(["n", "plan", "row"], [["1", "short", "a=1 b=2 c=3 d=4"]], ["plan", "row"], 20)
    [['1', 'short', 'a=1 b=…d=4']]
    """
    wide = {c: max(map(len, (name, *(row[c] for row in rows)))) for c, name in enumerate(columns)}
    cut = sorted((c for c, name in enumerate(columns) if name in which), key=lambda c: wide[c])
    left = width - GAP * (len(columns) - 1) - sum(w for c, w in wide.items() if c not in cut)
    limits = dict[int, int]()
    for number, c in enumerate(cut):
        limits[c] = min(wide[c], max(left // (len(cut) - number), LEAST))
        left -= limits[c]
    return [[_cut(text, limits.get(c, len(text))) for c, text in enumerate(row)] for row in rows]


def _cut(text: str, most: int) -> str:
    """The text without its middle: plans differ at their ends."""
    end = (most - 1) // 3
    return text if len(text) <= most else f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


def _is_number(text: str) -> bool:
    """Whether a cell is a number, with a unit and an interval where it has them: `1.18 ms [1.12 ms, 1.23 ms]`."""
    return re.fullmatch(r"\d[\d.,e+-]*( ?[^\s\[]+)?( \[.*\])?", text) is not None


def joules(measurement: Measurement, objective: str) -> str:
    """For a study that minimises energy: joules (and their product with time), to print behind the time; else empty."""
    spent = measurement.extra.get("energy_j", {}).get("total")
    if objective == "latency" or not spent:
        return ""
    product = f"  {measurement.cost:.3g} J·s" if objective == "edp" else ""
    return f"  {scaled(spent, JOULES, 3)}{product}"


def raced(candidates: int, more: int = 0) -> str:
    """The final round in words."""
    if more:
        return f"{more} more, and those raced so far again: the machine was another when they were tried"
    return "the best again" if candidates == 1 else f"the best {candidates} again, interleaved"
