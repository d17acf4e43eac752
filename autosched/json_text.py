"""JSON from outside: whatever is wrong with a text is a ValueError."""

from __future__ import annotations

import json
from typing import Any

MAX_VALUES = 20_000_000
"""Commas and opening brackets of a text; a value takes some 60 bytes of memory."""


def parse_json(text: str, *, finite: bool = True) -> Any:
    """The value. Raises json.JSONDecodeError with a place for what is no JSON; ValueError for nesting too deep, too
    many values, integers of thousands of digits and, where `finite`, for Infinity and NaN."""
    if sum(text.count(c) for c in ",[{") > MAX_VALUES:
        raise ValueError(f"it holds more than {MAX_VALUES:,} values")
    try:
        return json.loads(text, parse_constant=_refuse if finite else None)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
