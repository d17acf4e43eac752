"""From a program to a tuned kernel: match, plan, open the study, run it. `autosched tune` calls this."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from autosched.costmodel.learned.pretrained import Earlier, Pretrained
from autosched.costmodel.registry import cost_model, load_soon
from autosched.device.checked import description_of
from autosched.device.correctness.violations import measured_on
from autosched.device.protocol import Aside, Device, Foresees, RunsFew, RunsLoops
from autosched.device.registry import device as open_device
from autosched.errors import NoScheduleError
from autosched.ir.work import operations
from autosched.machine.host import host_features
from autosched.machine.offered import offered, refuse_absent
from autosched.machine.target import Target
from autosched.search.events import (
    Event,
    Listener,
    Matched,
    NearMiss,
    NotPlanned,
    NotRunWhole,
    Scored,
    StudyOpened,
    Unplanned,
    WithoutEffect,
)
from autosched.search.request import TuneRequest
from autosched.search.space import recorded
from autosched.search.space.answer_cache import AnswerCache, answers_key
from autosched.search.space.answer_checks import fitting
from autosched.search.space.scored_space import space_of
from autosched.search.space.space import SearchSpace
from autosched.search.stopping import Outlook
from autosched.search.stopwatch import Stopwatch, TimedModel
from autosched.search.strategy.memory import has_clock
from autosched.search.tuning.baseline import Baseline, measure_baseline
from autosched.search.tuning.deadline import CHOOSING, Deadline, OutOfTime, briefly
from autosched.search.tuning.differences import differences
from autosched.search.tuning.fallbacks import with_fallbacks
from autosched.search.tuning.identity import study_record
from autosched.search.tuning.loop import BATCH, Result, run
from autosched.search.tuning.study import Study, open_study
from autosched.search.tuning.user_schedules import candidate_of, without_effect
from autosched.store.protocol import Store
from autosched.store.records import StudyRecord
from autosched.tensorize.explanation.forms import Form, better_forms
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Match
from autosched.tensorize.spec.catalogue import Catalogue, is_own
from autosched.tiling.planner.families import DEFERRED, family_of, not_planned, weaker_levels, why_not_deferred
from autosched.tiling.planner.plan_program import Planned, plan_program
from autosched.tiling.planner.rejections import by_reason, rejections, unplanned
from autosched.tiling.plans.plan import Plan

BOUND_S = 0.3
"""The least time that the space's lower bound gets, where less of a run's time is left."""
LOOPS_SHARE = 0.1
"""The part of a run's time that the loops as written may take, where there is a limit."""
FORMS_S = 10.0
"""The most time that the search for forms of the program may take."""


@dataclass(frozen=True)
class Tuning:
    """A study ready to run: its parts, for those who run the loop by hand."""

    request: TuneRequest
    study: Study
    device: Device
    matches: tuple[Match, ...]
    plans: tuple[Plan, ...]
    watch: Stopwatch
    baseline: Baseline | None = None
    meanwhile: Iterable[None] = ()
    """Work that the first proposals do not need: `run` does it while something is measured."""
    keep: Callable[[], None] = lambda: None
    """Has the store keep the space's answers (`search.space.answer_cache`)."""
    deadline: Deadline = field(default_factory=lambda: Deadline(None))
    """When the run is to end."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """See `Planned.left_out`."""

    @property
    def peak(self) -> tuple[str, float] | None:
        """See `peak_of`."""
        return peak_of(self.request, self.matches)

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """Rewrites of stages that fit no instruction of the target as written; none where the run's time is over, or
        where finding them takes longer than `FORMS_S`."""
        if not self.matches:
            return ()
        request = self.request
        asked = usable(request.catalogue, request.target, request.device, request.only)

        def found() -> tuple[Form, ...]:
            return tuple(better_forms(self.matches[0].program, self.matches, asked, request.numerics))

        return self.deadline.within(FORMS_S, found) or ()

    @cached_property
    def lower_bound_s(self) -> float | None:
        """See `SearchSpace.lower_bound_s`; None for another objective, where the clock does not tell rows apart, and
        where no time was left to work it out."""
        if self.request.objective != "latency" or not has_clock(self.study.space):
            return None
        left_s = self.deadline.left_s
        if left_s == 0.0 and threading.current_thread() is not threading.main_thread():
            return None  # no alarm comes there
        try:
            with Deadline(None if left_s is None else max(left_s, BOUND_S)):
                found = self.study.space.lower_bound_s
                self.keep()
                return found
        except NoScheduleError:
            return None


def peak_of(request: TuneRequest, matches: Sequence[Match]) -> tuple[str, float] | None:
    """The fastest matched intrinsic whose rate the target knows, and its operations a second on the threads allowed.
    Only of those that add up: how many operations one that overwrites its target stands for, each program says anew."""
    target = request.target
    rates = {
        m.intrinsic.name: m.intrinsic.operations * target.rates[m.intrinsic.name] * target.clock_hz * request.threads
        for m in matches
        if m.intrinsic.name in target.rates
        and m.intrinsic.accumulates
        and (m.verdict == "match" or (m.verdict == "conditional" and request.conditions != "refuse"))
    }
    return max(rates.items(), key=lambda item: item[1]) if rates else None


def usable(catalogue: Catalogue, target: Target, device: str, only: Sequence[str] = ()) -> tuple[Intrinsic, ...]:
    """Intrinsics that the target has and the device can run. Raises UnknownNameError for a glob without a match,
    UsageError where the target has none of those asked for."""
    isas = target.isa, "portable"
    chosen = catalogue.select(only) if only else catalogue.of_isa(*isas, features=target.features, kind="compute")
    needed = target.backend.compiles if device in ("auto", target.backend.device) else ""
    found = [i for i in offered(chosen, target) if i.kind == "compute" and (not needed or needed in i.emit)]
    if only and not found:
        raise refuse_absent(chosen, target)
    return tuple(found)


def prepare(
    request: TuneRequest,
    listener: Listener | None = None,
    clock: Callable[[], float] = time.monotonic,
    warm: bool = False,
) -> Tuning:
    """Everything up to the first measurement. With `warm`, the device gets ready beside it where it can, and what the
    first proposals do not wait for is left to `run` (`Tuning.meanwhile`). Raises what its parts raise: usage, store and
    missing-device errors."""
    options: dict[str, Any] = {"threads": request.threads, "seed": request.seed, "cache": request.cache}
    if request.objective != "latency":  # which only the simulator knows of
        options["objective"] = request.objective
    if request.emulate:
        options["emulate"] = True
    if request.noise is not None:
        options["noise"] = request.noise
    device = open_device(request.device, request.program, request.target, **options)  # first: it says what is missing
    limit_loops(device, request.timeout_s)
    if (recording := getattr(device, "recording", None)) is not None:
        request = replace(request, target=recorded.target_of(recording))
    try:
        if warm and isinstance(device, Aside):
            device.warm()
        tuning = _laid_out(request, device, listener or (lambda event: None), Stopwatch(clock), warm)
        if not warm:
            deque(tuning.meanwhile, 0)
    except BaseException:
        device.close()
        raise
    on = measured_on(request.program, tuning.plans)
    if on is request.program:
        return tuning
    device.close()  # it has measured nothing yet: one that draws its data within the conditions takes its place
    device = open_device(request.device, on, request.target, **options)
    limit_loops(device, request.timeout_s)
    return replace(tuning, device=device)


def limit_loops(device: object, timeout_s: float | None) -> None:
    """A device that runs the loops as written may take a part of a run's time for them, where there is a limit."""
    if timeout_s is not None and isinstance(device, RunsLoops):
        device.plain_s = min(device.plain_s, LOOPS_SHARE * timeout_s)


def _laid_out(request: TuneRequest, device: Device, emit: Listener, watch: Stopwatch, warm: bool) -> Tuning:
    """Match, plans, space and study, for a device that is open."""
    recording = getattr(device, "recording", None)
    with watch.phase("match"):
        found = planned(request) if recording is None else Planned((), tuple(recorded.plans_of(recording)), ())
        matches, plans = list(found.matches), list(found.plans)
    verdicts: dict[str, tuple[str, int]] = {}
    for m in matches:  # one an intrinsic and stage: what fits any stage fits
        if verdicts.get(m.intrinsic.name, ("no", 0))[0] != "match":
            verdicts[m.intrinsic.name] = m.verdict, m.mapping_count
    described = description_of(device)
    if described.get("kind") == "cpu":
        _refuse_wrong_texts(plans)
    if warm and plans and isinstance(device, Foresees):
        device.foresee(plans[0])  # what is best at first sight is likely to be measured first
    if recording is None:
        used = tuple(dict.fromkeys(m.intrinsic.name for plan in plans for m in plan.mappings))
        emit(Matched(verdicts, watch.seconds()["match"], peak_of(request, matches), used))
        emit(NotPlanned(lambda: by_reason(rejections(matches, plans, request.target, request.conditions))))
        asked = {m.intrinsic.name for m in matches if request.only or is_own(m.intrinsic)}
        for stage, (names, why) in unplanned(matches, plans, request.target, request.conditions, asked).items():
            emit(Unplanned(stage, names, why))
    record = study_record(request, described, plans)
    with watch.phase("search"):
        key = answers_key(record, plans, request.seed)
        known = request.store if not request.fresh and recording is None else None
        kept = fitting(AnswerCache.of(known, record.name, key), plans)
        if recording is None:
            space = space_of(plans, objective=request.objective, seed=request.seed, kept=kept)
        else:
            space = recorded.space_of(recording, seed=request.seed)
        refuse_empty(space)
    if request.emulate and isinstance(device, RunsFew) and (said := _too_large(device, space)):
        emit(NotRunWhole(said))
    user_schedules = [candidate_of(schedule, space) for schedule in request.user_schedules]
    for schedule, candidate in zip(request.user_schedules, user_schedules, strict=True):
        if changed := without_effect(schedule, candidate):
            emit(WithoutEffect(changed))
    _say_near_miss(request, record, emit)
    study = open_study(
        record,
        space,
        request.store,
        strategy_name=request.strategy,
        model_name=request.cost_model,
        fresh=request.fresh,
        threads=1 if isinstance(device, Aside) and device.aside else 2,  # the other core measures
        builder=getattr(device, "callable", None),
        watch=watch,
        earlier=_earlier(request, record.name),
    )
    if user_schedules:
        study.first(user_schedules)
    keep = partial(kept.keep, request.store if recording is None else None, record.name, key)
    meanwhile = _meanwhile(request, space, watch, emit, keep)
    parts = request, study, device, found.matches, found.plans, watch
    return Tuning(*parts, meanwhile=meanwhile, keep=keep, left_out=found.left_out)


def _too_large(device: RunsFew, space: SearchSpace) -> str:
    """What a device says of the best row by the clock, before anything is built."""
    rows, _ = space.best(1)
    return next((device.too_large(c) for c in space.candidates(rows)), "")


def _refuse_wrong_texts(plans: Sequence[Plan]) -> None:
    """SpecError for an instruction of one's own whose LLVM text does not compute what its semantics say: candidates are
    compared on random data, which few corner values are in."""
    own = [i for plan in plans for part in plan.tensor_parts if is_own(i := part.nest.intrinsic)]
    if own:
        from autosched.tensorize.check.own import doubtful_llvm, refuse_wrong  # few have instructions of their own

        list(refuse_wrong(doubtful_llvm(own, host_features())))


def _meanwhile(
    request: TuneRequest, space: SearchSpace, watch: Stopwatch, emit: Listener, keep: Callable[[], None]
) -> Iterator[None]:
    """Load what the model learns with; lay out and score the whole space, a piece at a time, and keep that."""
    if request.trials > BATCH:  # else nothing is learnt
        load_soon(request.cost_model)
        yield
    yield from space.prepared()
    keep()
    yield
    plans, near = len(space.plans), len(space.plausible)
    emit(Scored(plans, near, space.legal, space.rows_in_all, space.rejected, watch.seconds()["search"]))


def tune(
    request: TuneRequest, listener: Listener | None = None, deadline: Deadline | None = None
) -> tuple[Tuning, Result]:
    """Prepare and run. The device is closed whatever happens; the study stays usable (`study.best.build()`).

    All of it ends with the request's `timeout_s`, or at the `deadline` that the caller has entered before.
    """
    if deadline is None:
        with Deadline(request.timeout_s) as own:
            return tune(request, listener, own)
    telling = _Telling(deadline, listener)
    deadline.doing = "matching"
    tuning = replace(prepare(request, telling, warm=True), deadline=deadline)
    deadline.tuning = tuning
    try:
        work = operations(request.program)
        result = run(
            tuning.study,
            tuning.device,
            request.trials,
            None if deadline.left_s is None else tuning.watch.elapsed_s + max(deadline.left_s, 1e-3),
            listener=telling,
            operations=work,
            goals=request.goals,
            outlook=outlook_of(tuning) if request.goals.least_gain is not None else None,
            meanwhile=tuning.meanwhile,
            deadline=deadline,
        )
        if result.reason != "interrupted" and not deadline.over:
            with tuning.watch.phase("measure"), suppress(OutOfTime):
                deadline.again()
                built_s = max(t.measurement.costs_s.get("build", 0.0) for t in tuning.study.trials)
                found = measure_baseline(request.program, request.target, tuning.device, built_s, result.best)
                tuning = replace(tuning, baseline=found)
                deadline.met()
            result = replace(result, seconds=tuning.watch.seconds())
    finally:
        deadline.met()
        tuning.keep()
        with briefly(when=deadline.end is not None):
            tuning.device.close()
    return tuning, result


@dataclass(frozen=True)
class _Telling:
    """A listener that has the deadline know what a run is doing before its first trial."""

    deadline: Deadline
    listener: Listener | None

    def __call__(self, event: Event) -> None:
        if isinstance(event, Matched):
            self.deadline.doing = "laying out the spaces"
        elif isinstance(event, StudyOpened):
            self.deadline.doing = CHOOSING
        if self.listener is not None:
            self.listener(event)


def outlook_of(tuning: Tuning) -> Outlook:
    """What is left to gain in the study, by the model that the request names; it knows the trials so far."""
    study, request = tuning.study, tuning.request
    model, earlier = cost_model(request.cost_model, study.seed), _earlier(request, study.name)
    if earlier is not None:
        model = Pretrained(model, earlier, study.seed)
    outlook = Outlook(study.space, TimedModel(model, tuning.watch), study.seed)
    outlook.observe(study.searched)
    return outlook


def _earlier(request: TuneRequest, study: str) -> Earlier | None:
    others = [e for e in request.earlier if study not in e.studies]
    return Earlier.join(others) if others else None


def plans_of(request: TuneRequest) -> tuple[list[Match], list[Plan]]:
    """The request's matches and plans; those with checks have a fallback."""
    found = planned(request)
    return list(found.matches), list(found.plans)


def planned(request: TuneRequest) -> Planned:
    """What planning makes of a request; plans with checks have a fallback."""
    intrinsics = usable(request.catalogue, request.target, request.device, request.only)
    found = plan_program(
        request.program,
        request.target,
        request.catalogue,
        intrinsics,
        numerics=request.numerics,
        conditions=request.conditions,
        threads=request.threads,
        families=request.families,
    )
    if not found.plans and request.families:
        raise _no_family(request, found)
    return replace(found, plans=tuple(with_fallbacks(found.plans, found.every)))


def _no_family(request: TuneRequest, found: Planned) -> NoScheduleError:
    """Why there is no plan of the families that were asked for, and which others there are."""
    asked = request.program, request.target, request.numerics
    reasons = {n: why for n, why in not_planned(*asked, found.left_out, request.threads) if n in request.families}
    reasons |= {n: f"it needs --numerics {level}" for n, level in weaker_levels(*asked) if n in request.families}
    if DEFERRED in request.families and DEFERRED not in reasons:
        reasons[DEFERRED] = why_not_deferred(*asked)
    said = "; ".join(f"{n}: {reasons.get(n, 'the program gives no reason for one')}" for n in request.families)
    there = ", ".join(dict.fromkeys(family_of(p) for p in found.every))
    return NoScheduleError(f"no plan is of a family asked for ({said})", hint=f"there are plans of: {there}")


def refuse_empty(space: SearchSpace) -> None:
    """NoScheduleError where no plan has a legal row, with the rules that leave each of them without one."""
    if not space.empty:
        return
    lines = []
    for plan in (entry.plan for entry in space.plans):
        found = plan.space.explain()
        lines.append(f"{plan.name}: {found if found is not None else 'no legal row'}")
    said = "\n".join(["no plan has a legal schedule", *lines])
    raise NoScheduleError(said, hint="`autosched targets show` has the limits; -i tries others")


def _say_near_miss(request: TuneRequest, record: StudyRecord, emit: Listener) -> None:
    """Where the study is new, and one of the very same program differs from it in other fields of its key only."""
    near = getattr(request.store, "near_misses", None)
    stored = _studies(request.store)
    if near is None or record.name in stored:
        return
    for similar in near(record.key):
        if "program" not in similar.fields:
            emit(NearMiss(similar.name, differences(stored[similar.name], record)))
            return


def _studies(store: Store | None) -> dict[str, StudyRecord]:
    return {record.name: record for record in store.studies()} if store else {}
