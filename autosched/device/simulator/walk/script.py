"""Facts as a tree again: loops around straight runs of code, in the order of the text, for models that play events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from autosched.device.simulator.walk.facts import Facts, Fetch, Issue, Level, Stop, Touch, Work


@dataclass(eq=False)
class Straight:
    """What the same loops (unrolled ones aside) are around, without another loop in between. `touches` are places in
    `Facts.touches`."""

    path: tuple[Level, ...]
    touches: list[int] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    fetches: list[Fetch] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)
    fills: bool = False
    """Whether it writes to shared memory."""


@dataclass(eq=False)
class ScriptLoop:
    level: Level
    body: list[Node] = field(default_factory=list)


Node: TypeAlias = ScriptLoop | Straight


def script(found: Facts) -> list[Node]:
    """The loops and straight runs of one top-level statement, outermost first."""
    root: list[Node] = []
    items: list[tuple[int, int, Touch | Issue | Work | Fetch | Stop]] = []
    items += [(t.order, n, t) for n, t in enumerate(found.touches)]
    items += [(i.order, -1, i) for i in found.issues]
    items += [(w.order, -1, w) for w in found.works]
    items += [(f.order, -1, f) for f in found.fetches]
    items += [(s.order, -1, s) for s in found.stops]
    items.sort(key=lambda item: item[:2])
    for _, place, item in items:
        path = tuple(level for level in item.path if level.kind != "unrolled")
        straight = _at(root, path)
        match item:
            case Touch():
                straight.touches.append(place)
                straight.fills |= item.write and item.scope == "shared"
            case Issue():
                straight.issues.append(item)
            case Work():
                straight.works.append(item)
            case Fetch():
                straight.fetches.append(item)
            case Stop():
                straight.stops.append(item)
    return root


def _at(body: list[Node], path: tuple[Level, ...]) -> Straight:
    """The straight run that comes last inside these loops, a new one where another loop stands between."""
    for level in path:
        last = body[-1] if body else None
        if not (isinstance(last, ScriptLoop) and last.level.number == level.number):
            last = ScriptLoop(level)
            body.append(last)
        body = last.body
    if not (body and isinstance(body[-1], Straight)):
        body.append(Straight(path))
    straight = body[-1]
    assert isinstance(straight, Straight)
    return straight
