"""How fast one million rows go through legality, clock, features and XGBoost, on a synthetic repetition of a space."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

ROWS = 1_000_000


@dataclass
class Scoring:
    """Seconds for ROWS rows by step; `space` names the plan."""

    rows: int
    space: str
    legality_s: float
    clock_s: float
    features_s: float
    model_s: float

    @property
    def total_s(self) -> float:
        return self.legality_s + self.clock_s + self.features_s + self.model_s

    def line(self) -> str:
        parts = {
            "legality": self.legality_s,
            "clock": self.clock_s,
            "features": self.features_s,
            "XGBoost": self.model_s,
        }
        split = ", ".join(f"{k} {v:.2f}" for k, v in parts.items())
        return f"scoring {self.rows:,} rows of {self.space}: {self.total_s:.2f} s (asked 10): {split}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"total_s": self.total_s}


def score_rows() -> Scoring:
    """Legality is masked row by row here, as for rows that do not come from enumeration."""
    import numpy as np

    from autosched import api
    from autosched.costmodel.analytic.clock import clock
    from autosched.costmodel.features import FeatureSchema, feature_table
    from autosched.costmodel.learned.learned import ResidualModel
    from autosched.costmodel.protocol import Samples
    from autosched.search.request import TuneRequest
    from autosched.search.tuning.tune import plans_of

    request = TuneRequest(api.workload("matmul", m=512, n=512, k=512, a="f32", b="f32"), api.target("x86-avx512"))
    _, plans = plans_of(request)
    plan = max(plans, key=lambda p: p.space.size)
    legal = plan.space.enumerate().ids
    ids = np.resize(legal, ROWS)
    raw = np.random.default_rng(0).integers(0, plan.space.size, ROWS)
    started = time.perf_counter()
    plan.space.legal(raw)
    masked = time.perf_counter()
    block = 1 << 15
    terms = [clock(plan, plan.space.values(ids[i : i + block])) for i in range(0, ROWS, block)]
    analytic = np.concatenate([t["total"] for t in terms])
    scored = time.perf_counter()
    tables = [
        feature_table(plan, ids[i : i + block], plan.space.values(ids[i : i + block]), t)
        for i, t in zip(range(0, ROWS, block), terms, strict=True)
    ]
    features = FeatureSchema.union(tables[:1]).stack(tables)
    featured = time.perf_counter()
    model = ResidualModel(seed=0, threads=2)
    some = np.arange(64) * (ROWS // 64)
    noise = np.random.default_rng(0).lognormal(sigma=0.1, size=64)
    model.fit(Samples(features.take(some), analytic[some], analytic[some] * noise, ("ok",) * 64))
    fitted = time.perf_counter()
    model.predict(features, analytic)
    done = time.perf_counter()
    return Scoring(ROWS, plan.name, masked - started, scored - masked, featured - scored, done - fitted)
