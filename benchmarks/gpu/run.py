"""On the GPU: build every candidate of a bundle, measure it in a worker, then the best of each case against the
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

from autosched.device.correctness.wants import write_wants
from autosched.device.cpu.data import numpy_dtype
from autosched.device.cuda.client import Client
from autosched.device.cuda.comparing import TEXT, Comparer
from autosched.device.cuda.compile.builder import CudaBuilder, TranslationUnit
from autosched.device.cuda.compile.nvrtc import Cubin, CudaCompileError
from autosched.device.cuda.data import CudaData
from autosched.device.cuda.driver import Card
from autosched.device.cuda.launch_job import CudaJob
from autosched.device.job import Effort, Outcome
from benchmarks.gpu import peers as libraries
from benchmarks.gpu.bundle import Bundle, Entry, Problem, Recorded, save
from benchmarks.gpu.finals import Finals

SEARCH = Effort(fewest=4, most=10, sample_s=5e-4, budget_s=0.01, cold=True)
DEADLINE_S = 15.0
COMPARING = -1000
"""The number of what compares outputs among what is compiled."""
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
                made = waiting.result()
                clock = time.monotonic()
                outcomes = measured(client, bundle, problem, made, Path(folder))
                client.close()  # its memory is wanted
                took_s = time.monotonic() - clock
                if compare:
                    l2_bytes = facts.limits["l2_bytes"]
                    given = (made, Path(folder), l2_bytes, took_s, client.referred)
                    done.append(finals(bundle, problem, outcomes, *given))
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


def build(builder: CudaBuilder, bundle: Bundle, problem: Problem) -> dict[int, Cubin | CudaCompileError]:
    """What the text of each candidate, of the plain kernel, of loops and of the comparison compiles to, by its
    number."""
    wanted = [e for e in (*problem.entries, problem.plain, *(loop.entry for loop in problem.loops)) if e and e.text]
    sources = [TranslationUnit(e.text, e.arch, {h: bundle.headers[h] for h in e.headers}) for e in wanted]
    numbers = [e.number for e in wanted]
    if wanted:
        sources.append(TranslationUnit(TEXT, wanted[0].arch))
        numbers.append(COMPARING)
    return dict(zip(numbers, builder.build_all(sources), strict=True))


def comparing(made: Mapping[int, Cubin | CudaCompileError]) -> bytes:
    """The machine code that compares outputs on the GPU; nothing where there is none."""
    found = made.get(COMPARING)
    return found.code if isinstance(found, Cubin) else b""


def measured(
    client: Client, bundle: Bundle, problem: Problem, made: Mapping[int, Cubin | CudaCompileError], folder: Path
) -> list[Outcome]:
    """The outcome of each candidate, in order, on the problem's data (written to `folder` first). What the fastest
    write is compared whole with what the plain kernel writes; `client.referred` says whether there was one."""
    _write(bundle, problem, folder)
    client.use(folder, problem.tensors, problem.samples, plain_job(problem, made), comparing(made))
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
    whole: bool,
) -> Recorded:
    """The recording of a case whose candidates are measured (in `seconds`), with its rounds against the libraries;
    `whole`: its plain kernel was seen to be right."""
    clock = time.monotonic()
    _write(bundle, problem, folder)
    card = Card()
    code = comparing(made)
    data = CudaData(card, folder, problem.tensors, problem.samples, Comparer(card, code) if code else None)
    last = Finals(card, data, problem, made, l2_bytes, plain_job(problem, made) if whole else None)
    try:
        rounds = last.rounds(outcomes)
    finally:
        data.close()
        _empty_cache()
    seconds += time.monotonic() - clock
    versions = libraries.versions()
    return Recorded(problem.name, last.corrected(outcomes), rounds, versions, seconds, bool(data.references))


def plain_job(problem: Problem, made: Mapping[int, Cubin | CudaCompileError]) -> CudaJob | None:
    """The plain kernel, ready to run; None where there is none that compiles."""
    code = None if problem.plain is None else made.get(problem.plain.number)
    return replace(problem.plain.job, code=code.code) if problem.plain and isinstance(code, Cubin) else None


def _write(bundle: Bundle, problem: Problem, folder: Path) -> None:
    for old in folder.iterdir():
        old.unlink()
    for t in problem.tensors:
        if t.input:
            np.resize(bundle.runs[problem.runs[t.name]], prod(t.shape)).tofile(folder / f"{t.name}.in")
    kinds = {t.name: numpy_dtype(t.dtype) for t in problem.tensors if t.output}
    write_wants(folder, kinds, problem.wants, problem.tolerances)


def _measured(client: Client, entry: Entry, made: Cubin | CudaCompileError | None, best_s: float | None) -> Outcome:
    if made is None or isinstance(made, CudaCompileError):
        return Outcome("build", message=entry.error if made is None else made.message)
    taken = {"kernels": {n: asdict(r) for n, r in made.kernels.items()}, "warnings": list(made.warnings)}
    limit = None if best_s is None else SLOWER * best_s
    rough = None if best_s is None else ROUGH * best_s
    effort = replace(SEARCH, slower_than_s=limit, rough_above_s=rough)
    outcome = client.ask(DEADLINE_S, "measure", replace(entry.job, code=made.code), effort)
    assert isinstance(outcome, Outcome)
    return replace(outcome, extra=outcome.extra | taken)


def _empty_cache() -> None:
    import torch

    torch.cuda.empty_cache()
