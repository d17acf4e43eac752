"""Straight code cut where another queue takes over: copies into scratchpads, loads of states, what the array computes,
and all else (what accumulators start from, what goes to memory)."""

from __future__ import annotations

from itertools import groupby

from autosched.device.simulator.walk.facts import Facts
from autosched.device.simulator.walk.script import Node, ScriptLoop, Straight


def apart(nodes: list[Node], found: Facts) -> list[Node]:
    """The nodes with each straight run cut into pieces of one kind, in the order of the text."""
    made: list[Node] = []
    for node in nodes:
        if isinstance(node, ScriptLoop):
            made.append(ScriptLoop(node.level, apart(node.body, found)))
        else:
            made += _pieces(node, found)
    return made


def _pieces(run: Straight, found: Facts) -> list[Straight]:
    of = {n: found.touches[n].order for n in run.touches}
    orders = sorted({*of.values(), *(i.order for i in run.issues), *(w.order for w in run.works)})
    pieces: list[Straight] = []
    for _, group in groupby(orders, lambda order: _kind(order, run, found)):
        kept = set(group)
        touches = [n for n in run.touches if of[n] in kept]
        fills = any(found.touches[n].write and found.touches[n].scope == "shared" for n in touches)
        issues = [i for i in run.issues if i.order in kept]
        works = [w for w in run.works if w.order in kept]
        pieces.append(Straight(run.path, touches, issues, works, fills=fills))
    return pieces


def _kind(order: int, run: Straight, found: Facts) -> str:
    """What a statement of a straight run does."""
    touches = [t for t in (found.touches[n] for n in run.touches) if t.order == order]
    if any(t.write and t.scope == "shared" for t in touches):
        return "copy"
    if any(t.write and t.scope == "state" for t in touches):
        return "load"
    computes = any(i.order == order for i in run.issues) or any(t.scope in ("shared", "state") for t in touches)
    return "compute" if computes else "other"
