"""Tables and notes as HTML, in reports and in notebooks."""

from __future__ import annotations

from collections.abc import Sequence

from autosched.escape import html_text


def table_html(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; without a line of heads where all of them are empty."""
    head = "".join(f"<th>{html_text(h)}</th>" for h in heads) if any(heads) else ""
    body = "".join("<tr>" + "".join(f"<td>{html_text(c)}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>" if head else f"<table>{body}</table>"


def tables_html(tables: Sequence[tuple[str, Sequence[Sequence[str]]]]) -> str:
    """Tables with their titles; the first line of each has its heads."""
    found = []
    for title, (heads, *rows) in tables:
        found.append((f"<h3>{html_text(title)}</h3>" if title else "") + table_html(heads, rows))
    return "".join(found)


def notes_html(notes: Sequence[str]) -> str:
    """A paragraph a note."""
    return "".join(f'<p class="note">{html_text(note)}</p>' for note in notes)
