"""`draft`, which leads `auto` where there is a clock: the whole legal space by the clock, the best of it by the learned
model, batches with diversity.

A draft and a verdict: the clock ranks every row of every plausible plan; the best rows, and a stratified sample that
keeps the model honest elsewhere, form a pool whose features are computed once. The first rows are the clock's, diverse
over those that it cannot tell apart; from then on the model is fitted again after each batch, and the pool, joined by
mutants of its leaders, ranked by it. Places for learning rather than winning (rows at random, plans never tried) are
given away only where the clock proves wrong.

Settings were compared on five recorded spaces and checked on three that no setting was chosen by (7 seeds of 64 trials
each, performance from 0, random, to 1; the clock's own order: 0.950 and 0.983): 0.951 and 0.940 with places for
learning wherever the clock is not perfect and a model from the second batch on; without these places 0.965 and 0.968,
with 8 rows by the clock first 0.972 and 0.977.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from autosched.costmodel.features import Features
from autosched.costmodel.learned.learned import AnalyticModel
from autosched.costmodel.learned.residual import PRIOR_SIGMA
from autosched.costmodel.protocol import CostModel
from autosched.search.space.rows import Rows
from autosched.search.space.space import LEADING, SearchSpace
from autosched.search.strategy.diversity import ALIKE, diverse
from autosched.search.strategy.memory import HistoryStrategy, best_of_others, topped_up
from autosched.tiling.candidate import Candidate

_STRATIFIED = 3_000  # rows described besides those that lead; neither number was compared with others
_SURE = 64  # rows by the clock, however far apart, that the first ones are chosen from, with all as good as they
_BY_CLOCK = 8  # trials before the model has a say: 0.972 and 0.977 (see above), with 16 of them 0.968 and 0.983
_QUANTILE_Z = 0.25  # deviations below the mean; 0 and 0.5 did alike on recordings (0.965), 1 worse (0.959)
_AT_RANDOM = 0.08  # chance of a place to go to any row, where the clock is as wrong as PRIOR_SIGMA says
_CURIOUS = 0.35  # share of a batch drawn from all rows thought well of there
_SETTLED = 16  # trials after which that share is halved
_WELL = 0.2  # the best share of the pool by the model: what is thought well of
_SMALL, _LARGE, _MANY = 4, 8, 32  # candidates between two fits, before and after so many trials
_TIED = 1.25  # the clock's best of a plan over its best of all, up to which the plan is tried in any case
_TIED_PLACES = 0.25  # share of a batch for such plans
_LEADERS = 64
_MUTANTS = 512  # of these leaders and a quarter as many measured rows: as many as MetaSchedule breeds in a generation
_APART = 2  # decisions in which two of a batch differ at least, while enough of them do
_SHORTLIST = 64  # rows looked at for each place in a batch when keeping candidates apart


@dataclass(frozen=True)
class Pool:
    """Rows with their features and the clock's seconds."""

    rows: Rows
    features: Features
    analytic_s: npt.NDArray[np.float32]


class Auto(HistoryStrategy):
    """Without a model the clock is taken as it is."""

    ahead = True

    @property
    def batch(self) -> int:
        """Few candidates at first, when each lot of news changes the model most."""
        return _SMALL if self._memory.measured < _MANY else _LARGE

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None) -> None:
        super().__init__(space, seed, model)
        self._model: CostModel = model or AnalyticModel()
        self._fitted_to = 0
        self._made: Pool | None = None

    def propose(self, n: int) -> list[Candidate]:
        if self._space.empty or n <= 0:
            return []
        rng = np.random.default_rng([self._seed, len(self._memory)])
        if self._memory.measured >= _BY_CLOCK and self._fitted_to != self._memory.measured:
            self._model.fit(self._memory.samples())
            self._fitted_to = self._memory.measured
        if not self._fitted_to:
            return self._first(n, rng)
        ranked = self._ranked(rng)
        new = max(round((n + 1) // 2 * self._doubt), min(int(n * _TIED_PLACES), self._tied(ranked)))
        batch = self._batch(ranked, n - self._curious(n), new)
        # Places left over go to any row that the model thinks well of, then (a few) to any row at all.
        wild = int(rng.binomial(n, _AT_RANDOM * self._doubt))
        well = ranked.take(rng.permutation(ceil(len(ranked) * _WELL))[: 4 * n])
        rows = topped_up(self._space, self._memory, Rows.join([batch, well]).distinct(), max(0, n - wild), rng)
        rows = Rows.join([rows, topped_up(self._space, self._memory, Rows.of(0, []), n - len(rows), rng)])
        if not len(rows):
            return []
        features, analytic_s = self._space.described(rows)
        return self._space.candidates(rows, self._model.predict(features, analytic_s).seconds, analytic_s)

    def _first(self, n: int, rng: np.random.Generator) -> list[Candidate]:
        """Before there is a model: the clock's best rows, diverse in what the clock cannot tell apart. Nothing need be
        described for that."""
        wanted = max(_SURE, len(self._memory) + n)
        if self._memory.given_up:
            rows, seconds = best_of_others(self._space, self._memory, wanted)
        else:
            rows, seconds = self._space.near(LEADING, wanted, 1 + ALIKE)
        free = np.flatnonzero(self._memory.free(rows))
        chosen = diverse(self._space, rows.take(free), seconds[free], self._memory.taken(), n)
        if n > _BY_CLOCK:  # a batch that no measurement interrupts
            others = self._of_other_plans(chosen, int(n * _TIED_PLACES))
            chosen = Rows.join([chosen.take(np.arange(min(len(chosen), n - len(others)))), others])
        return self._space.candidates(topped_up(self._space, self._memory, chosen, n, rng))

    def _of_other_plans(self, chosen: Rows, places: int) -> Rows:
        """Rows for so many places, in equal shares, of plans that have none yet and that the clock can hardly tell from
        the best one."""
        best = float(self._space.best(1)[1][0])
        have = set(chosen.plan.tolist())
        untried = [p for p in self._space.plausible if p not in have and not self._memory.tried(p)]
        near = [p for p in untried if float(self._space.best(1, p)[1][0]) <= _TIED * best][:places]
        found = []
        for number, plan in enumerate(near):
            share = places // len(near) + (number < places % len(near))
            rows, seconds = self._space.best(_SURE, plan)
            found.append(diverse(self._space, rows, seconds, self._memory.taken(), share))
        return Rows.join(found)

    def _curious(self, n: int) -> int:
        """How many places of a batch are for learning and not for winning: the more the clock was wrong about what was
        measured, and the fewer the measurements.

        Its favourites resemble each other, so alone they teach little about what it misses; where it is right, there is
        little to learn (on recorded spaces any share costs), and with rules hidden from it a half did better.
        """
        return round(n * _CURIOUS * self._doubt * _SETTLED / (_SETTLED + self._memory.measured))

    @property
    def _doubt(self) -> float:
        """How wrong the clock was, from 0 (half as wrong as PRIOR_SIGMA says, or less) to 1 (as wrong, or more)."""
        if self._memory.measured < _BY_CLOCK:
            return 0.0
        return float(np.clip(2 * self._memory.surprise / PRIOR_SIGMA - 1, 0.0, 1.0))

    @property
    def _pool(self) -> Pool:
        if self._made is None:
            rows = Rows.join([*self._leading(), self._stratified(np.random.default_rng(self._seed))]).distinct()
            self._made = Pool(rows, *self._space.described(rows))
        return self._made

    def _leading(self) -> list[Rows]:
        """The best rows by the clock, and a share for each plausible plan however the others do."""
        return [self._space.best(LEADING)[0], *(self._space.best_of_plan(plan) for plan in self._space.plausible)]

    def _stratified(self, rng: np.random.Generator) -> Rows:
        """Rows of each plausible plan from all parts of the clock's range: of a random sample, one from each stratum of
        equal size."""
        parts = []
        for plan in self._space.plausible:
            ids, seconds = self._space.sampled(plan)
            count = min(len(seconds), max(8, _STRATIFIED // len(self._space.plausible)))
            edges = np.linspace(0, len(seconds), count + 1).astype(np.int64)
            chosen = np.argsort(seconds, kind="stable")[rng.integers(edges[:-1], edges[1:])]
            parts.append(Rows.of(plan, ids[chosen]))
        return Rows.join(parts)

    def _ranked(self, rng: np.random.Generator) -> Rows:
        """Free rows of the pool and free mutants of its leaders, best first; a mutant may also be in the pool."""
        pool = self._pool
        rank = self._model.predict(pool.features, pool.analytic_s).lower(_QUANTILE_Z)
        order = np.argsort(rank, kind="stable")
        rows, score = pool.rows.take(order), rank[order]
        parents = Rows.join([rows.take(np.arange(min(_LEADERS, len(rows)))), self._memory.fastest(_LEADERS // 4)])
        chosen = rng.integers(0, len(parents), _MUTANTS)
        mutants = self._space.mutate(parents.take(chosen), rng).distinct()
        guess = self._model.predict(*self._space.described(mutants))
        rows, score = Rows.join([rows, mutants]), np.concatenate([score, guess.lower(_QUANTILE_Z)])
        rows = rows.take(np.argsort(score, kind="stable"))
        return rows.take(self._memory.free(rows))

    def _batch(self, ranked: Rows, n: int, new: int) -> Rows:
        """The `n` best rows that are apart from each other, the first `new` places for plans never tried."""
        shortlist = ranked.take(np.arange(min(len(ranked), _SHORTLIST * max(n, 1))))
        firsts = [int(np.argmax(ranked.plan == plan)) for plan in (self._untried(ranked)[:new] if new else ())]
        rows = Rows.join([ranked.take(firsts), shortlist]).distinct()
        decisions = self._space.decisions(rows)
        chosen: list[int] = list(range(len(firsts)))
        for apart in range(_APART, -1, -1):
            for i in range(len(rows)):
                if len(chosen) >= n:
                    break
                if i not in chosen and self._is_apart(rows, decisions, i, chosen, apart):
                    chosen.append(i)
        return rows.take(chosen)

    @staticmethod
    def _is_apart(rows: Rows, decisions: npt.NDArray[np.int64], i: int, chosen: list[int], apart: int) -> bool:
        if not chosen:
            return True
        same = rows.plan[chosen] == rows.plan[i]
        distance = np.count_nonzero(decisions[chosen] != decisions[i], axis=1)
        return bool(np.all(~same | (distance >= apart)))

    def _tied(self, ranked: Rows) -> int:
        """How many plans never tried the clock can hardly tell from the best one."""
        if not (untried := self._untried(ranked)):
            return 0
        best = float(self._space.best(1)[1][0])
        return sum(float(self._space.best(1, plan)[1][0]) <= _TIED * best for plan in untried)

    def _untried(self, ranked: Rows) -> list[int]:
        """Plausible plans without a proposal so far that are among these rows, fastest by the clock first."""
        present = set(np.unique(ranked.plan).tolist())
        return [plan for plan in self._space.plausible if plan in present and not self._memory.tried(plan)]
