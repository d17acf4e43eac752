"""A stored study, one of its trials, and the kernel that the trial measured."""

from __future__ import annotations

from collections.abc import Sequence

from autosched.cli import inputs
from autosched.cli.output import talk
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.errors import NoScheduleError, StoreError, UsageError
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.search.request import TuneRequest
from autosched.search.tuning.identity import reopen
from autosched.search.tuning.tune import plans_of
from autosched.store.names import named
from autosched.store.ranking import ranked
from autosched.store.records import StudyRecord, Trial
from autosched.tiling.plans.plan import Plan

AGAIN = "tune again with --fresh"


def opened(study: str | None, store: str | None) -> tuple[StudyRecord, list[Trial]]:
    """A study and its trials: the one that `study` names (`store.names`), or the last one tuned that has a trial, which
    is then told, as is a later one without trials.

    Raises UsageError where several are named so, StoreError where none is (with the nearest) or none was tuned yet.
    """
    with inputs.open_store(store, read_only=True) as found:
        if study is None:
            name, empty = found.last_study(), found.last_empty()
            if name is None:
                none = f"{found.path} holds no study that has a trial" if empty else f"{found.path} holds no studies"
                raise StoreError(none, hint="tune something first, or give --store another path")
            talk().print(f"study  {name}   (the last one tuned)", soft_wrap=True, markup=False)
            if empty is not None:
                talk().print(f"note   {empty} was begun later and has no trials", soft_wrap=True, markup=False)
        else:
            name = named(study, found.studies()) or study
        return found.study(name), found.trials(name)


def picked(record: StudyRecord, trials: list[Trial], number: int | None) -> Trial:
    """The trial of that number (its last measurement), else the best one (`store.ranking`)."""
    if number is not None:
        numbered = [t for t in trials if t.number == number]
        if not numbered:
            hint = f"it has 1 to {max(t.number for t in trials)}" if trials else "it has none yet: tune it"
            raise UsageError(f"study {record.name!r} has no trial {number}", hint=hint)
        return numbered[-1]
    best = ranked(trials)
    if not best:
        raise NoScheduleError(f"study {record.name!r} has no candidate that came out right")
    return best[0]


def objective_of(record: StudyRecord) -> str:
    """What the study minimises."""
    return str(record.settings.get("objective", "latency"))


def kernel_of(record: StudyRecord, trial: Trial) -> Kernel:
    """Lower a stored trial again. Raises what `plan_of` raises."""
    plan = plan_of(record, trial)
    return lower(plan, plan.space.schedule(trial.row))


def plan_of(record: StudyRecord, trial: Trial) -> Plan:
    """The plan that a stored trial is a schedule of. Raises what `plan_in` raises."""
    return plan_in(plans_in(record), record, trial)


def plans_in(record: StudyRecord) -> list[Plan]:
    """The plans of a study, made again."""
    return plans_of(request_of(record))[1]


def plan_in(plans: Sequence[Plan], record: StudyRecord, trial: Trial) -> Plan:
    """The one of the study's plans that a trial is a schedule of. Raises StoreError where this version no longer has
    it, or where its space gives the row another meaning: the time is not that of the kernel that it would be now."""
    used = f"trial {trial.number} of {record.name!r} used"
    plan = next((p for p in plans if p.name == trial.plan), None)
    if plan is None:
        raise StoreError(f"{used} the plan {trial.plan!r}, which this version does not make", hint=AGAIN)
    if trial.row >= plan.space.size or plan.space.schedule(trial.row).named != trial.schedule:
        raise StoreError(f"{used} another version of the space of {trial.plan!r}", hint=AGAIN)
    return plan


def program_of(record: StudyRecord) -> Program:
    """The program as it was given, before any rewriting, with the data that were given with it."""
    return request_of(record).program


def target_of(record: StudyRecord) -> Target:
    """The machine that the study is for."""
    return request_of(record).target


def request_of(record: StudyRecord) -> TuneRequest:
    """The request that the study came from, as far as its plans depend on it."""
    return reopen(record, inputs.catalogue(record.settings.get("intrinsics", ())))
