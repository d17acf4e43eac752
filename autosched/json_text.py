"""JSON from outside: whatever is wrong with a text is a ValueError."""

from __future__ import annotations

import json
import re
from typing import Any

_LONG = re.compile(r"\d{4300,}")
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
    except json.JSONDecodeError:
        raise
    except ValueError:
        if found := _LONG.search(text):  # Python names a setting of its own
            line = text.count("\n", 0, found.start()) + 1
            column = found.start() - text.rfind("\n", 0, found.start())
            said = f"line {line}, column {column}: an integer of {len(found[0]):,} digits"
            raise ValueError(f"{said}, which is no measurement") from None
        raise


def repeated_key(text: str) -> str:
    """The path of the first key that an object of this JSON has twice, `plans[0].name`; empty where none has.

    >>> repeated_key('{"plans": [{"name": "a"}, {"name": "b", "name": "c"}]}')
    'plans[1].name'
    """
    return _repeated(json.loads(text, object_pairs_hook=_Pairs), "")


class _Pairs(tuple[tuple[str, Any], ...]):
    """An object's keys and values as they stand; lists stay lists."""


def _repeated(value: Any, at: str) -> str:
    if isinstance(value, list):
        found = (_repeated(one, f"{at}[{n}]") for n, one in enumerate(value) if isinstance(one, list | _Pairs))
        return next(filter(None, found), "")
    if not isinstance(value, _Pairs):
        return ""
    seen: set[str] = set()
    for key, one in value:
        here = f"{at}.{key}" if at else key
        if key in seen:
            return here
        seen.add(key)
        if inside := _repeated(one, here):
            return inside
    return ""


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
