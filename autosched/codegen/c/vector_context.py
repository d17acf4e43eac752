"""What values in lanes need to know of their surroundings."""

from __future__ import annotations

from typing import Protocol

from autosched.ir.dtypes import DType
from autosched.ir.value import Read, Value
from autosched.logic import Bool, Int


class ValueContext(Protocol):
    """How the surroundings of a value print: memory, registers, conditions and formulas."""

    def read(self, read: Read, count: Int | None) -> str:
        """The elements of all lanes, or of those below `count`; NotVector for other reads."""

    def in_memory(self, name: str) -> bool:
        """Whether a buffer is no register."""

    def read_where(self, read: Read, mask: str, count: Int | None) -> str:
        """The elements of the lanes of a mask, as wide as they are, and zeros; no other lane touches memory."""

    def maskable(self, read: Read) -> bool:
        """Whether `read_where` has such elements."""

    def there(self, read: Read) -> bool:
        """Whether the element is known to lie inside its buffer, in each lane."""

    def within(self, index: Int, limit: int) -> bool:
        """Whether a formula over axes is known to be at least 0 and below the limit."""

    def from_index(self, index: Int, dtype: DType) -> str:
        """A formula over axes, which depends on the lane, as integers of a dtype of vectors."""

    def uniform(self, value: Value, count: Int | None) -> str:
        """A value that is the same in all lanes; 0 where `count`, if there is one, is not positive."""

    def mask(self, condition: Bool, bits: int) -> tuple[str, Int | None]:
        """A condition on the lane as a mask of that width; the count where it says `lane < count`."""

    def choice(self, condition: Bool) -> str:
        """A condition without the lane, as C before `?`."""

    def formula(self, function: str) -> str | None:
        """The vector function of a formula; None for a function of the language."""

    def widening(self, dtype: DType) -> str:
        """The vector function from the bits of a small float to f32: bits of 16 as they are stored, others as u32."""

    def narrowing(self, dtype: DType) -> str:
        """The vector function from f32, rounded, to such bits."""
