"""How many legal rows there are, and the n-th of them, without listing any: prefixes that have the same rest are one.

Decisions are made one after the other. What the rules still ask of a prefix hangs on a few values of it (a partial sum
of bytes, whether something is staged: `logic.residual`), so prefixes that agree in those are one state. Counting from
the end gives each state's legal completions; walking by these counts gives the row of a rank. So a sample is uniform
and nothing is drawn in vain, however rare legal rows are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.logic import Bool, Const, Expr, Int, evaluate, free_vars
from autosched.logic.residual import Residual
from autosched.logic.walk import substitute_bool, substitute_int
from autosched.tiling.space.base import Ids, SpaceBase, once_per_space
from autosched.tiling.space.enumerate import join_stages
from autosched.tiling.space.subspace import Subspace, subspaces
from autosched.tiling.space.values import Lazy

_MIXING, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)  # an odd number without pattern, as hashes use
MOST_STEPS = 1 << 22
"""Pairs of a state and the next value above which states are too many to be worth it."""
BLOCK = 1 << 16
"""Pairs that are looked at together: their columns stay in the cache."""
HUGE = 1 << 40
"""Rows above which decisions that share no rule (two products of one program) are counted apart, so that the states of
one do not multiply with those of the other, and plans that share a product share its count."""


@dataclass(frozen=True)
class Layer:
    """The legal ways from each state before a decision to one after it, sorted by state: the decision's index, and the
    next state. The ways of state s stand at `first[s]` to `first[s + 1]`; `ways` counts, exclusive and running over
    all, the full rows that they lead to."""

    stride: int
    first: Ids
    index: Ids
    following: Ids
    ways: Ids

    def leading(self, state: Ids, place: Ids) -> Ids:
        """Of the ways of each state the last one before which no more than `place` full rows are counted. A search
        among all ways at once would look at some twenty, far from each other, where a state has a few."""
        way, end = self.first[state], len(self.ways) - 1
        step = 1 << (int(np.diff(self.first).max(initial=1)) - 1).bit_length() >> 1
        while step:
            further = np.minimum(way + step, end)
            way = np.where(self.ways[further] <= place, further, way)
            step >>= 1
        return way


@dataclass(frozen=True)
class RowCount:
    """`legal` rows; `rejected`: for each rule the rows that it removed (see `Legal`); and how to find one by its rank.
    Decisions that no rule reads come last: `free` holds stride and number of values of each."""

    legal: int
    rejected: dict[str, int]
    layers: tuple[Layer, ...]
    free: tuple[tuple[int, int], ...]

    def rows(self, ranks: npt.ArrayLike) -> Ids:
        """The ids of the legal rows of these ranks, 0 to `legal` - 1; different ranks are different rows."""
        rest = np.array(ranks, np.int64)
        ids = np.zeros(len(rest), np.int64)
        for stride, radix in self.free:
            rest, digit = np.divmod(rest, radix)
            ids += digit * stride
        state = np.zeros(len(rest), np.int64)
        for layer in self.layers:
            place = layer.ways[layer.first[state]] + rest
            way = layer.leading(state, place)
            rest = place - layer.ways[way]
            ids += layer.index[way] * layer.stride
            state = layer.following[way]
        return ids


def counted(space: SpaceBase, most: int = MOST_STEPS, huge: int = HUGE) -> RowCount | None:
    """The legal rows of a space; None where there are more than `most` ways between its states, or no decisions."""
    if not space.decisions:
        return None
    if space.size > huge and len(subspaces(space)) > 1:
        return _counted_apart(space, most)
    stages = join_stages(space)
    order = [d for stage in stages if stage.parts for d in stage.decisions]
    free = [d for d in range(len(space.decisions)) if d not in order]
    order = order or free[:1]  # a rule may be false whatever is decided
    free = [d for d in free if d not in order]
    counter = _Counter(space, prod(space.radices[d] for d in order))
    halves = []
    for d in order:
        half = counter.decide(d, most)
        if half is None:
            return None
        halves.append(half)
    completions = np.ones(counter.states, np.int64)
    layers = []
    for stride, states, state, index, following in reversed(halves):
        ways = np.concatenate([[0], np.cumsum(completions[following])])
        first = np.searchsorted(state, np.arange(states + 1))
        completions = np.diff(ways[first])
        layers.append(Layer(stride, first, index, following, ways[:-1] if len(following) else ways))
    outside = prod(space.radices[d] for d in free)
    rejected = {r.name: n * outside for r, n in zip(space.rules, counter.rejected, strict=True)}
    legal = int(completions[0]) * outside if len(completions) else 0
    return RowCount(legal, rejected, tuple(reversed(layers)), tuple((space.strides[d], space.radices[d]) for d in free))


@once_per_space
def row_count(space: SpaceBase) -> RowCount | None:
    """`counted` with its usual limits."""
    return counted(space)


def _counted_apart(space: SpaceBase, most: int) -> RowCount | None:
    """The rows of a space counted in each of its subspaces: the ways of one lead to all the rows of those after it."""
    counts: list[tuple[Subspace, RowCount]] = []
    for sub in subspaces(space):
        found = row_count(sub.space) if most == MOST_STEPS else counted(sub.space, most)
        if found is None:
            return None
        counts.append((sub, found))
    inside = {p for sub, _ in counts for p in sub.positions}
    free = tuple((space.strides[d], space.radices[d]) for d in range(len(space.decisions)) if d not in inside)
    outside = prod(radix for _, radix in free)
    rejected = {r.name: 0 for r in space.rules}
    before, after = 1, space.size // outside
    for sub, found in counts:
        after //= sub.space.size
        for rule, lost in zip(sub.rules, found.rejected.values(), strict=True):
            rejected[space.rules[rule].name] += lost * before * after * outside
        before *= found.legal
    layers: list[Layer] = []
    rows = 1
    for sub, found in reversed(counts):
        strides = {sub.space.strides[n]: space.strides[p] for n, p in enumerate(sub.positions) if space.radices[p] > 1}
        layers[:0] = [replace(a, stride=strides.get(a.stride, 0), ways=a.ways * rows) for a in found.layers]
        rows *= found.legal
    return RowCount(rows * outside, rejected, tuple(layers), free)


class _Counter:
    """The states of all prefixes so far. `columns` holds the values that tell them apart, `prefixes` how many prefixes
    each stands for."""

    def __init__(self, space: SpaceBase, rows: int) -> None:
        self._space = space
        self.rejected = [0] * len(space.rules)
        self._rows = rows  # full rows that one prefix stands for
        constants = {n: Const(v) for n, v in space.constants.items()}
        self._derived: dict[str, Int] = {n: substitute_int(e, constants) for n, e in space.derived.items()}
        self._pending: list[tuple[int, Bool]] = [(p.rule, substitute_bool(p.holds, constants)) for p in space.parts]
        self._columns: dict[str, Ids] = {}
        self._prefixes = np.ones(1, np.int64)
        self._names = (f"#{n}" for n in count())

    @property
    def states(self) -> int:
        return len(self._prefixes)

    def decide(self, position: int, most: int) -> tuple[int, int, Ids, Ids, Ids] | None:
        """Make a decision: its stride, the number of states before, and for each legal way the state, the index and
        the next state; None where there are too many ways."""
        decision, stride = self._space.decisions[position], self._space.strides[position]
        before, radix = self.states, len(decision.domain)
        if before * radix > most:
            return None
        self._rows //= radix
        known, new = {decision.name, *self._columns}, {decision.name}
        rest = Residual(known, lambda: next(self._names))
        complete: dict[str, Int] = {}
        derived: dict[str, Int] = {}
        for name, expression in self._derived.items():
            if free_vars(expression) <= known:
                complete[name] = expression
                known.add(name)
                new.add(name)
            else:
                derived[name] = rest.integer(expression) if free_vars(expression) & new else expression
        checks = self._complete_rules(known, new, rest)
        self._derived = _reachable(derived, self._pending)
        read: list[Expr] = [*self._derived.values(), *(h for _, h in self._pending)]
        asked = sorted({n for e in read for n in free_vars(e)} & (known | rest.defined.keys()))
        domain, known_now = np.array(decision.domain, np.int64)[None, :], {**complete, **rest.defined}
        states, indices, columns = [], [], []
        tall = max(1, BLOCK // radix)
        for top in range(0, max(1, before), tall):
            part = slice(top, min(top + tall, before))
            env = Lazy({n: c[part, None] for n, c in self._columns.items()} | {decision.name: domain}, known_now)
            alive = self._alive(checks, env, part, radix)
            state, index = np.nonzero(alive)
            columns.append([_at(np.asarray(env[n], np.int64), alive.shape, state, index) for n in asked])
            states.append(state + top)
            indices.append(index)
        state, index = np.concatenate(states), np.concatenate(indices)
        merged = [np.concatenate(parts) for parts in zip(*columns, strict=True)]
        following, first = _merged(merged, len(state))
        fewer = len(first) < len(state)
        self._columns = {n: column[first] if fewer else column for n, column in zip(asked, merged, strict=True)}
        totals = np.zeros(len(first), np.int64)
        np.add.at(totals, following, self._prefixes[state])
        self._prefixes = totals
        return stride, before, state, index, following

    def _complete_rules(self, known: set[str], new: set[str], rest: Residual) -> list[tuple[int, Bool]]:
        """The rules that are complete now. Of the others their rest stays: what reads nothing `new` is its rest."""
        complete: list[tuple[int, Bool]] = []
        rules, self._pending = self._pending, []
        for rule, whole in rules:
            open_still = not free_vars(whole) <= known
            holds = rest.truth(whole) if open_still and free_vars(whole) & new else whole
            (complete if free_vars(holds) <= known else self._pending).append((rule, holds))
        return complete

    def _alive(
        self, checks: list[tuple[int, Bool]], env: Mapping[str, object], part: slice, radix: int
    ) -> npt.NDArray[np.bool_]:
        """Which ways from these states no complete rule forbids; the rows that each rule removes are counted."""
        prefixes = self._prefixes[part]
        alive = np.ones((len(prefixes), radix), np.bool_)
        for rule, holds in checks:
            with np.errstate(divide="ignore"):
                truth = np.broadcast_to(np.asarray(evaluate(holds, env), np.bool_), alive.shape)
            lost = np.count_nonzero(alive & ~truth, axis=1)
            self.rejected[rule] += int(lost @ prefixes) * self._rows
            alive = alive & truth
        return alive


def _reachable(derived: dict[str, Int], pending: list[tuple[int, Bool]]) -> dict[str, Int]:
    """The derived quantities that pending rules still ask for, through each other too."""
    asked: set[str] = {n for _, holds in pending for n in free_vars(holds)}
    for name in reversed(derived):
        if name in asked:
            asked |= free_vars(derived[name])
    return {n: e for n, e in derived.items() if n in asked}


def _at(values: Ids, shape: tuple[int, ...], state: Ids, index: Ids) -> Ids:
    """The elements of `values`, spread to `shape`, at these rows and columns; most are the same along one of the two,
    and one subscript has them in a quarter of the time that two take."""
    if values.shape == shape:
        return np.asarray(values.ravel()[state * shape[1] + index])
    if values.shape == (shape[0], 1):
        return np.asarray(values[:, 0][state])
    if values.shape == (1, shape[1]):
        return np.asarray(values[0][index])
    return np.asarray(np.broadcast_to(values, shape)[state, index])


def _merged(columns: list[Ids], rows: int) -> tuple[Ids, Ids]:
    """For each row the number of the set of equal rows that it belongs to, and the first row of each set."""
    key = np.zeros(rows, np.uint64)
    for column in columns:  # one number a row, which differs where rows do, but for an accident
        key ^= column.astype(np.uint64)
        key *= _MIXING
        key ^= key >> _HALF
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    if len(first) == rows:
        return np.arange(rows), np.arange(rows)
    same = first[place]
    if not all(np.array_equal(column[same], column) for column in columns):
        _, first, place = np.unique(np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)  # as the rows come, not as their numbers happen to: neighbours are read together then
    number = np.empty(len(first), np.int64)
    number[order] = np.arange(len(first))
    return number[place.ravel()], first[order]


def distinct_ranks(legal: int, n: int, rng: np.random.Generator) -> Ids:
    """`min(n, legal)` different numbers below `legal`, uniformly, in random order."""
    if legal <= 4 * n:
        return rng.permutation(legal)[:n].astype(np.int64)
    found = np.zeros(0, np.int64)
    while len(found) < n:
        both = np.concatenate([found, rng.integers(0, legal, n - len(found) + 16)])
        found = both[np.sort(np.unique(both, return_index=True)[1])]
    return found[:n]
