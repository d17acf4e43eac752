"""`Matrices`: registers of an instruction's own, each of which holds a matrix: so many rows of so many bytes.

They stand beside the vector registers and are numbered. A thread configures them before it uses them, and releases them
behind. A load fills one from rows in memory that lie `stride` bytes apart, a store empties one there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

USES: Mapping[str, frozenset[str]] = {
    "configure": frozenset({"configuration"}),
    "release": frozenset(),
    "zero": frozenset({"register"}),
    "load": frozenset({"register", "address", "stride"}),
    "store": frozenset({"register", "address", "stride"}),
}
"""What is done with them, and the fields of its text: `configuration` is an address, `register` a number."""


@dataclass(frozen=True, slots=True)
class Matrices:
    """`count` registers of `rows` x `row_bytes`; `configuration` is what a thread configures them with; `texts` are
    (printer, use, text)."""

    count: int
    rows: int
    row_bytes: int
    configuration: bytes
    texts: tuple[tuple[str, str, str], ...]

    def text(self, printer: str, use: str) -> str | None:
        """The template of a use (None: this printer has none)."""
        return next((t for p, u, t in self.texts if (p, u) == (printer, use)), None)

    def said(self, printer: str, use: str, **fields: object) -> str | None:
        """The text of a use with its fields filled in."""
        text = self.text(printer, use)
        for name, value in fields.items():
            text = text and text.replace(f"{{{name}}}", str(value))
        return text
