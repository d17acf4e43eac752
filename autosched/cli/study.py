"""`autosched show`, `export`, `trials` and `studies`: what a store holds, and the kernels it stands for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from autosched.cli import options
from autosched.cli.output import answer, answer_json, seconds, speed, table
from autosched.codegen.c import print_c
from autosched.codegen.kernel import Kernel
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.codegen.text import print_kernel
from autosched.errors import NoScheduleError, StoreError, UsageError
from autosched.ir import parse
from autosched.ir.work import operations
from autosched.search.tune import plans_of, reopen
from autosched.store import codec
from autosched.store.exchange import schedule_json, write_trials
from autosched.store.records import StudyRecord, Trial
from autosched.store.sqlite import SqliteStore

StudyArg = Annotated[str, typer.Argument(metavar="STUDY", help="A study's name, as `autosched studies` lists it.")]
TrialOpt = Annotated[int | None, typer.Option("--trial", help="This trial instead of the best one.")]
VIEWS = ("all", "schedule", "loops", "c", "llvm", "key")


def show(
    study: StudyArg,
    trial: TrialOpt = None,
    view: Annotated[str, typer.Option("--as", help=f"One of {', '.join(VIEWS)}.")] = "all",
    store: options.StoreOpt = None,
    json: options.JsonOpt = False,
) -> None:
    """The best schedule of a study: the schedule, the loop tree and the C code."""
    if view not in VIEWS:
        raise UsageError(f"--as {view}: not one of {', '.join(VIEWS)}")
    with options.open_store(store, read_only=True) as opened:
        record, all_trials = _open(opened, study)
    if view == "key":
        answer_json(record.key)
        return
    chosen = _pick(record, all_trials, trial)
    kernel = kernel_of(record, chosen)
    if json:
        answer_json(
            {
                "study": record.name,
                "trial": codec.trial_to_dict(chosen),
                "loops": print_kernel(kernel),
                "c": print_c(kernel).source,
            }
        )
        return
    work = operations(parse(record.program))
    if view in ("all", "schedule"):
        time_s = chosen.measurement.time_s
        answer(f"{record.name}   trial {chosen.number}   {seconds(time_s)}   {speed(work, time_s)}")
        answer(f"plan  {chosen.plan}")
        answer("\n".join(f"  {k} = {v}" for k, v in chosen.schedule.items()))
    if view in ("all", "loops"):
        answer(("\n" if view == "all" else "") + print_kernel(kernel))
    if view in ("all", "c"):
        code = print_c(kernel)
        answer(("\n" if view == "all" else "") + code.source)
    if view == "llvm":
        answer(print_llvm(kernel))


def export(
    study: StudyArg,
    output: Annotated[Path, typer.Option("--output", "-o", help="FILE.c, FILE.json (schedule) or FILE.jsonl (trials).")],
    trial: TrialOpt = None,
    store: options.StoreOpt = None,
) -> None:
    """Write the best kernel as C with its header, its schedule as JSON, or all trials as JSON lines."""
    with options.open_store(store, read_only=True) as opened:
        record, all_trials = _open(opened, study)
    match output.suffix:
        case ".c" | ".h":
            name = output.stem
            code = print_c(replace(kernel_of(record, _pick(record, all_trials, trial)), name=name))
            _write(output.with_suffix(".h"), code.header)
            _write(output.with_suffix(".c"), code.source)
            answer(f"{output.with_suffix('.c')} {output.with_suffix('.h')}")
        case ".json":
            _write(output, schedule_json(record, _pick(record, all_trials, trial)))
            answer(str(output))
        case ".jsonl":
            write_trials(output, record, all_trials)
            answer(str(output))
        case other:
            raise UsageError(f"-o {output}: no format for {other or 'a name without an ending'!r}", hint=".c .json .jsonl")


def trials(study: StudyArg, store: options.StoreOpt = None, json: options.JsonOpt = False) -> None:
    """All trials of a study, in order."""
    with options.open_store(store, read_only=True) as opened:
        record, found = _open(opened, study)
    if json:
        answer_json([codec.trial_to_dict(t) for t in found])
        return
    work = operations(parse(record.program))
    rows = []
    for t in found:
        m = t.measurement
        said = speed(work, m.time_s) if m.ok else m.message.strip().split("\n")[0][:60]
        analytic = seconds(t.analytic_s)
        rows.append((t.number, t.round, m.status, seconds(m.time_s), analytic, said, t.plan, _named(t)))
    table(("trial", "round", "status", "time", "clock", "speed", "plan", "schedule"), rows)


def studies(store: options.StoreOpt = None, json: options.JsonOpt = False) -> None:
    """All studies of the store."""
    with options.open_store(store) as opened:
        found = opened.summaries()
    if json:
        answer_json(
            [
                {
                    "study": s.record.name,
                    "program": s.record.program_name,
                    "target": s.record.target,
                    "device": s.record.device,
                    "done": s.done,
                    "failed": s.failed,
                    "best_s": s.best_s,
                    "created": s.record.created,
                }
                for s in found
            ]
        )
        return
    rows = [
        (s.record.name, s.done, sum(s.failed.values()), seconds(s.best_s), speed(operations(parse(s.record.program)), s.best_s))
        for s in found
    ]
    table(("study", "trials", "failed", "best", "speed"), rows)


def kernel_of(record: StudyRecord, trial: Trial) -> Kernel:
    """Lower a stored trial again. Raises StoreError where this version no longer has its plan."""
    request = reopen(record, options.catalogue(record.settings.get("intrinsics", ())))
    _, plans = plans_of(request)
    for plan in plans:
        if plan.name == trial.plan:
            return lower(plan, plan.space.schedule(trial.row))
    raise StoreError(
        f"trial {trial.number} of {record.name!r} used the plan {trial.plan!r}, which this version does not make",
        hint="tune again with --fresh",
    )


def _open(store: SqliteStore, study: str) -> tuple[StudyRecord, list[Trial]]:
    return store.study(study), store.trials(study)


def _pick(record: StudyRecord, found: list[Trial], number: int | None) -> Trial:
    """The trial of that number, else the fastest verified one (final measurements count before others)."""
    if number is not None:
        numbered = [t for t in found if t.number == number]
        if not numbered:
            raise UsageError(f"study {record.name!r} has no trial {number}", hint="`autosched trials` lists them")
        return numbered[-1]
    bad = {t.key for t in found if not t.measurement.ok}
    good = [t for t in found if t.key not in bad and t.measurement.time_s is not None]
    if not good:
        raise NoScheduleError(f"study {record.name!r} has no candidate that came out right")
    final = [t for t in good if t.round == "final"]
    return min(final or good, key=lambda t: t.measurement.time_s or 0.0)


def _named(trial: Trial) -> str:
    return " ".join(f"{k}={v}" for k, v in trial.schedule.items())


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint="give another path with -o") from None
