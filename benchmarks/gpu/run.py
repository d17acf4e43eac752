"""On the card: build every candidate of a bundle, measure it in a worker, then the best of each case against the
libraries, interleaved. Results are written after each case."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from autosched.device.cuda.bench import Ready
from autosched.device.cuda.builder import CudaBuilder, Source
from autosched.device.cuda.client import Client
from autosched.device.cuda.data import POISONS, Data, numpy_dtype, write_wants
from autosched.device.cuda.driver import Card
from autosched.device.cuda.nvrtc import CompileError, Cubin
from autosched.device.job import Effort, Outcome
from autosched.device.timing import batch
from benchmarks.gpu import peers as libraries
from benchmarks.gpu.bundle import Bundle, Compared, Entry, Problem, Recorded, save

SEARCH = Effort(fewest=4, most=10, sample_s=5e-4, budget_s=0.01, cold=True)
ROUND_S = 1e-3
DEADLINE_S = 15.0
FINALISTS, ROUNDS = 3, 15
SLOWER, ROUGH = 3.0, 1.3
Say = Callable[[str], None]


def run(bundle: Bundle, out: Path, limit_s: float, say: Say = print, compare: bool = True) -> list[Recorded]:
    """Measure a bundle's cases in order until `limit_s` is over; recordings go to the file `out`."""
    began = time.monotonic()
    client = Client()
    facts = client.facts()
    builder = CudaBuilder(newest=facts.driver, processes=max(1, len(os.sched_getaffinity(0)) - 1))
    done: list[Recorded] = []
    with ThreadPoolExecutor(1) as ahead, tempfile.TemporaryDirectory(dir=_memory_folder()) as folder:
        built = [ahead.submit(build, builder, bundle, problem) for problem in bundle.problems]
        try:
            for problem, waiting in zip(bundle.problems, built, strict=True):
                if time.monotonic() - began > limit_s:
                    say(f"{problem.name}: no time left")
                    continue
                clock = time.monotonic()
                made = waiting.result()
                outcomes = measured(client, bundle, problem, made, Path(folder))
                client.close()  # its memory is wanted
                took_s = time.monotonic() - clock
                if compare:
                    l2_bytes = facts.limits["l2_bytes"]
                    done.append(finals(bundle, problem, outcomes, made, Path(folder), l2_bytes, took_s))
                else:
                    done.append(Recorded(problem.name, tuple(outcomes), seconds=took_s))
                save(out, done)
                say(done[-1].line(problem))
        finally:
            for future in built:
                future.cancel()
            client.close()
            builder.close()
    return done


def _memory_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def build(builder: CudaBuilder, bundle: Bundle, problem: Problem) -> dict[int, Cubin | CompileError]:
    """What each candidate's text compiles to, by its number."""
    wanted = [e for e in problem.entries if e.text]
    sources = [Source(e.text, e.arch, {h: bundle.headers[h] for h in e.headers}) for e in wanted]
    return dict(zip((e.number for e in wanted), builder.build_all(sources), strict=True))


def measured(
    client: Client, bundle: Bundle, problem: Problem, made: Mapping[int, Cubin | CompileError], folder: Path
) -> list[Outcome]:
    """The outcome of each candidate, in order, on the problem's data (written to `folder` first)."""
    _write(bundle, problem, folder)
    client.use(folder, problem.tensors, problem.samples)
    outcomes: list[Outcome] = []
    best_s: float | None = None
    for entry in problem.entries:
        outcome = _measured(client, entry, made.get(entry.number), best_s)
        if outcome.status == "ok":
            time_s = median(outcome.samples_s)
            best_s = time_s if best_s is None else min(best_s, time_s)
        outcomes.append(outcome)
    return outcomes


def finals(
    bundle: Bundle,
    problem: Problem,
    outcomes: Sequence[Outcome],
    made: Mapping[int, Any],
    folder: Path,
    l2_bytes: int,
    seconds: float,
) -> Recorded:
    """The recording of a case whose candidates are measured, with its rounds against the libraries."""
    _write(bundle, problem, folder)
    rounds = _rounds(problem, outcomes, made, folder, l2_bytes)
    return Recorded(problem.name, tuple(outcomes), rounds, libraries.versions(), seconds)


def _write(bundle: Bundle, problem: Problem, folder: Path) -> None:
    for old in folder.iterdir():
        old.unlink()
    for t in problem.tensors:
        if t.input:
            np.resize(bundle.runs[problem.runs[t.name]], prod(t.shape)).tofile(folder / f"{t.name}.in")
    kinds = {t.name: numpy_dtype(t.dtype) for t in problem.tensors if t.output}
    write_wants(folder, kinds, problem.wants, problem.tolerances)


def _measured(client: Client, entry: Entry, made: Cubin | CompileError | None, best_s: float | None) -> Outcome:
    if made is None or isinstance(made, CompileError):
        return Outcome("build", message=entry.error if made is None else made.message)
    taken = {"kernels": {n: asdict(r) for n, r in made.kernels.items()}, "warnings": list(made.warnings)}
    limit = None if best_s is None else SLOWER * best_s
    rough = None if best_s is None else ROUGH * best_s
    effort = replace(SEARCH, slower_than_s=limit, rough_above_s=rough)
    outcome = client.ask(DEADLINE_S, "measure", replace(entry.job, code=made.code), effort)
    assert isinstance(outcome, Outcome)
    return replace(outcome, extra=outcome.extra | taken)


def _rounds(
    problem: Problem, outcomes: Sequence[Outcome], made: Mapping[int, Any], folder: Path, l2_bytes: int
) -> tuple[Compared, ...]:
    """The fastest candidates and every library, in turn, in this process: all were seen to work."""
    ranked = sorted((median(o.samples_s), i) for i, o in enumerate(outcomes) if o.status == "ok")[:FINALISTS]
    card = Card()
    data = Data(card, folder, problem.tensors, problem.samples)
    size = data.bytes
    competitors: dict[str, Callable[[int], float]] = {}
    failed: list[Compared] = []
    held: list[Ready] = []
    try:
        for _, i in ranked:
            entry = problem.entries[i]
            sets = max(2, min(-(-2 * l2_bytes // size) + 1, 64))
            ready = Ready(card, data, replace(entry.job, code=made[entry.number].code), sets)
            held.append(ready)
            ready.prepare()
            ready.check(POISONS[0])
            ready.spread()
            competitors[f"ours {i}"] = ready
        asked = libraries.Asked(problem.peer, problem.dtype, problem.sizes, size, l2_bytes)
        for peer in libraries.peers(asked):
            if isinstance(peer, tuple):
                failed.append(Compared(peer[0], error=peer[1]))
            else:
                competitors[peer.name] = peer
        return (*_interleaved(competitors, failed), *failed)
    finally:
        for ready in held:
            ready.close()
        data.close()
        competitors.clear()
        _empty_cache()


def _interleaved(competitors: dict[str, Callable[[int], float]], failed: list[Compared]) -> list[Compared]:
    effort = Effort(sample_s=ROUND_S)
    times: dict[str, int] = {}
    for name, run_it in competitors.items():
        try:
            run_it(1)
            times[name] = batch(run_it(4) / 4, effort)
            run_it(times[name])
        except Exception as error:  # a library may refuse to be recorded
            failed.append(Compared(name, error=f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"))
    seconds: dict[str, list[float]] = {n: [] for n in times}
    for _ in range(ROUNDS):
        for name, count in times.items():
            seconds[name].append(competitors[name](count) / count)
    return [Compared(n, tuple(s)) for n, s in seconds.items()]


def _empty_cache() -> None:
    import torch

    torch.cuda.empty_cache()
