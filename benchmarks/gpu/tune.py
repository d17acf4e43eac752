"""Where a GPU and all of autosched are: every case tuned in rounds, and compared with the libraries at its end.

A process a case lays out its space, proposes, prints and learns; one thread measures what is compiled, case by case, so
that the GPU is never waited for while any case has candidates ready.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from autosched.device.cuda.client import Client
from autosched.device.cuda.compile.builder import CudaBuilder
from benchmarks.gpu.bundle import Bundle, Problem, Recorded, save
from benchmarks.gpu.cases import Case
from benchmarks.gpu.run import Say, build, finals, measured

LAYING_OUT = 12
"""Cases whose processes run at once: laying out a space holds a core for up to a minute."""


@dataclass
class Desk:
    """What all cases share: one GPU at a time, compilers, and the results so far."""

    builder: CudaBuilder
    client: Client
    folder: Path
    l2_bytes: int
    out: Path
    say: Say
    until: float
    card: threading.Lock = field(default_factory=threading.Lock)
    done: list[tuple[Bundle, Recorded]] = field(default_factory=list)


def tune(cases: Sequence[Case], store: str, trials: int, batch: int, out: Path, limit_s: float, say: Say) -> None:
    """`trials` candidates of each case in batches; bundles and recordings go to `out` after each case. No batch begins
    after `limit_s`."""
    from autosched.store.sqlite import SqliteStore

    with SqliteStore(store):  # made once, before processes open it at one time
        pass
    client = Client()
    facts = client.facts()
    builder = CudaBuilder(newest=facts.driver, processes=max(1, len(os.sched_getaffinity(0)) - 1))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, ThreadPoolExecutor(LAYING_OUT) as pool:
        desk = Desk(
            builder, client, Path(folder), facts.limits["l2_bytes"], out, say, time.monotonic() + limit_s
        )
        try:
            here = [replace(case, card=facts.name) for case in cases]
            for finished in [pool.submit(_tuned, desk, case, store, trials, batch) for case in here]:
                finished.result()
        finally:
            client.close()
            builder.close()


def _tuned(desk: Desk, case: Case, store: str, trials: int, batch: int) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_proposals, args=(theirs, case, store), daemon=True)
    process.start()
    theirs.close()
    whole: Bundle | None = None
    outcomes: list[Any] = []
    made: dict[int, Any] = {}
    right = False
    card_s = 0.0
    try:
        while len(outcomes) < trials and time.monotonic() < desk.until:
            ours.send(min(batch, trials - len(outcomes)))
            bundle: Bundle = ours.recv()
            (problem,) = bundle.problems
            if not problem.entries:
                break
            first = len(outcomes)
            entries = tuple(replace(e, number=first + e.number) for e in problem.entries)
            problem = replace(problem, entries=entries)
            made |= build(desk.builder, bundle, problem)
            whole = _joined(whole, bundle, problem)
            with desk.card:
                clock = time.monotonic()
                now = replace(problem, plain=whole.problems[0].plain)
                new = measured(desk.client, bundle, now, made, desk.folder)
                right = desk.client.referred
                card_s += time.monotonic() - clock
            outcomes += new
            ours.send(new)
    except (EOFError, OSError):
        desk.say(f"{case.name}: its process ended")
    finally:
        ours.close()
        process.join(5)
        process.kill()
    if whole is None:
        return
    problem = whole.problems[0]
    with desk.card:
        desk.client.close()
        recorded = finals(whole, problem, outcomes, made, desk.folder, desk.l2_bytes, card_s, right)
        desk.done.append((whole, recorded))
        save(desk.out, desk.done)
    desk.say(recorded.line(problem))


def _joined(whole: Bundle | None, bundle: Bundle, problem: Problem) -> Bundle:
    if whole is None:
        return replace(bundle, problems=(problem,))
    before = whole.problems[0]
    joined = replace(before, entries=(*before.entries, *problem.entries))
    return Bundle((joined,), {**whole.runs, **bundle.runs}, {**whole.headers, **bundle.headers})


def _proposals(connection: Connection[Any, Any], case: Case, store: str) -> None:
    """In the case's own process: told how many, answers a bundle; told outcomes, learns."""
    from autosched.device.cpu.rounds import measurement
    from autosched.device.protocol import Build
    from autosched.store.sqlite import SqliteStore
    from benchmarks.gpu.prepare import ceilings_of, data_of, plain_of, problem_of, study_of

    os.environ["OMP_NUM_THREADS"] = "2"
    with SqliteStore(store) as kept:
        study = study_of(case, kept)
        data = data_of(case, [entry.plan for entry in study.space.plans])
        headers: dict[str, str] = {}
        # These go with the first bundle.
        plain, loops = plain_of(case, headers), ceilings_of(case, [e.plan for e in study.space.plans], headers)
        while True:
            try:
                wanted = connection.recv()
            except EOFError:
                return
            chosen = study.ask(wanted)
            runs: dict[str, Any] = {}
            problem = replace(problem_of(case, data, chosen, runs, headers), plain=plain, loops=loops)
            connection.send(Bundle((problem,), runs, headers))
            plain, loops, headers = None, (), {}
            try:
                outcomes = connection.recv()
            except EOFError:
                return
            for candidate, outcome in zip(chosen, outcomes, strict=True):
                study.tell(candidate, measurement(Build(candidate), outcome, 0.0))
