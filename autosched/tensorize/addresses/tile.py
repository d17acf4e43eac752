"""Proof 1, inside a tile: an operand's coordinates determine the program element it holds.

Where an operand is indexed by plain axes (`a[i, k]`) this follows from the pattern of its axes: every program axis
that moves the element lies on an intrinsic axis that is a coordinate. Where an index is compound (`a[i + k]`, a
convolution's window) all points of a tile are tried where they are few, else z3 decides, on two symbolic points. So it
is with a guard that is to be staged there: two points that share a coordinate share what it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any

from autosched.ir.value import Condition as Guard
from autosched.ir.value import FromIndex, Read, Select, walk
from autosched.logic import Bool, Const, Int, Var, to_z3
from autosched.logic.solver import z3
from autosched.tensorize.addresses.axes import Assignment, Tile, index_axes
from autosched.tensorize.addresses.points import Answer, Points, condition_axes
from autosched.tensorize.addresses.proved_before import answer_before, remember
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.addresses.window import element_tried, guard_tried
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Obligation
from autosched.tensorize.reduction.update import Update, operand_reads


def unsupported(intrinsic: Intrinsic, update: Update) -> str | None:
    """What of an intrinsic's semantics the matcher does not handle, in words."""
    if intrinsic.program.scalars:
        return "takes a run-time scalar"
    if update.guards:
        return "has a guard"
    if update.init is not None:
        return "starts from an initial value of its own"
    if any(
        isinstance(v, FromIndex) or (isinstance(v, Select) and isinstance(v.condition, Bool)) for v in walk(update.term)
    ):
        return "computes with its axes"
    if not _plain(update.target):
        return "indexes its accumulator by more than plain axes"
    reads = operand_reads(update.term)
    if len({r.tensor for r in reads}) != len(reads):
        return "reads one operand at several places"
    if not all(isinstance(part, Int) for r in reads for part in r.index):
        return "has a data-dependent index"
    return None


def _plain(read: Read) -> bool:
    """Whether each axis that moves `read` is a coordinate of it by itself."""
    alone = {part.name for part in read.index if isinstance(part, Var)}
    return index_axes(read.index) <= alone and all(isinstance(p, Var | Const) for p in read.index)


def element_of_coordinates(facts: StageFacts, operand: Read, read: Read, assignment: Assignment, tile: Tile) -> Answer:
    """Whether two points of a tile with the same coordinates of `operand` always mean the same element `read`."""
    held = show_leaf(read)
    if is_plain_operand(operand):
        text = f"every axis that moves {held} is a coordinate of {operand.tensor}, or outside"
        return Answer(True, Obligation("axes", text, "structure"))
    text = f"the coordinates of {show_leaf(operand)} in a tile determine {held}"
    asked = read, *_loose(operand, assignment, tile)
    if asked not in facts.windows:
        facts.windows[asked] = _element_of(facts, operand, read, assignment, tile, text)
    answer = facts.windows[asked]
    lengths = _lengths(facts, assignment)
    if not answer.holds or all(exact and n % tile.extents[x] == 0 for x, (n, exact) in lengths.items()):
        return answer
    # A lane past the end holds a zero; its coordinates must not be those of a lane inside.
    key = operand, tuple(lengths.items()), tuple(tile.extents.items()), tile.spatial
    text += ", padding included"
    if key not in facts.windows:
        facts.windows[key] = facts.ask_once(key, "axes", text, lambda: _inside_and_outside(operand, lengths, tile))
    known_ends = facts.windows[key]
    return replace(known_ends, obligation=replace(known_ends.obligation, statement=text))


def guard_of_coordinates(
    facts: StageFacts, operand: Read, guard: Guard, assignment: Assignment, tile: Tile
) -> Answer | None:
    """Whether a guard holds at both or at none of two points of a tile with the same coordinates of `operand`: where it
    does not, no fill in the operand can say that one of them is left out. None: by structure, as every axis that moves
    the operand's element is a coordinate."""
    if is_plain_operand(operand):
        return None
    loose = _loose(operand, assignment, tile)
    if not condition_axes(guard) & {y for _, fused, _ in loose[1:] for y in fused}:
        return None
    asked = guard, *loose
    if asked not in facts.windows:
        facts.windows[asked] = _guard_of(facts, operand, guard, assignment, tile)
    return facts.windows[asked]


def _loose(operand: Read, assignment: Assignment, tile: Tile) -> tuple[Any, ...]:
    """All that a question about two points with the same coordinates of `operand` depends on: the operand and, of each
    axis that is no coordinate by itself, the program's axes on it and the extent. Along the others both points agree,
    and so they do outside the tile."""
    alone = {p.name for p in operand.index if isinstance(p, Var)}
    return operand, *((x, fused, tile.extents[x]) for x, fused in assignment.axes.items() if x not in alone)


def _element_of(
    facts: StageFacts, operand: Read, read: Read, assignment: Assignment, tile: Tile, text: str
) -> Answer:
    loose = _loose(operand, assignment, tile)
    sizes = tuple((y, facts.extents[y], facts.ranges[y][0]) for _, fused, _ in loose[1:] for y in fused)
    plain = facts.exact == set(facts.extents) and not facts.program.symbolic  # else other axes count, too
    question = "element", loose, read.index, sizes
    known = answer_before(question) if plain else None
    if known is None:
        known = element_tried(facts, operand, read, assignment, tile)
        if plain and known is not None:
            remember(question, known)
    if known is not None:
        return Answer(known, Obligation("axes", text, "exhaustion"))
    first, second, claim = _two_points(facts, operand, assignment, tile)
    claim += first.domain + second.domain
    claim.append(z3.Or(*(first.index(i) != second.index(i) for i in read.index)))
    return facts.ask("axes", text, claim)


def _guard_of(facts: StageFacts, operand: Read, guard: Guard, assignment: Assignment, tile: Tile) -> Answer:
    text = f"the coordinates of {show_leaf(operand)} in a tile determine whether {show_leaf(guard)}"
    known = guard_tried(facts, operand, guard, assignment, tile) if isinstance(guard, Bool) else None
    if known is not None:
        return Answer(known, Obligation("axes", text, "exhaustion"))
    first, second, claim = _two_points(facts, operand, assignment, tile)
    for points in (first, second):
        claim += points.sizes
        # Bounds that depend on other axes are guards themselves: the tile reaches as far as the hull of the loop.
        claim += [z3.And(low <= points.env[y], points.env[y] <= high) for y, (low, high) in _hull(facts).items()]
    claim.append(first.condition(guard) != second.condition(guard))
    return facts.ask("axes", text, claim)


def _hull(facts: StageFacts) -> dict[str, tuple[int, int]]:
    return {a.name: facts.ranges[a.name] for a in facts.stage.axes}


@lru_cache(maxsize=4096)
def is_plain_operand(operand: Read) -> bool:
    """Whether every axis that moves an operand is a coordinate of it by itself."""
    return {p.name for p in operand.index if isinstance(p, Var)} >= index_axes(operand.index)


def _two_points(
    facts: StageFacts, operand: Read, assignment: Assignment, tile: Tile
) -> tuple[Points, Points, list[Any]]:
    """Two points of one tile, and what it says of them that they have the same coordinates of `operand`."""
    extents = tile.extents
    functions: dict[str, Any] = {}
    tiles: list[dict[str, Any]] = []
    points: list[Points] = []
    claim: list[Any] = []
    for tag in ("", "'"):
        found = Points(facts.program, facts.stage.axes, tag, functions)
        lanes = _single(operand, extents) | {x: z3.Int(f"lane:{x}{tag}") for x in extents}
        for x, fused in assignment.axes.items():
            # The fused number of a point is its tile's number times the tile's extent, plus its lane. The tile's number
            # is the same for both points.
            number: Any = z3.IntVal(0)
            for y in fused:
                number = number * facts.extents[y] + (found.env[y] - facts.ranges[y][0])
            claim += [lanes[x] >= 0, lanes[x] < extents[x]]
            claim.append(number == z3.Int(f"tile:{x}") * extents[x] + lanes[x] if fused else lanes[x] == 0)
        tiles.append(lanes)
        points.append(found)
    first, second = points
    claim += [first.env[y] == second.env[y] for y in assignment.outer]
    claim += [to_z3(p, tiles[0]) == to_z3(p, tiles[1]) for p in operand.index if isinstance(p, Int)]
    return first, second, claim


def _single(operand: Read, extents: Mapping[str, int]) -> dict[str, Any]:
    """Loops of one iteration that an operand's subscripts name: they are no axes."""
    return {x: z3.IntVal(0) for x in index_axes(operand.index) - set(extents)}


def _lengths(facts: StageFacts, assignment: Assignment) -> dict[str, tuple[int, bool]]:
    """How many points there are along each axis at most, and whether always so many."""
    return {
        x: (prod(facts.extents[y] for y in fused), set(fused) <= facts.exact) for x, fused in assignment.axes.items()
    }


def _inside_and_outside(operand: Read, lengths: dict[str, tuple[int, bool]], tile: Tile) -> list[Any]:
    """A lane whose element counts, and one past the end of a reduction, with the same coordinates. What lies past the
    end of a spatial axis may hold anything: its result is not stored."""
    extents = tile.extents
    claim: list[Any] = []
    within: list[dict[str, Any]] = []
    lanes: list[dict[str, Any]] = []
    for tag in ("", "'"):
        here = _single(operand, extents) | {x: z3.Int(f"lane:{x}{tag}") for x in extents}
        inside = {}
        for x, (size, exact) in lengths.items():
            number = z3.Int(f"tile:{x}")
            claim += [here[x] >= 0, here[x] < extents[x], number >= 0]
            # A symbolic size may end anywhere below its greatest value: one end, the same for both points.
            end = z3.IntVal(size) if exact else z3.Int(f"end:{x}")
            claim.append(end <= size)
            inside[x] = number * extents[x] + here[x] < end
        lanes.append(here)
        within.append(inside)
    claim += [to_z3(p, lanes[0]) == to_z3(p, lanes[1]) for p in operand.index if isinstance(p, Int)]
    first, second = within
    # Past the end of an axis that does not move the operand, its lane holds an element: others are zero there.
    reduced = [x for x in lengths if x not in tile.spatial and x in index_axes(operand.index)]
    claim += [*first.values(), *(second[x] for x in tile.spatial)]
    return [*claim, z3.Or(*(z3.Not(second[x]) for x in reduced))]
