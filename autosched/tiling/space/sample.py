"""Drawing legal rows: uniform samples, neighbours, and moves for evolutionary search, all vectorised."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np

from autosched.logic import evaluate
from autosched.tiling.space.base import Ids, SpaceBase, once_per_space
from autosched.tiling.space.counting import HUGE, distinct_ranks, row_count
from autosched.tiling.space.enumerate import ROOT, Joiner, Prefixes
from autosched.tiling.space.subspace import subspaces
from autosched.tiling.space.values import moved_digits

_MOST_PREFIXES = 1 << 21  # 16 MiB of ids; spaces of 10^7 rows with a usual share of legal ones are held whole
_MOST_DRAWS = 1 << 25  # about 10 s of legality checks: then what was found is returned
_DRAWS = 1 << 16
_TRIES = 16
_MOST_HELD = 1 << 22  # prefixes of a stage held before it is thinned out: some 0.2 GiB with their columns
_THIN = 8  # prefixes kept of each stage, for each row wanted, where a sample need not be uniform


def thinned(
    space: SpaceBase, n: int, rng: np.random.Generator, huge: int = HUGE, held: int = _MOST_HELD
) -> Ids:
    """See `Space.thinned`. Spaces of more than `huge` rows are thinned in each of their subspaces; no more than `held`
    prefixes of a stage, and a block of them, are in memory at a time."""
    if space.size > huge and len(subspaces(space)) > 1:
        return _thinned_apart(space, n, rng)
    most = _THIN * n
    while most <= _MOST_PREFIXES:
        joiner, current, whole = Joiner(space), ROOT, True
        for stage in joiner.stages:
            if not stage.parts and len(current.ids) * prod(space.radices[d] for d in stage.decisions) > held:
                current, whole = joiner.paired(stage, current, most, rng), False  # all pairs are legal
                continue
            current, every = joined_up_to(held, joiner.joined(stage, [current]), current[:0], rng)
            whole = whole and every
            if len(current.ids) > most:
                whole = False
                current = current[np.sort(rng.choice(len(current.ids), most, replace=False))]
        if whole or len(current.ids) >= n:
            chosen = rng.choice(len(current.ids), min(n, len(current.ids)), replace=False)
            return np.asarray(current.ids[chosen], np.int64)
        most *= 8
    return sample(space, n, rng)


def joined_up_to(
    most: int, found: Iterable[Prefixes], none: Prefixes, rng: np.random.Generator
) -> tuple[Prefixes, bool]:
    """All prefixes in one, and whether they are all: of more than `most` each stays with a chance that all have, halved
    as often as there are too many. `none`: what no prefix at all is."""
    held, count, chance = list[Prefixes](), 0, 1.0
    for prefixes in found:
        if chance < 1.0:
            prefixes = prefixes[np.flatnonzero(rng.random(len(prefixes.ids)) < chance)]
        held.append(prefixes)
        count += len(prefixes.ids)
        while count > most:
            held = [p[np.flatnonzero(rng.random(len(p.ids)) < 0.5)] for p in held]
            count, chance = sum(len(p.ids) for p in held), chance / 2
    return Prefixes.join(held) if held else none, chance == 1.0


def _thinned_apart(space: SpaceBase, n: int, rng: np.random.Generator) -> Ids:
    """`thinned` of each subspace, combined at random, or all with all where that is no more than `n` rows."""
    parts = [
        moved_digits(thinned(sub.space, n, rng), sub.space, range(len(sub.positions)), space, sub.positions)
        for sub in subspaces(space)
    ]
    inside = {p for sub in subspaces(space) for p in sub.positions}
    free = [d for d in range(len(space.decisions)) if d not in inside]
    parts += [np.arange(space.radices[d], dtype=np.int64) * space.strides[d] for d in free]
    if prod(len(part) for part in parts) <= n:
        return reduce(lambda ids, part: np.add.outer(ids, part).reshape(-1), parts)
    found = np.zeros(0, np.int64)
    while len(found) < n:
        ids = np.sum([part[rng.integers(0, len(part), 2 * n)] for part in parts], axis=0)
        found = np.unique(np.concatenate([found, ids]))
    return np.asarray(rng.choice(found, n, replace=False), np.int64)


@dataclass(frozen=True)
class SampleFrame:
    """`prefixes`: ids of all partial rows that survive the first stages; `free`: positions of the decisions that are
    still open; `exact` when every completion of every prefix is legal. Each legal row is one prefix and one completion,
    so a uniform (prefix, completion) pair, kept if legal, is a uniform legal row."""

    prefixes: Ids
    free: tuple[int, ...]
    exact: bool


def frame(space: SpaceBase, most: int = _MOST_PREFIXES) -> SampleFrame:
    """Joins stages as long as at most `most` prefixes survive, few enough to hold."""
    joiner = Joiner(space)
    current = [ROOT]
    open_stages = list(joiner.stages)
    while open_stages and open_stages[0].parts:
        found, count = [], 0
        for prefixes in joiner.joined(open_stages[0], current):
            found.append(prefixes)
            count += len(prefixes.ids)
            if count > most:
                break
        if count > most:
            break
        current = found
        open_stages.pop(0)
    ids = np.concatenate([p.ids for p in current]) if current else np.zeros(0, np.int64)
    free = tuple(d for s in open_stages for d in s.decisions)
    return SampleFrame(np.sort(ids), free, all(not s.parts for s in open_stages))


@once_per_space
def _frame_of(space: SpaceBase) -> SampleFrame:
    return frame(space)


def sample(space: SpaceBase, n: int, rng: np.random.Generator) -> Ids:
    """See `Space.sample`. Where rows cannot be counted and are too many to hold and too sparse to hit, fewer than `n`
    come back after 2^25 draws."""
    counted = row_count(space)
    if counted is not None:
        return counted.rows(distinct_ranks(counted.legal, n, rng))
    return drawn_from(_frame_of(space), space, n, rng)


def drawn_from(whole: SampleFrame, space: SpaceBase, n: int, rng: np.random.Generator, draws: int = _DRAWS) -> Ids:
    """`n` rows of the frame, `draws` of them tried at a time where completions may be illegal."""
    universe = len(whole.prefixes) * prod(space.radices[d] for d in whole.free)
    if whole.exact:
        numbers = rng.choice(universe, min(n, universe), replace=False) if universe else np.zeros(0, np.int64)
        return _decoded(space, whole, numbers)
    found = np.zeros(0, np.int64)
    drawn = 0
    while len(found) < n and drawn < _MOST_DRAWS:
        ids = _decoded(space, whole, rng.integers(0, universe, draws))
        drawn += draws
        both = np.concatenate([found, ids[space.legal(ids)]])
        found = both[np.sort(np.unique(both, return_index=True)[1])]  # first occurrences, in the order drawn
    return found[:n]


def _decoded(space: SpaceBase, whole: SampleFrame, numbers: Ids) -> Ids:
    """The rows of numbers in the product of prefixes and completions."""
    rest = numbers.astype(np.int64)
    offset = np.zeros(len(rest), np.int64)
    for d in reversed(whole.free):
        rest, index = np.divmod(rest, space.radices[d])
        offset += index * space.strides[d]
    return np.asarray(whole.prefixes[rest] + offset, np.int64)


def neighbours(space: SpaceBase, row: int) -> Ids:
    """See `Space.neighbours`."""
    moves = [np.zeros(0, np.int64)]
    for stride, radix in zip(space.strides, space.radices, strict=True):
        index = (row // stride) % radix
        others = np.delete(np.arange(radix, dtype=np.int64), index)
        moves.append(row + (others - index) * stride)
    ids = np.sort(np.concatenate(moves))
    return ids[space.legal(ids)]


def canonical(space: SpaceBase, ids: Ids) -> Ids:
    """See `Space.canonical`. Resetting one decision may free or bind another, so this repeats until nothing changes."""
    ids = ids.copy()
    if not space.inert:
        return ids
    for _ in range(len(space.inert) + 1):
        columns = space.values(ids).columns
        changed = ids.copy()
        for name, when in space.inert:
            d = space.position[name]
            index = (ids // space.strides[d]) % space.radices[d]
            reset = np.logical_and(evaluate(when, columns), index != 0)
            # A decision may have several conditions; its offset is taken away once.
            still = (changed // space.strides[d]) % space.radices[d] != 0
            changed -= np.where(reset & still, index * space.strides[d], 0)
        if np.array_equal(changed, ids):
            break
        ids = changed
    return ids


def mutate(space: SpaceBase, ids: Ids, rng: np.random.Generator) -> Ids:
    """See `Space.mutate`."""
    result = ids.copy()
    radices, strides = np.array(space.radices, np.int64), np.array(space.strides, np.int64)
    choices = np.flatnonzero(radices > 1)
    waiting = np.arange(len(ids)) if len(choices) else np.zeros(0, np.int64)
    for _ in range(_TRIES):
        if not len(waiting):
            break
        old = ids[waiting]
        d = choices[rng.integers(0, len(choices), len(waiting))]
        index = (old // strides[d]) % radices[d]
        shift = np.asarray(rng.integers(1, radices[d]), np.int64)
        offset: Ids = ((index + shift) % radices[d] - index) * strides[d]
        new = canonical(space, old + offset)
        good = space.legal(new) & (new != old)
        result[waiting[good]] = new[good]
        waiting = waiting[~good]
    return result


def crossover(space: SpaceBase, first: Ids, second: Ids, rng: np.random.Generator) -> Ids:
    """See `Space.crossover`."""
    result = first.copy()
    waiting = np.arange(len(first))
    for _ in range(_TRIES):
        if not len(waiting):
            break
        child = np.zeros(len(waiting), np.int64)
        for stride, radix in zip(space.strides, space.radices, strict=True):
            parent = np.where(rng.random(len(waiting)) < 0.5, first[waiting], second[waiting])
            child += ((parent // stride) % radix) * stride
        child = canonical(space, child)
        good = space.legal(child)
        result[waiting[good]] = child[good]
        waiting = waiting[~good]
    return result
