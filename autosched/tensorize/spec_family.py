"""`for:` families: one entry written once, a member for each set of values of its fields `{x}`."""

from __future__ import annotations

import re
from itertools import product
from math import prod
from typing import Any

from autosched.errors import SpecError
from autosched.yaml_lines import Document, Path

MAX_MEMBERS = 1024
Fields = dict[str, str | int | float]


def members(document: Document, raw: dict[str, Any], path: Path) -> list[tuple[Fields, dict[str, Any]]]:
    """Each member's fields and its keys with the fields filled in; one member with no fields where there is no `for`.

    A value may be a list, of which every entry counts: `for: {x: [1, 2], y: [3, 4]}` means all four combinations, and
    `for: [{x: 1, y: 2}, {x: 3, y: [4, 5]}]` three members.
    """
    family = raw.get("for")
    if family is None:
        return [({}, raw)]
    rest = {k: v for k, v in raw.items() if k != "for"}
    where = document.location(*path, "for", key=True)
    hint = "write [{x: 1}, {x: 2}] or {x: [1, 2]}"
    parts = family if isinstance(family, list) else [family]
    if not parts or not all(isinstance(part, dict) and part for part in parts):
        raise SpecError("for: lists no members", hint=hint, location=where)
    if any(part.keys() != parts[0].keys() for part in parts):
        raise SpecError("for: the members have different fields", hint=hint, location=where)
    rows: list[Fields] = []
    for part in parts:
        columns = [v if isinstance(v, list) else [v] for v in part.values()]
        if len(rows) + prod(len(c) for c in columns) > MAX_MEMBERS:
            raise SpecError(f"for: more than {MAX_MEMBERS:,} members", location=where)
        rows += [dict(zip(part, values, strict=True)) for values in product(*columns)]
    if not rows:
        raise SpecError("for: lists no members", hint=hint, location=where)
    for row in rows:
        for name, value in row.items():
            fits = isinstance(value, str | int | float) and not isinstance(value, bool)
            if not fits or not re.fullmatch(r"[A-Za-z_]\w*", name):
                message = f"for: the field {name!r} is not a word, or its value no text or number"
                raise SpecError(message, hint=hint, location=where)
    if isinstance(raw.get("operands"), dict):
        clash = sorted(set(rows[0]) & set(raw["operands"]))
        if clash:
            raise SpecError(f"{clash[0]!r} is a field of the family and an operand", hint="rename one", location=where)
    return [(row, {k: _fill(v, row) for k, v in rest.items()}) for row in rows]


def _fill(value: Any, fields: Fields) -> Any:
    match value:
        case str():
            return _fill_text(value, fields)
        case dict():
            return {k: _fill(v, fields) for k, v in value.items()}
        case list():
            return [_fill(v, fields) for v in value]
        case _:
            return value


def _fill_text(text: str, fields: Fields) -> Any:
    """`text` with each `{field}` replaced; other braces (operands, `{{`, `%{t}`) stay. A lone field keeps its type."""
    if text.startswith("{") and text.endswith("}") and text[1:-1] in fields:
        return fields[text[1:-1]]

    def one(found: re.Match[str]) -> str:
        name = found.group(1)
        return str(fields[name]) if name in fields else found.group(0)

    return re.sub(r"%\{\w+\}|\{\{|\{([A-Za-z_]\w*)\}", one, text)
