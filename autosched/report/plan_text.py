"""A plan's name for people: a line for each stage where it is long, and what the names of its loops say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

WIDTH = 100
"""Characters of a plan's name that stand on one line."""
LOOPS = re.compile(r"loops over [^()]+ \(")
MADE = re.compile(r"(.+)_(tile|block|rest)(?:_?(\d+))?")
AGAIN = re.compile(r"(.+)_(\d+)")


def plan_lines(name: str, width: int = WIDTH) -> list[str]:
    """The name in lines: its parts, what is inside of loops further in, and at the end the rewrites that it needs.

    >>> name = "loops over b, i_tile (S: mul(i←j); loops over j_block (M: fma(k←p))); O: fma(i←e) [x]"
    >>> print("\\n".join(plan_lines(name, 9)))
    loops over b, i_tile:
      S: mul(i←j)
      loops over j_block:
        M: fma(k←p)
    O: fma(i←e)
    [x]
    """
    if len(name) <= width:
        return [name]
    parts, rewrites = _apart(name)
    return [*_parts(parts), *([rewrites] if rewrites else [])]


def brief_plan(name: str, width: int = WIDTH) -> str:
    """The name on one line: of a long one the beginning, and the rewrites as far as they fit.

    >>> brief_plan("loops over b, i_tile (S: mul(i←j); loops over j_block (M: fma(k←p))) [online 64x128]", 50)
    'loops over b, i_tile (S: mul(i←j)… [online 64x128]'
    """
    if len(name) <= width:
        return name
    parts, rewrites = _apart(name)
    end = f" {rewrites}" if rewrites and len(rewrites) < width // 2 else ""
    return f"{parts[: width - len(end) - 1].rstrip()}…{end}"


def loop_words(names: Iterable[str]) -> list[str]:
    """What the names of a plan's loops say, where they are none of the program's own.

    >>> loop_words(["b", "i_tile", "j_block", "j_block_2"])
    ['i_tile: tiles of i', 'j_block: blocks of j', 'j_block_2: further blocks of j']
    >>> loop_words(["b", "j_rest", "b_2"])
    ['j_rest: what blocks of j leave over', 'b_2: the loop over b again, for what the loops above leave over']
    """
    said = []
    for name in dict.fromkeys(names):
        if made := MADE.fullmatch(name):
            of, kind, number = made.groups()
            cut = f"{'further ' if number else ''}{kind}s of {of}"
            said.append(f"{name}: " + (f"what blocks of {of} leave over" if kind == "rest" else cut))
        elif again := AGAIN.fullmatch(name):
            said.append(f"{name}: the loop over {again[1]} again, for what the loops above leave over")
    return said


def _apart(name: str) -> tuple[str, str]:
    """The parts, and the rewrites in brackets behind them."""
    if not name.endswith("]"):
        return name, ""
    depth = 0
    for at in range(len(name) - 1, 0, -1):
        depth += {"]": 1, "[": -1}.get(name[at], 0)
        if depth == 0:
            return (name[: at - 1], name[at:]) if name[at - 1] == " " else (name, "")
    return name, ""


def _parts(text: str) -> Iterator[str]:
    for part in _split(text):
        head = LOOPS.match(part)
        close = _closing(part, head.end() - 1) if head else None
        if head is None or close is None:
            yield part
        else:
            yield f"{part[: head.end() - 2]}{part[close + 1 :]}:"
            yield from (f"  {line}" for line in _parts(part[head.end() : close]))


def _split(text: str) -> Iterator[str]:
    """The parts between semicolons that are in no parentheses."""
    depth = start = 0
    for at, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == ";" and depth == 0:
            yield text[start:at]
            start = at + 2
    yield text[start:]


def _closing(text: str, opening: int) -> int | None:
    depth = 0
    for at in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return None
