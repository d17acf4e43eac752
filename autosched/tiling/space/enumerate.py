"""Legal rows by staged joins: each rule prunes as soon as the decisions it depends on are there.

Decisions join one group at a time. A block of surviving prefixes (a column) meets all combinations of the next group
(a row of numbers); rules that are now complete are evaluated over that grid by broadcasting, so what depends on one
side only is computed once for the side. The survivors are the next prefixes. What a rule removes early stands for
many full rows, and is counted as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.logic import Expr, Int, free_vars, interval
from autosched.logic.walk import children
from autosched.tiling.space.base import BLOCK, Ids, RulePart, SpaceBase, once_per_space, truth
from autosched.tiling.space.values import Lazy

_PROBE = 4096  # rows drawn to estimate how much a rule prunes; only the join order depends on it, never an answer


@dataclass(frozen=True)
class Legal:
    """`ids`: legal row ids, sorted, int64. `rejected`: for each rule how many full rows it removed; a row that breaks
    several rules counts for the one that met it first, so `len(ids) + sum(rejected.values()) == total`. `total`: all
    rows of the space. `complete` is False where a limit ended the enumeration early (counts are then of what was seen).
    """

    ids: Ids
    rejected: dict[str, int]
    total: int
    complete: bool = True

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class JoinStage:
    """`decisions` (positions) join the prefixes, then `parts` prune; `keep` are the positions whose columns later
    stages need; `weight` is how many full rows one survivor stands for."""

    decisions: tuple[int, ...]
    parts: tuple[RulePart, ...]
    keep: frozenset[int]
    weight: int

    @staticmethod
    def chain(space: SpaceBase, steps: Sequence[tuple[tuple[int, ...], tuple[RulePart, ...]]]) -> tuple[JoinStage, ...]:
        """The stages of decisions and the rules' parts that prune after them, in order."""
        stages = []
        for n, (decisions, parts) in enumerate(steps):
            later = steps[n + 1 :]
            keep = frozenset(d for _, ps in later for p in ps for d in p.depends)
            weight = prod(space.radices[d] for ds, _ in later for d in ds)
            stages.append(JoinStage(decisions, parts, keep, weight))
        return tuple(stages)


@dataclass(frozen=True)
class Prefixes:
    """`ids` sums the strides of the decisions so far; `columns` holds indices by position."""

    ids: Ids
    columns: dict[int, npt.NDArray[np.unsignedinteger]]

    def __getitem__(self, chosen: slice | Ids) -> Prefixes:
        return Prefixes(self.ids[chosen], {p: c[chosen] for p, c in self.columns.items()})

    @staticmethod
    def join(items: Sequence[Prefixes]) -> Prefixes:
        """Those of all items below each other; they have columns of the same positions."""
        if len(items) == 1:
            return items[0]
        columns = {d: np.concatenate([i.columns[d] for i in items]) for d in items[0].columns}
        return Prefixes(np.concatenate([i.ids for i in items]), columns)


ROOT = Prefixes(np.zeros(1, np.int64), {})
"""The prefix with no decision made."""


def plan_stages(space: SpaceBase, parts: Sequence[RulePart], wanted: Set[int] | None = None) -> tuple[JoinStage, ...]:
    """The join order: greedily the part whose completion leaves the fewest prefixes; free decisions last. `wanted` are
    the positions to decide (default all); the others are decided before.

    Only the last stage can be without parts.
    """
    everything = set(range(len(space.decisions)))
    pending = list(parts)
    passing = {p: _pass_rate(space, p) for p in pending}
    fixed = set() if wanted is None else everything - wanted
    groups: list[tuple[tuple[int, ...], tuple[RulePart, ...]]] = []
    while pending:
        growth = [prod(space.radices[d] for d in p.depends - fixed) * passing[p] for p in pending]
        best = pending[growth.index(min(growth))]  # the first of equals: rules stay in their order
        new = tuple(sorted(best.depends - fixed))
        fixed |= set(new)
        done = tuple(p for p in pending if p.depends <= fixed)
        pending = [p for p in pending if p not in done]
        groups.append((new, done))
    free = tuple(d for d in range(len(space.decisions)) if d not in fixed)
    if free or not groups:
        groups.append((free, ()))
    return JoinStage.chain(space, groups)


@once_per_space
def join_stages(space: SpaceBase) -> tuple[JoinStage, ...]:
    """The order in which all decisions are joined."""
    return plan_stages(space, space.parts)


def _pass_rate(space: SpaceBase, part: RulePart) -> float:
    """Counting, listing and explaining all ask for it."""
    if part not in space.rates:
        space.rates[part] = _drawn_rate(space, part)
    return space.rates[part]


def _drawn_rate(space: SpaceBase, part: RulePart) -> float:
    rng = np.random.default_rng(0)
    base = {}
    for d in sorted(part.depends):
        domain = np.array(space.decisions[d].domain, np.int64)
        base[space.decisions[d].name] = domain[rng.integers(0, len(domain), _PROBE)]
    return float(np.mean(truth(part.holds, Lazy({**space.constants, **base}, space.derived), (_PROBE,))))


class Joiner:
    """One run over a space's stages: counts what each rule removes. `parts` are the space's own unless given (to ask
    which rules contradict each other); `stages` are those of `plan_stages` unless given. A stage ends early once `most`
    combinations have been looked at in all (None: as many as there are)."""

    def __init__(
        self,
        space: SpaceBase,
        block: int = BLOCK,
        parts: Sequence[RulePart] | None = None,
        stages: Sequence[JoinStage] | None = None,
        most: int | None = None,
    ) -> None:
        self.space = space
        self.block = block
        self.most, self.looked = most, 0
        if stages is None:
            stages = join_stages(space) if parts is None else plan_stages(space, parts)
        self.stages = tuple(stages)
        self.rejected = [0] * len(space.rules)
        narrow = narrow_names(space)
        # Sums and products of small sizes run twice as fast in int32; where bounds do not prove it safe, int64.
        self._narrow = {p: _small(space, p, narrow) for s in self.stages for p in s.parts}
        self._domains: dict[bool, list[Ids | npt.NDArray[np.int32] | None]] = {
            True: [np.array(d.domain, np.int32) if d.name in narrow else None for d in space.decisions],
            False: [np.array(d.domain, np.int64) for d in space.decisions],
        }

    def run(self, stages: int | None = None) -> Iterator[Prefixes]:
        """Blocks of prefixes that survive the first `stages` stages (default all: then their `ids` are legal rows)."""
        stream: Iterator[Prefixes] = iter([ROOT])
        for stage in self.stages[:stages]:
            stream = self.joined(stage, stream)
        return stream

    def joined(self, stage: JoinStage, prefixes: Iterable[Prefixes]) -> Iterator[Prefixes]:
        """The survivors of one stage."""
        return self._joined(stage, _gathered(iter(prefixes), self.block))

    def _joined(self, stage: JoinStage, prefixes: Iterator[Prefixes]) -> Iterator[Prefixes]:
        space = self.space
        width = prod(space.radices[d] for d in stage.decisions)
        for batch in prefixes:
            tall = max(1, self.block // width)
            for top in range(0, len(batch.ids), tall):
                chunk = batch[top : top + tall]
                for left in range(0, width, self.block):
                    group = self.group(stage.decisions, left, min(width, left + self.block))
                    self.looked += len(chunk.ids) * len(group.ids)
                    if self.most is not None and self.looked > self.most:
                        return
                    yield self.pruned(stage, chunk, group)

    def paired(self, stage: JoinStage, prefixes: Prefixes, count: int, rng: np.random.Generator) -> Prefixes:
        """At most `count` of the pairs of a prefix and a combination of a stage that no rule prunes, at random."""
        width = prod(self.space.radices[d] for d in stage.decisions)
        rows = rng.integers(0, len(prefixes.ids), count)
        group = self._combinations(stage.decisions, rng.integers(0, width, count))
        ids, first = np.unique(prefixes.ids[rows] + group.ids, return_index=True)
        kept = {d: c[rows][first] for d, c in prefixes.columns.items() if d in stage.keep}
        kept |= {d: c[first] for d, c in group.columns.items() if d in stage.keep}
        return Prefixes(ids, kept)

    def group(self, decisions: tuple[int, ...], start: int, stop: int) -> Prefixes:
        """Combinations number `start` to `stop` of some decisions."""
        return self._combinations(decisions, np.arange(start, stop, dtype=np.int64))

    def _combinations(self, decisions: tuple[int, ...], numbers: Ids) -> Prefixes:
        ids = np.zeros(len(numbers), np.int64)
        columns = {}
        below = 1
        for d in reversed(decisions):
            radix = self.space.radices[d]
            index = (numbers // below) % radix
            columns[d] = index.astype(np.min_scalar_type(radix - 1))
            ids += index * self.space.strides[d]
            below *= radix
        return Prefixes(ids, columns)

    def pruned(self, stage: JoinStage, prefix: Prefixes, group: Prefixes) -> Prefixes:
        """The pairs of a prefix and a combination of the stage's decisions that none of its rules forbids."""
        p, g = len(prefix.ids), len(group.ids)
        envs = {narrow: self._env(narrow, prefix, group) for narrow in (True, False)}
        mask: npt.NDArray[np.bool_] | None = None
        alive = p * g
        for part in stage.parts:
            holds = truth(part.holds, envs[self._narrow[part]], (p, g))
            mask = holds if mask is None else mask & holds
            now = int(np.count_nonzero(mask))
            self.rejected[part.rule] += (alive - now) * stage.weight
            alive = now
            if not alive:
                break
        if mask is None or alive == p * g:
            kept = {d: np.repeat(c, g) for d, c in prefix.columns.items() if d in stage.keep}
            kept |= {d: np.tile(c, p) for d, c in group.columns.items() if d in stage.keep}
            return Prefixes(np.add.outer(prefix.ids, group.ids).reshape(-1), kept)
        pairs = np.flatnonzero(mask)
        rows = pairs // g
        cols = pairs - rows * g  # numpy's divmod takes several times as long
        kept = {d: c[rows] for d, c in prefix.columns.items() if d in stage.keep}
        kept |= {d: c[cols] for d, c in group.columns.items() if d in stage.keep}
        return Prefixes(prefix.ids[rows] + group.ids[cols], kept)

    def _env(self, narrow: bool, prefix: Prefixes, group: Prefixes) -> Lazy:
        base: dict[str, object] = dict(self.space.constants)
        domains = self._domains[narrow]
        for columns, shape in ((prefix.columns, (-1, 1)), (group.columns, (1, -1))):
            for d, index in columns.items():
                domain = domains[d]
                if domain is not None:
                    base[self.space.decisions[d].name] = domain[index].reshape(shape)
        return Lazy(base, self.space.derived)


def _gathered(stream: Iterator[Prefixes], block: int) -> Iterator[Prefixes]:
    """The same prefixes in batches of about `block`: many small survivors would pay numpy's overhead at each."""
    waiting: list[Prefixes] = []
    count = 0
    for item in stream:
        if len(item.ids):
            waiting.append(item)
            count += len(item.ids)
        if count >= block:
            yield Prefixes.join(waiting)
            waiting, count = [], 0
    if waiting:
        yield Prefixes.join(waiting)


def enumerate_legal(space: SpaceBase, block: int = BLOCK, limit: int | None = None) -> Legal:
    """See `Space.enumerate`."""
    joiner = Joiner(space, block)
    found: list[Ids] = []
    count = 0
    complete = True
    for prefixes in joiner.run():
        found.append(prefixes.ids)
        count += len(prefixes.ids)
        if limit is not None and count >= limit:
            complete = False
            break
    ids = np.concatenate(found) if found else np.zeros(0, np.int64)
    ids = np.sort(ids if complete else ids[:limit])
    rejected = {r.name: n for r, n in zip(space.rules, joiner.rejected, strict=True)}
    return Legal(ids, rejected, space.size, complete)


# Which parts int32 can hold


def _ends(domain: tuple[int, ...]) -> tuple[int, int]:
    return min(domain), max(domain)


def _int32(low: int, high: int) -> bool:
    return low > -(2**31) and high < 2**31


@once_per_space
def narrow_names(space: SpaceBase) -> dict[str, tuple[int, int]]:
    """Bounds of the names whose values, and all values on the way to them, provably fit int32."""
    bounds = {n: (v, v) for n, v in space.constants.items()} | {d.name: _ends(d.domain) for d in space.decisions}
    bounds = {n: b for n, b in bounds.items() if _int32(*b)}
    for name, expression in space.derived.items():
        if _fits(expression, bounds):
            bounds[name] = interval(expression, bounds)
    return bounds


def _small(space: SpaceBase, part: RulePart, narrow: dict[str, tuple[int, int]]) -> bool:
    if part not in space.small:
        space.small[part] = _fits(part.holds, narrow)
    return space.small[part]


def _fits(node: Expr, bounds: dict[str, tuple[int, int]]) -> bool:
    if not free_vars(node) <= bounds.keys():
        return False
    if isinstance(node, Int):
        try:
            if not _int32(*interval(node, bounds)):
                return False
        except (ValueError, ZeroDivisionError):
            return False
    return all(_fits(c, bounds) for c in children(node))
