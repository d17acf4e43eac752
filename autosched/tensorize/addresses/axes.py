"""Proof 1, the axes: which program axes may sit on which intrinsic axis, and every way to put them there.

A program axis may sit on an intrinsic axis of its kind (spatial or reduction) when each operand that it moves is moved
by the intrinsic axis too. An operand that the intrinsic axis would move and the program axis does not is replicated.

How mappings are counted: two are the same when they put the same *sets* of program axes on the intrinsic axes under
the same operand roles, or when a symmetry of the intrinsic (its axes and operands renamed so that its semantics is
unchanged, as `c[i, j] += a[i, k] * b[k, j]` under i ↔ j, a ↔ b) takes one to the other: such a pair is one computation
with its tile transposed, which is re-indexing. So conv2d has 49 mappings on a square matrix multiply, not 98; on one of
unequal sides (m16n8) both roles count. On an intrinsic whose operands differ (the VNNI form
`out[i] += data[k] * kern[i, k]`) the count is the union over the roles that the proof admits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import permutations, product
from math import prod
from typing import TypeAlias

from autosched.ir.value import Index, Read, Value, map_value
from autosched.ir.variables import index_vars, value_vars
from autosched.logic import Int, Var, affine, free_vars
from autosched.logic.walk import substitute_int
from autosched.tensorize.body.equal import canonical
from autosched.tensorize.reduction.update import Update, operand_reads

ASSIGNMENT_LIMIT = 1 << 14
"""Assignments looked at for one role; past it the search stops and says so."""


@lru_cache(maxsize=4096)
def index_axes(index: tuple[Index, ...]) -> frozenset[str]:
    """The variables that an address depends on (those under a data-dependent subscript included)."""
    return index_vars(index, _moving)


@lru_cache(maxsize=4096)
def value_axes(value: Value) -> frozenset[str]:
    """The variables that a value depends on: through addresses, conditions, and as numbers."""
    return value_vars(value, _moving)


def _moving(part: Int) -> frozenset[str]:
    """The variables of a subscript whose factors are not zero."""
    form = affine(part)
    return free_vars(part) if form is None else frozenset(form.coefficients)


@dataclass(frozen=True)
class Tile:
    """An intrinsic as the axis search sees it: extents, kinds, and which operands each axis moves."""

    extents: dict[str, int]
    spatial: frozenset[str]
    moves: dict[str, frozenset[str]]
    operands: tuple[str, ...]
    symmetries: tuple[tuple[dict[str, str], dict[str, str]], ...]

    @cached_property
    def moving(self) -> dict[str, tuple[str, ...]]:
        """The axes that move each operand."""
        return {o: tuple(x for x in self.extents if o in self.moves[x]) for o in self.operands}


@lru_cache(maxsize=2048)
def tile_of(update: Update) -> Tile:
    """The tile of an intrinsic in normal form."""
    extents = {a.name: a.extent for a in update.axes if a.extent > 1}
    spatial = index_axes(update.target.index) & set(extents)
    reads = operand_reads(update.term)
    moves = {x: frozenset(r.tensor for r in reads if x in index_axes(r.index)) for x in extents}
    operands = tuple(dict.fromkeys(r.tensor for r in reads))
    return Tile(extents, spatial, moves, operands, tuple(_symmetries(update, extents, spatial)))


def _symmetries(
    update: Update, extents: Mapping[str, int], spatial: frozenset[str]
) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Renamings (axes, operands), the identity left out, under which the semantics stays the same up to the order of
    operands' dimensions."""
    reads = {r.tensor: r for r in operand_reads(update.term)}
    if len(reads) != len(operand_reads(update.term)) or len(reads) > 4 or len(extents) > 5:
        return
    names, axes = list(reads), list(extents)
    body = canonical(_renamed(update.term, {}))
    for images in permutations(names):
        operands = dict(zip(names, images, strict=True))
        if any(reads[a].dtype != reads[b].dtype for a, b in operands.items()):
            continue
        if canonical(_renamed(body, operands)) != body:
            continue
        for turned in permutations(axes):
            turn = dict(zip(axes, turned, strict=True))
            if any(extents[a] != extents[b] or (a in spatial) != (b in spatial) for a, b in turn.items()):
                continue
            same = _shape(update.target.index, turn) == _shape(update.target.index, {})
            same = same and all(_shape(reads[a].index, turn) == _shape(reads[b].index, {}) for a, b in operands.items())
            if same and (any(a != b for a, b in turn.items()) or any(a != b for a, b in operands.items())):
                yield turn, operands


def _renamed(value: Value, operands: Mapping[str, str]) -> Value:
    """The value with some tensors renamed, and all subscripts left out."""
    return map_value(value, lambda v: Read(operands.get(v.tensor, v.tensor), (), v.dtype) if isinstance(v, Read) else v)


def _shape(index: tuple[Index, ...], turn: Mapping[str, str]) -> list[str]:
    values = {a: Var(b) for a, b in turn.items()}
    return sorted(str(substitute_int(i, values)) if isinstance(i, Int) else repr(i) for i in index)


@dataclass(frozen=True)
class Assignment:
    """Intrinsic axis to the program axes on it, outermost first; and the program axes left outside."""

    axes: dict[str, tuple[str, ...]]
    outer: tuple[str, ...]

    @cached_property
    def inner(self) -> frozenset[str]:
        return frozenset(a for fused in self.axes.values() for a in fused)

    @cached_property
    def sets(self) -> frozenset[tuple[str, frozenset[str]]]:
        """The sets of program axes on the intrinsic axes, by which mappings are told apart."""
        return frozenset([(x, frozenset(on)) for x, on in self.axes.items()])

    def turned(self, turn: Mapping[str, str]) -> Assignment:
        """What is on each axis put on the one that `turn` names for it."""
        key = tuple(turn.items())
        if key not in self._turned:
            on = {turn[x]: fused for x, fused in self.axes.items()}
            self._turned[key] = Assignment({x: on[x] for x in self.axes}, self.outer)
        return self._turned[key]

    @cached_property
    def _turned(self) -> dict[tuple[tuple[str, str], ...], Assignment]:
        return {}


@dataclass(frozen=True)
class Assignments:
    """`found` in order of how much is fused, innermost axes first; `stuck` names intrinsic axes that no program axis of
    extent above one can fill; `complete` is False where the limit was met."""

    found: tuple[Assignment, ...]
    stuck: tuple[str, ...] = ()
    complete: bool = True


def assignments(
    tile: Tile,
    roles: Mapping[str, Read],
    extents: Mapping[str, int],
    spatial: frozenset[str],
    limit: int = ASSIGNMENT_LIMIT,
) -> Assignments:
    """All ways to put program axes (`extents`, outermost first) on the tile's axes under one assignment of `roles`.

    As many tile axes as possible are filled; one stays empty only for want of a program axis with its pattern.
    """
    moved = {y: frozenset(o for o, read in roles.items() if y in index_axes(read.index)) for y in extents}
    options = tuple(
        tuple(x for x in tile.extents if (x in tile.spatial) == (y in spatial) and moved[y] <= tile.moves[x])
        for y in extents
    )
    return _assignments(tuple(tile.extents), tuple(extents.items()), options, limit)


@lru_cache(maxsize=256)
def _assignments(
    tile: tuple[str, ...], sized: tuple[tuple[str, int], ...], fitting: tuple[tuple[str, ...], ...], limit: int
) -> Assignments:
    """As `assignments`, of the names of the tile's axes, and of the program's axes with their extents and the tile's
    axes on which each fits: many instructions and programs ask for the same."""
    extents, options = dict(sized), {y: on for (y, _), on in zip(sized, fitting, strict=True)}
    stuck = tuple(x for x in tile if not any(x in options[y] and extents[y] > 1 for y in extents))
    if not tile:
        return Assignments((Assignment({}, tuple(extents)),))
    position = {y: n for n, y in enumerate(extents)}
    movable = [y for y in extents if options[y]]
    complete = prod(len(options[y]) + 1 for y in movable) <= limit
    while prod(len(options[y]) + 1 for y in movable) > limit:
        movable.pop(0)  # outermost axes stay outside first
    found: list[Assignment] = []
    most = 1
    for choice in product(*([None, *options[y]] for y in movable)):
        axes: dict[str, tuple[str, ...]] = dict.fromkeys(tile, ())
        for y, x in zip(movable, choice, strict=True):
            if x is not None:
                axes[x] = (*axes[x], y)
        filled = sum(1 for fused in axes.values() if fused)
        if filled < most or not any(extents[y] > 1 for fused in axes.values() for y in fused):
            continue
        if filled > most:
            most, found = filled, []
        inner = {y for fused in axes.values() for y in fused}
        found.append(Assignment(axes, tuple(y for y in extents if y not in inner)))

    def order(a: Assignment) -> tuple[object, ...]:
        sizes = [(len(fused), [-position[y] for y in reversed(fused)]) for fused in a.axes.values()]
        return sum(n for n, _ in sizes), sizes

    return Assignments(tuple(sorted(found, key=order)), stuck, complete)


Candidate: TypeAlias = tuple[Assignment, dict[str, Read]]


def replicated(
    tile: Tile, assignment: Assignment, moved: Mapping[str, frozenset[str]]
) -> dict[str, tuple[str, ...]]:
    """Operand to the filled tile axes that it could move with, and does not here; `moved`: the program axes that move
    each operand."""
    found, placed = {}, assignment.axes
    for o, own in moved.items():
        axes = tuple([x for x in tile.moving[o] if placed[x] and own.isdisjoint(placed[x])])
        if axes:
            found[o] = axes
    return found


def without_symmetric(
    tile: Tile, found: Iterable[Candidate], cost: Callable[[Assignment, dict[str, Read]], int]
) -> Iterator[Candidate]:
    """One of each class of candidates, all of which differ, that the tile's symmetries take into each other: the
    cheapest, in order of the first."""
    if not tile.symmetries:
        yield from found
        return
    seen: set[object] = set()
    for candidate in found:
        key = _key(candidate)
        if key in seen:
            continue
        same = images(tile, candidate)
        seen |= {key, *(_key(image) for image in same[1:])}
        yield min(same, key=lambda image: cost(*image)) if len(same) > 1 else candidate


def images(tile: Tile, candidate: Candidate) -> list[Candidate]:
    """The candidate, and those that the tile's symmetries take it into."""
    return [candidate, *(_image(candidate, turn, operands) for turn, operands in tile.symmetries)]


def _key(candidate: Candidate) -> object:
    assignment, roles = candidate
    return assignment.sets, frozenset(roles.items())


def _image(candidate: Candidate, turn: Mapping[str, str], operands: Mapping[str, str]) -> Candidate:
    assignment, roles = candidate
    swapped = {operands[o]: read for o, read in roles.items()}
    return assignment.turned(turn), {o: swapped[o] for o in roles}
