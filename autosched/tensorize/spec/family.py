"""`for:` families: one entry, and a member for each set of values of its fields `{x}`.

A field's values are one value, a list, or a rule: `{from: 8, to: 256, by: 8}` counts (alone or within a list), and
`{is: n // 2}` follows from the member's other numbers.
"""

from __future__ import annotations

import re
from itertools import product
from math import prod
from typing import Any

from autosched.errors import Location, SpecError
from autosched.logic import evaluate
from autosched.tensorize.spec.expression import parse_expression
from autosched.yaml_lines import Document, Path

MAX_MEMBERS = 1024
Scalar = str | int | float
Fields = dict[str, Scalar]
_HINT = "write [{x: 1}, {x: 2}], {x: [1, 2]} or {x: {from: 8, to: 64, by: 8}}"


def members(document: Document, raw: dict[str, Any], path: Path) -> list[Fields]:
    """Each member's fields; one member with no fields where there is no `for`. `fill` puts them into its keys.

    A value may be a list, of which every entry counts: `for: {x: [1, 2], y: [3, 4]}` means all four combinations, and
    `for: [{x: 1, y: 2}, {x: 3, y: [4, 5]}]` three members.
    """
    family = raw.get("for")
    if family is None:
        return [{}]
    where = document.location(*path, "for", key=True)
    parts = family if isinstance(family, list) else [family]
    if not parts or not all(isinstance(part, dict) and part for part in parts):
        raise SpecError("for: lists no members", hint=_HINT, location=where)
    if any(part.keys() != parts[0].keys() for part in parts):
        raise SpecError("for: the members have different fields", hint=_HINT, location=where)
    rows: list[Fields] = []
    for number, part in enumerate(parts):
        at = (*path, "for", number) if isinstance(family, list) else (*path, "for")
        rows += _rows(part, document, at, MAX_MEMBERS - len(rows))
    if not rows:
        raise SpecError("for: lists no members", hint=_HINT, location=where)
    if isinstance(raw.get("operands"), dict):
        clash = sorted(set(rows[0]) & set(raw["operands"]))
        if clash:
            raise SpecError(f"{clash[0]!r} is a field of the family and an operand", hint="rename one", location=where)
    return rows


def _rows(part: dict[str, Any], document: Document, path: Path, room: int) -> list[Fields]:
    """The members of one mapping of fields, at most `room`: all combinations of listed values, then the `is` fields."""
    derived = {n: v["is"] for n, v in part.items() if isinstance(v, dict) and v.keys() == {"is"}}
    columns = {n: _values(n, v, document.location(*path, n)) for n, v in part.items() if n not in derived}
    if prod(len(c) for c in columns.values()) > room:
        raise SpecError(f"for: more than {MAX_MEMBERS:,} members", location=document.location(*path))
    rows: list[Fields] = [dict(zip(columns, values, strict=True)) for values in product(*columns.values())]
    for name, text in derived.items():
        place = document.location(*path, name)
        numbers = tuple(n for n in columns if all(isinstance(row[n], int) for row in rows))
        rule = parse_expression(str(text), numbers, place)
        for row in rows:
            row[name] = int(evaluate(rule, {n: row[n] for n in numbers}))
    return rows


def _values(name: str, value: Any, where: Location) -> list[Scalar]:
    """The values of one field: of a scalar, of a list of scalars and ranges, or of a range."""
    found: list[Scalar] = []
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, dict):
            found += _range(name, one, where)
        elif isinstance(one, str | int | float) and not isinstance(one, bool):
            found.append(one)
        else:
            raise SpecError(f"for: a value of {name!r} is not a text, a number or a rule", hint=_HINT, location=where)
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise SpecError(f"for: the field {name!r} is not a word", hint=_HINT, location=where)
    if len(set(found)) < len(found):
        raise SpecError(f"for: {name!r} has a value twice", location=where)
    return found


def _range(name: str, rule: dict[str, Any], where: Location) -> range:
    """The range of `{from, to, by}`, both ends included."""
    ends = [v for k in ("from", "to", "by") if isinstance(v := rule.get(k), int) and not isinstance(v, bool)]
    if rule.keys() != {"from", "to", "by"} or len(ends) != 3:
        hint = "{from: 8, to: 256, by: 8}, or {is: n // 2} of other fields"
        raise SpecError(f"for: {name!r} is not a rule", hint=hint, location=where)
    low, high, step = ends
    if step < 1 or not 0 <= low <= high or (high - low) % step:
        raise SpecError(f"for: {name!r} does not count from {low} to {high} by {step}", location=where)
    if (high - low) // step >= MAX_MEMBERS:
        raise SpecError(f"for: more than {MAX_MEMBERS:,} members", location=where)
    return range(low, high + 1, step)


def fill(value: Any, fields: Fields) -> Any:
    """`value`, keys of an entry, with the fields filled in."""
    match value:
        case str():
            return _fill_text(value, fields)
        case dict():
            return {k: fill(v, fields) for k, v in value.items()}
        case list():
            return [fill(v, fields) for v in value]
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
