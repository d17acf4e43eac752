"""Runs of the tuning loop on a synthetic device: shared by the tests of studies."""

from __future__ import annotations

from collections import Counter
from typing import Any

from conformance.synthetic import SyntheticDevice, clock, make_plan, record

from autosched.search import Event, Result, SearchSpace, Stopwatch, Study, open_study, run

PLANS = [make_plan("a", tiles=4), make_plan("b", 1.3, tiles=4)]
SPACE = SearchSpace(PLANS, clock)


def tune(
    trials: int = 20,
    device: SyntheticDevice | None = None,
    store: Any = None,
    timeout_s: float | None = None,
    strategy: str = "random",
    space: SearchSpace = SPACE,
    seed: int = 0,
    **options: Any,
) -> tuple[Result, Study, list[Event]]:
    device = device or SyntheticDevice()
    events: list[Event] = []
    watch = Stopwatch(device.clock)
    study = open_study(record(seed=seed), space, store, strategy_name=strategy, watch=watch)
    return run(study, device, trials, timeout_s, listener=events.append, **options), study, events


def kinds(events: list[Event]) -> dict[str, int]:
    return dict(Counter(type(e).__name__ for e in events))
