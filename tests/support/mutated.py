"""Plain data (of YAML or JSON files), changed at random by somebody who means no good."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

HOSTILE: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    10**18,
    10**39,
    1e308,
    float("inf"),
    float("nan"),
    "",
    " ",
    "\n",
    "\x7f",
    "\u202e",
    "é",
    "大",
    "{",
    "}}",
    "{x}",
    "%{t}",
    "{a}",
    "{keep}",
    "{a.across}",
    "{a_layout}",
    "{address}",
    "*/ int evil(void); /*",
    '"); abort(); ("',
    "; abort();",
    "\\",
    '"',
    "??/",
    "//",
    "#include <x>",
    '__asm__("")',
    "x" * 5000,
    "(" * 500,
    "(" * 5000 + ")" * 5000,
    "-" * 3000 + "1",
    "not " * 2000 + "1",
    "1 // 0",
    "e % 0",
    "2 ** 99",
    "1 << 99999",
    "e << 40",
    "10**30",
    "(lambda: 1)()",
    '__import__("os")',
    "f(x)",
    "x.y",
    "1j",
    "f33",
    "bf16[1]",
    "def f(): pass",
    "1e999 GB",
    "-1 GB",
    "0 Hz",
    "1 parsec",
    "NaN GHz",
    [],
    {},
    [[]],
    [{}],
    {"a": 1},
    {"is": "1 // 0"},
    {"is": "2 ** 99"},
    {"is": "n % 0"},
    {"from": 0, "to": 10**12, "by": 1},
    ["a"] * 50,
    list(range(2000)),
    "def f(a: f32[0], c: f32[1]):\n    c[0] += a[0]\n",
    "def f(a: f32[1000000000], c: f32[1]):\n    for k in range(1000000000):\n        c[0] += a[k]\n",
)


def mutated(data: Any, rng: random.Random, others: Sequence[Any] = ()) -> Any:
    """A copy with one to three changes; parts of `others` turn up in it, too."""
    data = copy.deepcopy(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        path = rng.choice([p for p in _paths(data) if p] or [()])
        if not path:
            return data
        holder, key = _at(data, path[:-1]), path[-1]
        _change(holder, key, rng, others)
    return data


def _change(holder: Any, key: Any, rng: random.Random, others: Sequence[Any]) -> None:
    value, kind = holder[key], rng.random()
    if kind < 0.35 and isinstance(value, str):
        holder[key] = _text(value, rng)
    elif kind < 0.45 and isinstance(value, int | float):
        holder[key] = rng.choice([0, -1, value * 2, value + 1, 10**12, 2**63, 1.5, str(value)])
    elif kind < 0.75:
        holder[key] = copy.deepcopy(rng.choice(HOSTILE))
    elif kind < 0.82:
        del holder[key]
    elif kind < 0.9 and isinstance(holder, dict):
        holder[str(rng.choice(HOSTILE))[:40]] = value
    elif kind < 0.95 and isinstance(holder, dict) and others:
        other = rng.choice(others)
        path = rng.choice([p for p in _paths(other) if p])
        holder[str(path[-1])] = copy.deepcopy(_at(other, path))
    else:
        holder[key] = [value, value]


def _text(text: str, rng: random.Random) -> str:
    start = rng.randrange(len(text) + 1)
    end, kind, words = min(len(text), start + rng.randrange(1, 6)), rng.random(), re.findall(r"\w+", text)
    if kind < 0.3:
        return text[:start] + text[end:]
    if kind < 0.6:
        return text[:start] + str(rng.choice(HOSTILE))[:60] + text[start:]
    if kind < 0.8 or len(words) < 2:
        return text[:start] + rng.choice("{}[](),;:%@!*&|<>#\"'\\\n\t 019xk=+-/") + text[end:]
    return text.replace(*rng.sample(words, 2), 1)


def _paths(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    parts = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in parts:
        yield from _paths(value, (*path, key))


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data
