"""Runs on recorded spaces shared among processes. A run is a function of recording, strategy and seed, so what comes
out does not depend on how many there are; only the seconds that strategies took to think do."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from autosched.errors import UsageError
from autosched.search.evaluate.compare import Played, RunDone, RunListener, contestants
from autosched.search.evaluate.given_models import ModelFactory
from autosched.search.evaluate.simulate import check, simulate, standing
from autosched.search.protocol import Factory
from autosched.store.recorded_space import RecordedSpace


@dataclass(frozen=True)
class Task:
    """One run of a strategy (by name) on a recording; with `thinking`, what it takes to think counts as time."""

    recording: RecordedSpace
    strategy: str
    model: str
    trials: int
    seed: int
    thinking: bool = False


def outcome(task: Task) -> Played:
    """Play a task here."""
    clock = time.monotonic if task.thinking else standing
    return simulate(task.recording, contestants([task.strategy], task.model), task.trials, [task.seed], clock=clock)


def outcomes(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[int, Played]]:
    """Each task's number and outcome, as they come. An error in one of them, and Ctrl-C, end all."""
    if jobs < 2:
        yield from enumerate(map(outcome, tasks))
        return
    pool = ProcessPoolExecutor(min(jobs, len(tasks) or 1), multiprocessing.get_context("spawn"), _alone)
    try:
        waiting = {pool.submit(outcome, task): number for number, task in enumerate(tasks)}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def simulate_in_processes(
    recording: RecordedSpace,
    strategies: Sequence[str | Factory],
    trials: int,
    seeds: Sequence[int],
    *,
    model: str | ModelFactory = "xgb",
    jobs: int = 2,
    thinking: bool = False,
    on_run: RunListener | None = None,
) -> Played:
    """As `search.evaluate.simulate.simulate`, in `jobs` processes of one thread each; the rows come in the same order.

    Raises what that raises, and UsageError for strategies that are not given by name."""
    names = [s for s in strategies if isinstance(s, str)]
    if len(names) < len(strategies):
        raise UsageError("only strategies with a name can run in processes of their own", hint="leave out `jobs`")
    if not isinstance(model, str):
        raise UsageError("only cost models with a name can run in processes of their own", hint="leave out `jobs`")
    chosen = contestants(names, model)
    check(recording, chosen)
    if trials < 1:
        raise UsageError(f"{trials} trials leave nothing to compare", hint="give 1 or more")
    tasks = [Task(recording, c.name, model, trials, seed, thinking) for c in chosen for seed in seeds]
    found: dict[int, Played] = {}
    for number, made in outcomes(tasks, jobs):
        found[number] = made
        if on_run is not None:
            task, best_s = tasks[number], made.rows[-1].best_s if made.rows else None
            on_run(RunDone(task.strategy, task.seed, len(made.rows), best_s, len(found), len(tasks)))
    ordered = [found[number] for number in range(len(tasks))]
    failure = next((o.failure for o in ordered if o.failure is not None), None)
    return Played(tuple(row for o in ordered for row in o.rows), failure)


def _alone() -> None:
    """In each process: Ctrl-C is the parent's business, and the processes are the parallelism."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(1)
