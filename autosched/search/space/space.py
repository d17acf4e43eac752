"""`SearchSpace`: the union of the spaces of a study's plans, enumerated and scored by the clock once for everyone.

A row of the union is (plan number, row id). Enumeration covers every plan; the clock runs over the rows that can be
among the best (see `search.space.scores`), in blocks over threads (numpy releases the interpreter lock).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from autosched.costmodel.features import Features, FeatureSchema, feature_table
from autosched.search.space.answer_cache import AnswerCache
from autosched.search.space.description_cache import DescriptionCache
from autosched.search.space.plan_rows import LIMIT, PlanEntry
from autosched.search.space.rows import Ids, Rows, Seconds, in_order, slowest_of
from autosched.search.space.scores import BLOCK, Scores, result_of, settle, settling
from autosched.search.space.top_k import TopK, merged
from autosched.tiling.candidate import Candidate
from autosched.tiling.space.alike import Alike
from autosched.tiling.space.bounded import SLACK, Least, Quantity, timed
from autosched.tiling.space.independent_groups import IndependentGroups
from autosched.tiling.space.table import Table, tabulate

if TYPE_CHECKING:
    from autosched.tiling.plans.plan import Plan

Columns: TypeAlias = Mapping[str, npt.NDArray[np.int64]]
Clock: TypeAlias = Callable[["Plan", Columns], Mapping[str, npt.NDArray[Any]]]
Floors: TypeAlias = Callable[["Plan"], Sequence[Quantity]]
Leasts: TypeAlias = Callable[["Plan"], Sequence[Least | None]]
Limit: TypeAlias = Callable[["Plan", Columns], npt.NDArray[np.float64]]

HOPELESS = 5.0
"""A plan whose best row is this many times slower by the clock than the best of all is not searched further."""
LEADING = 8_000
"""The clock's best rows that strategies look at, and as many shared among the plausible plans."""
LARGE = 1 << 28
"""Rows before any rule from which on the best rows of a plan are sooner found by bounds than listed."""
_PROBE = 2048
_MARGIN = 1.25  # rows a probe is asked for beyond those wanted, since it only estimates where they end


class SearchSpace:
    """The plans of a study with their legal rows. `clock(plan, values)` gives seconds by term, `total` among them.

    Legal rows above `limit` in one plan are represented by a sample drawn with `seed`. `run_length(plan)` says how many
    consecutive ids (from a multiple of it) the clock gives one time. `floors(plan)` are functions of columns that add
    up to a lower bound of `total`; where there are none, every row is scored. `parts(plan)`, one for each floor, add up
    to `total` itself; with them the best rows of a plan are found among all of its legal ones, however many there are,
    and sooner with `leasts(plan)` (`tiling.space.bounded.Timed.least`).
    `least(plan, values)` are seconds that rows do not go below, whatever the clock says. Answers are in `kept`, which
    may hold those of an earlier space of the same plans. Plans of over `large` rows are searched before they are
    listed.
    """

    def __init__(
        self,
        plans: Sequence[Plan],
        clock: Clock,
        *,
        threads: int = 2,
        seed: int = 0,
        limit: int = LIMIT,
        run_length: Callable[[Plan], int] = lambda plan: 1,
        floors: Floors = lambda plan: (),
        parts: Floors = lambda plan: (),
        leasts: Leasts = lambda plan: (),
        least: Limit | None = None,
        kept: AnswerCache | None = None,
        large: int = LARGE,
    ) -> None:
        self._clock = clock
        self._least = least
        self._parts = parts
        self._leasts = leasts
        self._run_length = run_length
        self._floors = floors
        self._threads = threads
        self._seed = seed
        self._large = large
        self.kept = kept or AnswerCache()
        self.plans = tuple(PlanEntry(plan, limit, (seed, n), self.kept) for n, plan in enumerate(plans))
        self.number = {entry.plan.name: n for n, entry in enumerate(self.plans)}
        if len(self.number) != len(self.plans):
            raise ValueError("two plans have one name")
        self._tables: dict[int, list[Table]] = {}
        self._scores: dict[int, Scores] = {}
        self._searches: dict[int, TopK] = {}
        self._alike = Alike()
        self._descriptions = DescriptionCache()

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """Rows of each plan that are listed."""
        return np.array([entry.listed for entry in self.plans], np.int64)

    @property
    def empty(self) -> bool:
        """Whether no plan has a legal row."""
        return not any(self.has_legal(n) for n in range(len(self.plans)))

    def has_legal(self, number: int) -> bool:
        """Whether a plan has a legal row; one that is large is not listed for that."""
        return len(self.sampled(number)[0]) > 0 if self._is_large(number) else self.plans[number].legal > 0

    def prepared(self) -> Iterator[None]:
        """Work out what is to be known of every plan, a piece at a time: its rows, some of their seconds, its best.
        Whoever needs something sooner asks for it."""
        for number, entry in enumerate(self.plans):
            if entry.listed:
                self.sampled(number)
                yield
                if entry.complete and self.kept.find("plausible") is None:
                    yield from self._listing([number], 1)
            yield
        _ = self.best(LEADING)
        yield
        for number in self.plausible:
            self.best_of_plan(number)
            yield

    @property
    def rows(self) -> int:
        """Rows of all plans that are listed: the legal ones, or a sample of them."""
        return int(self.counts.sum())

    @property
    def legal(self) -> int:
        """Legal rows of all plans, listed or not."""
        return sum(entry.legal for entry in self.plans)

    @property
    def rows_in_all(self) -> int:
        """Rows before any rule."""
        return sum(entry.total for entry in self.plans)

    @property
    def rejected(self) -> dict[str, int]:
        """Rows rejected by each rule, over all plans."""
        found: dict[str, int] = {}
        for entry in self.plans:
            for rule, count in entry.rejected.items():
                found[rule] = found.get(rule, 0) + count
        return found

    def locate(self, index: npt.ArrayLike) -> Rows:
        """Rows by their place in the concatenation of all plans' rows (0 … rows - 1)."""
        places = np.asarray(index, np.int64)
        tops = np.cumsum(self.counts)
        plan = np.searchsorted(tops, places, side="right")
        within = places - (tops - self.counts)[plan]
        ids = np.empty(len(places), np.int64)
        for number in np.unique(plan):
            mine = plan == number
            ids[mine] = self.plans[number].ids[within[mine]]
        return Rows(plan.astype(np.int32), ids)

    def analytic(self, rows: Rows) -> Seconds:
        """The clock's seconds for any rows."""
        return self._by_plan(rows, lambda number, ids: self._seconds(number, ids))

    def analytic_of_plan(self, number: int) -> Seconds:
        """The clock's seconds for all rows of a plan."""
        scores = self.scores(number)
        settle([scores], np.inf, self._threads)
        return scores.everything()

    def scores(self, number: int) -> Scores:
        """What is known of the seconds of a plan's rows."""
        if number not in self._scores:
            entry = self.plans[number]
            self._scores[number] = Scores(
                entry.ids,
                lambda ids: self._seconds(number, ids),
                self._run_length(entry.plan),
                self._floor_tables(number),
            )
        return self._scores[number]

    def _floor_tables(self, number: int) -> list[Table]:
        """The plan's floors, those of few enough decisions."""
        if number not in self._tables:
            plan = self.plans[number].plan
            tables = [tabulate(plan.space, floor, legal=True) for floor in self._floors(plan)]
            self._tables[number] = [table for table in tables if table is not None]
        return self._tables[number]

    def sampled(self, number: int) -> tuple[Ids, Seconds]:
        """Some rows of a plan at random (all where they are few), and the clock's seconds for these.

        At even distances they could all share the value of a low digit of the row's number, and a bad one."""
        ids, seconds = self.kept.answer(f"some of plan {number}", lambda: self._sampled(number))
        return ids, seconds

    def _sampled(self, number: int) -> tuple[Ids, Seconds]:
        rng = np.random.default_rng([self._seed, number])
        if not self._is_large(number):
            ids = self.plans[number].ids
            ids = ids[np.unique(rng.integers(0, len(ids), _PROBE))] if len(ids) > _PROBE else ids
        elif (known := self._search_of(number).sampled(_PROBE, rng)) is not None:
            return known
        else:
            ids = np.sort(self.plans[number].plan.space.thinned(_PROBE, rng))
        return ids, self._seconds(number, ids)

    @cached_property
    def large(self) -> bool:
        """Whether a plan is searched before it is listed: a row of all rows at random wants them listed."""
        return any(self._is_large(number) for number in range(len(self.plans)))

    def _is_large(self, number: int) -> bool:
        """Whether a plan is searched before it is listed: that takes longer, and its floors say where to look."""
        plan = self.plans[number].plan
        return plan.space.size > self._large and bool(self._parts(plan)) and bool(self._floor_tables(number))

    @cached_property
    def plausible(self) -> tuple[int, ...]:
        """Numbers of the plans whose best row is within HOPELESS of the best of all, fastest first."""
        return tuple(self.kept.answer("plausible", lambda: (np.array(self._hopeful(), np.int64),))[0].tolist())

    def _hopeful(self) -> list[int]:
        some = [n for n in range(len(self.plans)) if self.counts[n]]
        probed = {n: self.sampled(n)[1].min() for n in some}
        hope = min(probed.values(), default=0.0) * 2 * HOPELESS  # a probe's best may be twice the plan's best
        best = {n: float(self._best_of([n], 1)[0][1][0]) for n in some if probed[n] <= hope}
        bound = min(best.values(), default=0.0) * HOPELESS
        return sorted((n for n in best if best[n] <= bound), key=lambda n: (best[n], n))

    @cached_property
    def lower_bound_s(self) -> float | None:
        """Seconds that no row takes less than: by `least`, else (where it is not given, or rows are too many for it) by
        their floors, which leave out what moves between caches, else by the fastest row. None where there is nothing to
        tell by. (Plans that are not plausible are slower still.)"""
        found = self.kept.answer("bound", lambda: (np.array([self._bound_of(n) for n in self.plausible], np.float64),))
        bound = float(found[0].min(initial=np.inf))
        return bound if 0 < bound < np.inf else None

    def _bound_of(self, number: int) -> float:
        entry, limit = self.plans[number], self._least
        if limit is not None:
            table = tabulate(entry.plan.space, lambda v: limit(entry.plan, v), legal=True)
            if table is not None and table.column.min() < np.inf:
                return float(table.column.min())
        floor = self.scores(number).least(entry.complete)
        return floor if floor > 0 else float(self._best_of([number], 1)[0][1][0])

    def best(self, k: int, plan: int | None = None) -> tuple[Rows, Seconds]:
        """The `k` rows fastest by the clock, of all plans or one, in order.

        A hopeless plan takes part with the best row known of it, and in full only once the others have no `k` rows."""
        name = "best" if plan is None else f"best of plan {plan}"
        known = self.kept.find(name)
        if known is None or known[0][0] < k:
            rows, seconds = self._best(k, plan)
            known = self.kept.put(name, (np.array([k], np.int64), rows.plan, rows.ids, seconds))
        return Rows(known[1][:k], known[2][:k]), known[3][:k]

    def best_of_plan(self, number: int) -> Rows:
        """A plausible plan's share of LEADING rows, its best by the clock."""
        return self.best(max(1, LEADING // len(self.plausible)), number)[0]

    def _best(self, k: int, plan: int | None) -> tuple[Rows, Seconds]:
        if plan is not None:
            numbers: list[int] = [plan]
        elif (sure := self._surely_best(k)) is not None:
            return sure
        else:
            numbers = list(self.plausible)
            if sum(int(self.counts[n]) for n in numbers) + len(self.plans) - len(numbers) < k:
                numbers = [n for n in range(len(self.plans)) if self.counts[n]]
        found = self._best_of(numbers, k)
        parts = [Rows.of(n, ids) for n, (ids, _) in zip(numbers, found, strict=True)]
        seconds = [s for _, s in found]
        if plan is None:
            for n in sorted({n for n in range(len(self.plans)) if self.counts[n]} - set(numbers)):
                ids, probed = self.sampled(n)
                at = int(np.argmin(probed))
                parts.append(Rows.of(n, ids[at : at + 1]))
                seconds.append(probed[at : at + 1])
        return in_order(parts, seconds, k)

    def near(self, k: int, count: int, factor: float) -> tuple[Rows, Seconds]:
        """The rows fastest by the clock, of all plans, that take at most `factor` times as long as number `count` of
        them, in order; `k` at most. Plans whose floors say that they have none are not laid out, nor are those listed
        that can be searched."""
        name = f"near, {k} of {count} times {factor}"
        plan, ids, seconds = self.kept.answer(name, lambda: self._nearest(k, count, factor))
        return Rows(plan, ids), seconds

    def _nearest(self, k: int, count: int, factor: float) -> tuple[npt.NDArray[np.int32], Ids, Seconds]:
        least = [sum(table.column.min() for table in self._floor_tables(n)) for n in range(len(self.plans))]
        parts: list[Rows] = []
        seconds: list[Seconds] = []
        limit_s = np.inf
        for n in sorted(range(len(self.plans)), key=lambda n: (least[n], n)):
            if least[n] * SLACK > limit_s:
                break
            ids, took = self._near_of(n, k, limit_s, count, factor)
            parts.append(Rows.of(n, ids))
            seconds.append(took)
            limit_s = min(limit_s, factor * slowest_of(seconds, count))
        rows, took = in_order(parts, seconds, k)
        fast = took <= limit_s
        return rows.plan[fast], rows.ids[fast], took[fast]

    def _near_of(self, number: int, k: int, limit_s: float, count: int, factor: float) -> tuple[Ids, Seconds]:
        """The part of one plan in `near`, of rows that take at most `limit_s`."""
        if self._is_large(number):
            found = self._search_of(number).near(k, limit_s, count, factor)
            if found.proved:
                return found.ids, np.asarray(found.seconds, np.float32)
        if self._beyond(number) is not None:
            ids, seconds = self._best_of([number], k)[0]
            fast = seconds <= min(limit_s, factor * slowest_of([seconds], count))
            return ids[fast], seconds[fast]
        first = self._listed([number], count, limit_s)[0]
        limit_s = min(limit_s, factor * slowest_of([first[1]], count))
        scores = self.scores(number)
        settle([scores], limit_s, self._threads)
        return scores.best(k, limit_s)

    def _surely_best(self, k: int) -> tuple[Rows, Seconds] | None:
        """`best` of all plans, of which only those are laid out whose floors do not say that they have none of these
        rows; None where a hopeless plan might."""
        least = [sum(table.column.min() for table in self._floor_tables(n)) for n in range(len(self.plans))]
        numbers: list[int] = []
        parts: list[tuple[Ids, Seconds]] = []
        slowest = np.inf
        left = sorted(range(len(self.plans)), key=lambda n: (least[n], n))
        while left and (not parts or least[left[0]] <= slowest):
            more = [n for n in left if n == left[0] or (parts and least[n] <= slowest)]
            left = [n for n in left if n not in more]
            numbers += [n for n in more if self.plans[n].legal]
            if numbers:
                parts = self._best_of(numbers, k)
                slowest = slowest_of([seconds for _, seconds in parts], k)
        if not slowest <= HOPELESS * min((float(s[0]) for _, s in parts if len(s)), default=0.0):
            return None
        return in_order([Rows.of(n, ids) for n, (ids, _) in zip(numbers, parts, strict=True)], [s for _, s in parts], k)

    def features(self, rows: Rows) -> Features:
        """Features of any rows, in the columns of this study."""
        return self.described(rows)[0]

    def described(self, rows: Rows) -> tuple[Features, Seconds]:
        """Features of any rows and the clock's seconds (`analytic`), which come of one look at them."""
        return self._descriptions.described(rows, self._described)

    def _described(self, rows: Rows) -> tuple[Features, Seconds]:
        tables, places = [], []
        seconds = np.empty(len(rows), np.float32)
        for number in np.unique(rows.plan):
            mine = np.flatnonzero(rows.plan == number)
            table, seconds[mine] = self._table(int(number), rows.ids[mine])
            tables.append(table)
            places.append(mine)
        stacked = self.schema.stack(tables)
        if len(tables) < 2:
            return stacked, seconds
        matrix = np.empty_like(stacked.matrix)
        matrix[np.concatenate(places)] = stacked.matrix
        return Features(stacked.names, stacked.units, stacked.version, matrix), seconds

    @cached_property
    def schema(self) -> FeatureSchema:
        """The union of all plans' feature columns."""
        return FeatureSchema.union(
            [self._table(n, self.sampled(n)[0][:1])[0] for n, e in enumerate(self.plans) if e.listed]
        )

    def mutate(self, rows: Rows, rng: np.random.Generator) -> Rows:
        """A legal neighbour of each row, within its plan."""
        ids = rows.ids.copy()
        for number in np.unique(rows.plan):
            mine = rows.plan == number
            ids[mine] = self.plans[number].plan.space.mutate(ids[mine], rng)
        return Rows(rows.plan, ids)

    def decisions(self, rows: Rows) -> npt.NDArray[np.int64]:
        """Decision values, shape (rows, most decisions of a plan); compare rows of one plan only."""
        widest = max((len(e.plan.space.decisions) for e in self.plans), default=0)
        found = np.zeros((len(rows), widest), np.int64)
        for number in np.unique(rows.plan):
            mine = rows.plan == number
            space = self.plans[number].plan.space
            values = space.values(rows.ids[mine])
            for column, decision in enumerate(space.decisions):
                found[mine, column] = values[decision.name]
        return found

    def candidates(
        self, rows: Rows, predicted_s: npt.ArrayLike | None = None, analytic_s: Seconds | None = None
    ) -> list[Candidate]:
        """Candidates with what the clock (asked, where `analytic_s` is None) and a model said of them."""
        analytic = self.analytic(rows) if analytic_s is None else analytic_s
        predicted = [None] * len(rows) if predicted_s is None else [float(s) for s in np.asarray(predicted_s)]
        return [
            Candidate(self.plans[p].plan, int(i), float(a), s)
            for p, i, a, s in zip(rows.plan, rows.ids, analytic, predicted, strict=True)
        ]

    def _table(self, number: int, ids: Ids) -> tuple[Features, Seconds]:
        plan = self.plans[number].plan
        values = plan.space.values(ids)
        terms = self._terms(plan, values, len(ids))
        return feature_table(plan, ids, values, terms), terms["total"].astype(np.float32)

    def _terms(self, plan: Plan, values: Mapping[str, Any], rows: int) -> dict[str, npt.NDArray[Any]]:
        return {name: np.broadcast_to(s, (rows,)) for name, s in self._clock(plan, values).items()}

    def _seconds(self, number: int, ids: Ids) -> Seconds:
        """The clock's seconds; neighbours that it cannot tell apart are asked for once."""
        plan = self.plans[number].plan
        length = self._run_length(plan)
        found = np.empty(len(ids), np.float32)
        for top in range(0, len(ids), BLOCK * length):
            heads = ids[top : top + BLOCK * length] // length * length
            first = np.flatnonzero(np.diff(heads, prepend=-1))
            seconds = np.asarray(self._clock(plan, plan.space.values(heads[first]))["total"], np.float32)
            found[top : top + BLOCK * length] = np.repeat(seconds, np.diff(first, append=len(heads)))
        return found

    def _best_of(self, numbers: Sequence[int], k: int) -> list[tuple[Ids, Seconds]]:
        """For each of these plans the rows that may be among the `k` best of all of them, and their seconds."""
        listed = [n for n in numbers if self._beyond(n) is None]
        found = dict(zip(listed, self._listed(listed, k), strict=True))
        for number in numbers:
            if (search := self._beyond(number)) is not None:
                best = search.best(k, slowest_of([s for _, s in found.values()], k))
                found[number] = best if search.proved else merged(best, self._listed([number], k)[0])
        return [found[n] for n in numbers]

    def _beyond(self, number: int) -> TopK | None:
        """What finds the best rows of a plan of which a sample is listed; None where all are, or the clock has no
        parts."""
        if self.plans[number].complete or not self._parts(self.plans[number].plan):
            return None
        return self._search_of(number)

    def _search_of(self, number: int) -> TopK:
        if number not in self._searches:
            plan = self.plans[number].plan
            parts = timed(self._parts(plan), self._floors(plan), self._leasts(plan))
            self._searches[number] = TopK(
                IndependentGroups(plan.space, parts, lambda ids: self._seconds(number, ids), alike=self._alike)
            )
        return self._searches[number]

    def _listed(self, numbers: Sequence[int], k: int, at_most_s: float = np.inf) -> list[tuple[Ids, Seconds]]:
        """`_best_of` the rows that are listed and take at most `at_most_s`."""
        return result_of(self._listing(numbers, k, at_most_s))

    def _listing(
        self, numbers: Sequence[int], k: int, at_most_s: float = np.inf
    ) -> Generator[None, None, list[tuple[Ids, Seconds]]]:
        """`_listed` in pieces. A probe says how slow these rows may be; what may be faster is scored, and if `k` rows
        are, no other row can be."""
        scores = [self.scores(n) for n in numbers]
        wanted, rows = float(k), sum(len(s.ids) for s in scores)
        while True:
            wanted *= _MARGIN
            limit_s = min(at_most_s, self._reached(numbers, wanted) if wanted < rows else np.inf)
            yield from settling(scores, limit_s, self._threads)
            if limit_s == at_most_s or sum(s.count(limit_s) for s in scores) >= k:
                return [s.best(k, limit_s) for s in scores]
            wanted *= 2

    def _reached(self, numbers: Sequence[int], rows: float) -> float:
        """Seconds that about so many rows of these plans take at most, by their probes."""
        probes = {n: self.sampled(n)[1] for n in numbers if len(self.plans[n].ids)}
        seconds = np.concatenate([*probes.values()])
        each = np.concatenate([np.full(len(p), len(self.plans[n].ids) / len(p)) for n, p in probes.items()])
        order = np.argsort(seconds, kind="stable")
        at = int(np.searchsorted(np.cumsum(each[order]), rows))
        return float(seconds[order[min(at, len(order) - 1)]])

    def _by_plan(self, rows: Rows, function: Callable[[int, Ids], Seconds]) -> Seconds:
        found = np.empty(len(rows), np.float32)
        for number in np.unique(rows.plan):
            mine = rows.plan == number
            found[mine] = function(int(number), rows.ids[mine])
        return found
