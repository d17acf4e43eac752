"""`PlacedJson`: a JSON value of a file, with its path. A reader states the type that it expects; another raises a
ValueError with the path: `plans[0].time_s[3] is "fast", and must be a number or null`.

>>> PlacedJson({"rows": [1, 2.5]}, "")["rows"].integers(0, 9)
Traceback (most recent call last):
    ...
ValueError: rows[1] is 2.5, and must be a whole number from 0 to 9
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

_SHOWN = 40  # characters of a value that a message has


@dataclass(frozen=True)
class PlacedJson:
    """`at` is the path from the top of the file, empty for the file itself."""

    value: Any
    at: str

    def __getitem__(self, key: str) -> PlacedJson:
        """A field of an object."""
        if key not in self.fields():
            raise ValueError(f"{self._inside(key)} is missing")
        return PlacedJson(self.value[key], self._inside(key))

    def get(self, key: str) -> PlacedJson | None:
        """A field that need not be there."""
        return self[key] if key in self.fields() else None

    def fields(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self.wrong("an object, {…}")
        return self.value

    def each(self, count: int | None = None, what: str = "rows") -> list[PlacedJson]:
        """The values of a list, of which there must be `count`."""
        values = self._list(count, what)
        return [PlacedJson(v, f"{self.at}[{n}]") for n, v in enumerate(values)]

    def named(self) -> dict[str, PlacedJson]:
        """The fields of an object by name."""
        return {key: self[key] for key in self.fields()}

    def text(self, one_line: bool = False) -> str:
        """A text that can be written anywhere; with `one_line` it stands in headlines: not empty."""
        if not isinstance(self.value, str):
            raise self.wrong("a text")
        try:
            self.value.encode()
        except UnicodeEncodeError:
            raise self.wrong("a text of whole characters (this has half of a pair)") from None
        if one_line and len(self.value.splitlines()) != 1:
            raise self.wrong("a text of one line, not empty")
        return self.value

    def integer(self, least: int, most: int) -> int:
        if not _whole(self.value, least, most):
            raise self.wrong(f"a whole number from {least:,} to {most:,}")
        return int(self.value)

    def integers(self, least: int, most: int, count: int | None = None) -> list[int]:
        values = self._list(count)
        bad = next((n for n, v in enumerate(values) if not _whole(v, least, most)), None)
        if bad is not None:
            PlacedJson(values[bad], f"{self.at}[{bad}]").integer(least, most)
        return list(values)

    def numbers(self, count: int | None = None) -> npt.NDArray[np.float64]:
        """Finite numbers, NaN where there is null."""
        values = self._list(count)
        for n, v in enumerate(values):
            if v is not None and not _finite(v):
                raise PlacedJson(v, f"{self.at}[{n}]").wrong("a finite number or null")
        return np.array([np.nan if v is None else v for v in values], np.float64)

    def wrong(self, wanted: str) -> ValueError:
        """What it is, and what it must be."""
        try:
            said = json.dumps(self.value)
        except ValueError:  # an integer of more digits than Python writes
            said = "an integer of thousands of digits"
        said = said if len(said) <= _SHOWN else f"{said[:_SHOWN]}…"
        return ValueError(f"{self.at or 'the file'} is {said}, and must be {wanted}")

    def _list(self, count: int | None, what: str = "rows") -> Sequence[Any]:
        if not isinstance(self.value, list):
            raise self.wrong("a list, […]")
        if count is not None and len(self.value) != count:
            raise ValueError(f"{self.at} has {len(self.value):,} values, and there are {count:,} {what}")
        return self.value

    def _inside(self, key: str) -> str:
        return f"{self.at}.{key}" if self.at else key


def _whole(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _finite(value: Any) -> bool:
    try:
        return type(value) in (int, float) and isfinite(value)
    except OverflowError:  # an integer that no float reaches
        return False
