"""Candidates of each case, proposed by its study and printed: what the GPU will build and measure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autosched.device.correctness.oracle import slack
from autosched.device.correctness.sampled import RUN, Sampled, sampled, tensors_of
from autosched.device.cuda.build import Printed, job_of, printed
from autosched.device.cuda.cards import TARGETS
from autosched.device.cuda.launch_job import CudaJob
from autosched.device.cuda.reference import plain_candidate
from autosched.ir import workload
from autosched.ir.oracle.slack import joined
from autosched.ir.work import operations
from autosched.machine.catalogue import load_target
from autosched.machine.target import Target
from autosched.search.request import TuneRequest
from autosched.search.space.scored_space import space_of
from autosched.search.tuning.identity import study_record
from autosched.search.tuning.study import Study, open_study
from autosched.search.tuning.tune import plans_of
from autosched.store.protocol import Store
from autosched.tiling.candidate import Candidate
from autosched.tiling.plans.plan import Plan
from benchmarks.gpu.bundle import Bundle, Entry, Loop, Problem
from benchmarks.gpu.cases import Case
from benchmarks.gpu.ceiling import loops_of

PLAIN = -1
"""The number of the plain kernel's entry."""
Say = Callable[[str], None]


def target_of(case: Case) -> Target:
    """The built-in target of the case's GPU."""
    return load_target(next(name for part, name in TARGETS.items() if part in case.card))


def described(case: Case) -> dict[str, str]:
    """What the device that is not here would say: a study's key holds it."""
    return {"name": "cuda", "kind": "cuda", "gpu": case.card, "cache": "cold"}


def request_of(case: Case, store: Store | None = None) -> TuneRequest:
    program = workload(case.workload, **case.sizes)
    target = target_of(case)
    more: dict[str, Any] = {"only": case.only, "numerics": case.numerics, "store": store}
    return TuneRequest(program, target, device="cuda", cache="cold", **more)


def study_of(case: Case, store: Store | None) -> Study:
    """The case's study, with the trials that were merged so far."""
    request = request_of(case, store)
    _, plans = plans_of(request)
    space = space_of(plans, seed=request.seed)
    record = study_record(request, described(case), plans)
    return open_study(record, space, store, strategy_name=request.strategy, model_name=request.cost_model)


def prepare(
    cases: Sequence[Case], store: Store, trials: int, at_random: int = 0, seed: int = 0, say: Say = print
) -> Bundle:
    """`trials` proposals of each case's study, and `at_random` uniform rows of its spaces, printed."""
    problems = []
    runs: dict[str, Any] = {}
    headers: dict[str, str] = {}
    for case in cases:
        chosen: list[Candidate] = []
        if trials or at_random:
            study = study_of(case, store)
            chosen = (study.ask(trials) if trials else []) + at_random_of(study, at_random, seed)
        problem = problem_of(case, data_of(case, [c.plan for c in chosen]), chosen, runs, headers)
        plain, loops = plain_of(case, headers), ceilings_of(case, [c.plan for c in chosen], headers)
        problems.append(replace(problem, plain=plain, loops=loops))
        errors = [e.error for e in problems[-1].entries if e.error]
        say(f"{case.name}: {len(chosen)} candidates" + (f", {len(errors)} not printed: {errors[0]}" if errors else ""))
    return Bundle(tuple(problems), runs, headers)


def at_random_of(study: Study, count: int, seed: int) -> list[Candidate]:
    """Uniform rows of the plan with the most rows among those worth it."""
    if not count:
        return []
    best = study.space.plans[study.space.plausible[0]].plan
    ids = np.unique(np.ravel(best.space.sample(count, np.random.default_rng(seed))))
    return [Candidate(best, int(i)) for i in ids]


def data_of(case: Case, plans: Sequence[Plan] = ()) -> Sampled:
    """Inputs, and the boxes of the outputs that are compared, as closely as the plans' instructions compute."""
    return sampled(request_of(case).program, 0, joined(slack(plan) for plan in plans))


def problem_of(
    case: Case, data: Sampled, chosen: Sequence[Candidate], runs: dict[str, Any], headers: dict[str, str]
) -> Problem:
    """The candidates printed, and all that measuring them takes; adds to the `runs` and `headers` of a bundle."""
    program = request_of(case).program
    named = {}
    for name, values in data.oracle.inputs.items():
        run = repeated(np.ascontiguousarray(values).reshape(-1))
        named[name] = hashlib.sha256(run.tobytes()).hexdigest()[:16]
        runs[named[name]] = run
    entries = [_entry(number, candidate, request_of(case).target, headers) for number, candidate in enumerate(chosen)]
    tensors, samples = tensors_of(program, data)
    return Problem(
        case.name,
        case.sizes,
        case.dtype,
        case.peer,
        operations(program),
        tensors,
        samples,
        named,
        dict(data.oracle.wants),
        dict(data.oracle.tolerances),
        tuple(entries),
    )


def repeated(values: NDArray[Any]) -> NDArray[Any]:
    """The run that the values repeat; all of them where they do not, as where neighbours are to differ."""
    run = values[:RUN]
    return run if np.array_equal(np.resize(run, len(values)), values) else values


def plain_of(case: Case, headers: dict[str, str]) -> Entry | None:
    """The case's plain kernel (`device.cuda.reference`), printed; None where there is none."""
    request = request_of(case)
    candidate = plain_candidate(request.program, request.target)
    return None if candidate is None else _entry(PLAIN, candidate, request.target, headers)


def ceilings_of(case: Case, plans: Sequence[Plan], headers: dict[str, str]) -> tuple[Loop, ...]:
    """Loops of the first plan's instruction, where a share of its ceiling is asked for."""
    return () if case.share is None or not plans else loops_of(plans[0], request_of(case).target, headers)


def _entry(number: int, candidate: Candidate, target: Target, headers: dict[str, str]) -> Entry:
    plan, row = candidate.plan.name, candidate.row
    try:
        text = printed(candidate, target)
    except Exception as error:  # a mistake of ours: it is to be seen in the results, and not to end them
        text = Printed(candidate, None, f"{type(error).__name__}: {error}", 0.0)
    if text.source is None:
        return Entry(plan, row, number, "", (), "", CudaJob(b"", ()), candidate.analytic_s, text.error)
    headers |= dict(text.source.headers)
    job = job_of(text.source.plan, b"", {})
    names = tuple(text.source.headers)
    return Entry(plan, row, number, text.source.text, names, text.source.plan.arch, job, candidate.analytic_s)
