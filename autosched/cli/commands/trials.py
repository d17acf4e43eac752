"""`autosched trials` and `studies`: what a store holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autosched.cli import inputs, options
from autosched.cli.output import answer_json, table, talk
from autosched.cli.stored import objective_of, opened
from autosched.ir import parse
from autosched.ir.work import operations
from autosched.report.text import amount, seconds, speed
from autosched.store import codec
from autosched.store.explain import MEMORY, path_of
from autosched.store.names import short_name
from autosched.store.sqlite import StudySummary


def trials(
    study: options.StudyArg = None,
    store: options.StoreOpt = None,
    json: options.JsonOpt = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Messages, plans and schedules in full.")] = False,
) -> None:
    """List all trials of a study, in order."""
    record, found = opened(study, store)
    if json:
        answer_json([codec.trial_to_dict(t) for t in found])
        return
    work = operations(parse(record.program))
    rows = []
    objective = objective_of(record)
    for t in found:
        m = t.measurement
        message = m.message.strip()
        said = speed(work, m.time_s) if m.ok else message if verbose else message.split("\n")[0][:60]
        schedule = " ".join(f"{k}={v}" for k, v in t.schedule.items())
        spent = () if objective == "latency" else (amount(m.cost, objective),)
        clock = amount(t.analytic_s, objective)
        rows.append((t.number, t.round, m.status, seconds(m.time_s), *spent, clock, said, t.plan, schedule))
    asked = () if objective == "latency" else (objective,)
    columns = ("trial", "round", "status", "time", *asked, "clock", "speed", "plan", "schedule")
    table(columns, rows, shorten=() if verbose else ("plan", "schedule"))


def studies(store: options.StoreOpt = None, json: options.JsonOpt = False, quiet: options.QuietOpt = False) -> None:
    """List all studies of the store."""
    found = _summaries(store)
    if json:
        answer_json([_data(s) for s in found])
        return
    rows = []
    for s in found:
        rate = speed(operations(parse(s.record.program)), s.best_s)
        rows.append((short_name(s.record), s.done, sum(s.failed.values()), seconds(s.best_s), rate, s.record.name))
    if rows:
        table(("study", "trials", "failed", "best", "speed", "whole name"), rows)
    elif not quiet:
        talk().print(f"no studies in {inputs.store_path(store)} yet; `autosched tune` makes one", markup=False)


def _summaries(store: str | None) -> list[StudySummary]:
    path = path_of(inputs.store_path(store))
    if path == MEMORY or not Path(path).exists():  # nothing was tuned yet, which is an answer
        return []
    with inputs.open_store(store, read_only=True) as opened_store:
        return opened_store.summaries()


def _data(summary: StudySummary) -> dict[str, object]:
    record = summary.record
    return {
        "study": record.name,
        "short": short_name(record),
        "program": record.program_name,
        "target": record.target,
        "device": record.device,
        "seed": record.seed,
        "trials": {"done": summary.done, "failed": summary.failed},
        "best_s": summary.best_s,
        "created": record.created,
    }
