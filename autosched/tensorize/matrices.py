"""`Matrices`: registers of an instruction's own, each of which holds a matrix: so many rows of so many bytes.

They stand beside the vector registers and are numbered. A thread configures them before it uses them, and releases them
behind. A load fills one from rows in memory that lie `stride` bytes apart, a store empties one there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from autosched.ir.dtypes import DType

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
    """`count` registers of `rows` x `row_bytes`; `configuration` is what a thread configures them with, `rows_at` the
    place in it of the first register's rows, a byte each (None: they always have all); `texts` are (printer, use,
    text)."""

    count: int
    rows: int
    row_bytes: int
    configuration: bytes
    texts: tuple[tuple[str, str, str], ...]
    rows_at: int | None = None

    def row_elements(self, dtype: DType) -> int:
        """Elements of a row."""
        return 8 * self.row_bytes // dtype.bits

    def rows_of(self, elements: int, dtype: DType) -> int:
        """Rows of a register that holds so many elements."""
        return elements // self.row_elements(dtype)

    def rows_in(self, register: int) -> int:
        """Rows of a register, as they are configured."""
        return self.rows if self.rows_at is None else self.configuration[self.rows_at + register]

    def with_rows(self, rows: Mapping[int, int]) -> Matrices:
        """The same registers, some of which are configured with fewer rows."""
        data = bytearray(self.configuration)
        for register, some in rows.items():
            if some != self.rows_in(register):
                assert self.rows_at is not None
                data[self.rows_at + register] = some
        return replace(self, configuration=bytes(data))

    def same(self, other: Matrices | None) -> bool:
        """Whether they are the same registers, however many rows each is configured with."""
        return other is not None and replace(other, configuration=self.configuration) == self

    def text(self, printer: str, use: str) -> str | None:
        """The template of a use (None: this printer has none)."""
        return next((t for p, u, t in self.texts if (p, u) == (printer, use)), None)

    def said(self, printer: str, use: str, **fields: object) -> str | None:
        """The text of a use with its fields filled in."""
        text = self.text(printer, use)
        for name, value in fields.items():
            text = text and text.replace(f"{{{name}}}", str(value))
        return text
