"""A plan's name for people: a line for each stage where it is long, and what the names of its loops say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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


@dataclass(frozen=True)
class LoopBounds:
    """A loop of a plan, and the loops on which its first and its last iteration depend."""

    name: str
    begins: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()


def loop_words(loops: Iterable[LoopBounds]) -> list[str]:
    """What the names of a plan's loops say, where they are none of the program's own.

    >>> tiles, on_tile = LoopBounds("i_tile"), ("i_tile",)
    >>> loop_words([LoopBounds("b"), tiles, LoopBounds("j_block"), LoopBounds("b_2"), LoopBounds("j_rest")])[:2]
    ['i_tile: tiles of i', 'j_block: blocks of j']
    >>> loop_words([LoopBounds("b_2"), LoopBounds("j_rest")])
    ['b_2: another loop over b', 'j_rest: what blocks of j leave over']
    >>> loop_words([LoopBounds("j_block", on_tile, on_tile)])  # a window
    ['j_block: blocks of j, from the first to the last that i_tile needs']
    >>> loop_words([LoopBounds("j_block", (), on_tile), LoopBounds("j_block_2", on_tile, on_tile)])
    ['j_block: blocks of j that i_tile needs whole', 'j_block_2: further blocks of j, to the last that i_tile needs']
    >>> window = [LoopBounds(f"j_block{n}", on_tile, on_tile) for n in ("", "_2", "_3")]
    >>> loop_words(window)[:2]
    ['j_block: blocks of j, from the first that i_tile needs', 'j_block_2: further blocks of j that i_tile needs whole']
    """
    known = {loop.name: loop for loop in loops}
    said = []
    for name, loop in known.items():
        if made := MADE.fullmatch(name):
            of, kind, number = made.groups()
            if kind == "rest":
                said.append(f"{name}: what blocks of {of} leave over")
            else:
                behind = list(known)[list(known).index(name) + 1 :]
                alike = (m for n in behind if known[n].begins and (m := MADE.fullmatch(n)))
                goes_on = any(m.groups()[:2] == (of, kind) for m in alike)
                said.append(f"{name}: {'further ' if number else ''}{kind}s of {of}{_reach(loop, goes_on)}")
        elif again := AGAIN.fullmatch(name):
            said.append(f"{name}: another loop over {again[1]}")
    return said


def _reach(loop: LoopBounds, goes_on: bool) -> str:
    """Which of its blocks a loop goes through, where that depends on loops around; `goes_on`: another has the rest."""
    if not loop.ends:
        return ""
    of = " and ".join(loop.ends)
    further = AGAIN.fullmatch(loop.name) is not None
    if goes_on and loop.begins and not further:
        return f", from the first that {of} needs"
    if goes_on:
        return f" that {of} needs whole"
    return f", {'from the first ' if loop.begins and not further else ''}to the last that {of} needs"


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
