"""`autosched tune`: search, measure, keep the best."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from autosched.cli import inputs, options
from autosched.cli.answers.forms import flags_of, form_commands, match_command
from autosched.cli.answers.peak import forget_slow_peak
from autosched.cli.answers.tune_report import as_json, as_text, failure_json
from autosched.cli.answers.unused import given_by, tell_unused
from autosched.cli.deadline import Outside
from autosched.cli.entry import Start
from autosched.cli.output import answer, answer_json, talk
from autosched.cli.progress import Progress
from autosched.cli.tune_many import Said, tune_many
from autosched.cli.warm import warm_from as earlier
from autosched.errors import AutoschedError, NoScheduleError, UsageError, WrongResultError
from autosched.ir.program import Program
from autosched.numerics_levels import NUMERICS_LEVELS
from autosched.search.request import TuneRequest
from autosched.search.stopping import Goals
from autosched.search.tuning.deadline import Deadline
from autosched.search.tuning.loop import Result
from autosched.search.tuning.tune import Tuning
from autosched.search.tuning.tune import tune as run
from autosched.store.exchange import read_schedule
from autosched.store.explain import MEMORY, path_of
from autosched.tiling.variants.conditional import MODES
from autosched.tune_options import EFFORTS, TuneOptions

CACHES = ("warm", "cold")


def tune(
    context: typer.Context,
    programs: options.ProgramsArg,
    define: options.DefineOpt = None,
    target: options.TargetOpt = "native",
    device: options.DeviceOpt = TuneOptions.device,
    trials: Annotated[int | None, options.option("trials", "--trials", "-n", metavar="N")] = None,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="TIME", help="Stop this run after 90s, 10m or 2h.")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="GOAL", help="Stop at a time of one call (250us) or a speed (1.2T op/s)."),
    ] = None,
    least_gain: Annotated[
        str | None,
        typer.Option("--least-gain", metavar="SHARE", help="Stop once one more trial is expected to save less (1%)."),
    ] = None,
    effort: Annotated[
        str, typer.Option("--effort", metavar="EFFORT", help="quick (32), standard (64) or full (256 trials).")
    ] = "standard",
    strategy: Annotated[str, options.option("strategy", "--strategy", "-s", metavar="NAME")] = TuneOptions.strategy,
    cost_model: options.CostModelOpt = TuneOptions.cost_model,
    seed: options.SeedOpt = TuneOptions.seed,
    threads: options.ThreadsOpt = TuneOptions.threads,
    store: options.StoreOpt = None,
    warm_from: Annotated[
        list[str] | None,
        typer.Option(
            "--warm-from",
            metavar="WHERE",
            help="Learn from this first: a study, a store, or a recording (repeatable; other shapes will do).",
        ),
    ] = None,
    occurs: Annotated[
        str | None,
        typer.Option("--occurs", metavar="N,…", help="How often each of several programs occurs, in order; else once."),
    ] = None,
    schedule: Annotated[
        Path | None,
        typer.Option("--schedule", metavar="FILE", help="Measure this first: what `export -o FILE.json` wrote."),
    ] = None,
    fresh: Annotated[bool, options.option("fresh")] = TuneOptions.fresh,
    intrinsics: options.IntrinsicsOpt = None,
    intrinsic: options.OnlyOpt = None,
    plans: options.PlansOpt = None,
    numerics: options.NumericsOpt = TuneOptions.numerics,
    conditions: Annotated[str, options.option("conditions", metavar="WAY")] = TuneOptions.conditions,
    data: options.DataOpt = None,
    cache: Annotated[str, options.option("cache", metavar="STATE")] = TuneOptions.cache,
    objective: Annotated[str, options.option("objective", metavar="WHAT")] = TuneOptions.objective,
    emulate: Annotated[bool, options.option("emulate")] = TuneOptions.emulate,
    noise: Annotated[str | None, options.option("noise", metavar="SHARE")] = None,
    json: options.JsonOpt = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print one line: the best time (of several programs the sum).")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="One line for every trial.")] = False,
) -> None:
    """Search, measure and keep the best kernel. Continue a study that was started before.

    Several programs share the trials: the next go where they are expected to save most time, as often as each occurs.
    Exit status 1 when no candidate survived, 4 when one computed wrong numbers, 130 when interrupted.
    """
    start = context.find_object(Start) or Start(time.monotonic())
    limit = Deadline(inputs.timeout(timeout), began=start.at)
    first: TuneRequest | None = None
    own = [target] * (target != "native")
    flags = flags_of({"-t": own, "--intrinsics": intrinsics, "-i": intrinsic, "--data": data}, numerics)

    def explain(name: str) -> str:
        return match_command(programs[0], define or [], [*flags, *([] if intrinsic else ["-i", name])])

    said = partial(_said, json=json, brief=quiet, explain=explain, began=start.at)
    try:
        with Outside(limit, said) as outside, limit:
            known = inputs.catalogue(intrinsics)
            loaded = [inputs.with_data(one, data) for one in inputs.programs(programs, define)]
            _check_choices(effort, cache, numerics, conditions)
            if schedule is not None and len(loaded) > 1:
                raise UsageError("--schedule is for one program", hint="tune the programs one by one")
            weights = inputs.occurrences(occurs, len(loaded))
            with inputs.open_store(store) as opened:
                machine = inputs.target(target, known)
                tell_unused(known, intrinsics, machine)
                first = TuneRequest(
                    loaded[0],
                    machine,
                    device=device,
                    trials=EFFORTS[effort] * len(loaded) if trials is None else trials,
                    timeout_s=limit.seconds,
                    strategy=strategy,
                    cost_model=cost_model,
                    seed=seed,
                    threads=threads,
                    store=opened,
                    catalogue=known,
                    only=tuple(intrinsic or ()),
                    families=tuple(plans or ()),
                    numerics=numerics,
                    cache=cache,
                    objective=objective,
                    emulate=emulate,
                    noise=inputs.deviation(noise),
                    conditions=conditions,
                    goals=Goals(inputs.goal(until, loaded[0]), inputs.share(least_gain)),
                    earlier=earlier(warm_from, store, machine),
                    fresh=fresh,
                    user_schedules=() if schedule is None else (read_schedule(schedule)[1],),
                    intrinsic_paths=inputs.intrinsic_paths(intrinsics),
                )
                if len(loaded) > 1:
                    each = _for_each(loaded, first, until)
                    raise typer.Exit(tune_many(each, weights, first, Said(quiet, verbose, json), limit))
                with Progress(first, quiet=quiet, verbose=verbose) as progress:
                    outside.fail = partial(_failed, first, limit, json)
                    tuning, result = run(first, progress, limit)
            commands = form_commands(programs[0], loaded[0].name, define or [], flags, _where(device, store))
            given = given_by(known, intrinsics, intrinsic, machine)
            status = said(tuning, result, forms=commands, given=given)
            if result.reason == "interrupted":
                _interrupted(store, f"stopped after {result.done} trials")
            raise typer.Exit(status)
    except (NoScheduleError, WrongResultError) as error:
        _failed(first, limit, json, error)
        raise
    except KeyboardInterrupt:  # before the first trial, or after the last
        _interrupted(store, "interrupted")
        raise typer.Exit(130) from None
    finally:
        start.late = limit.over


def _check_choices(effort: str, cache: str, numerics: str, conditions: str) -> None:
    inputs.choice("effort", effort, tuple(EFFORTS))
    inputs.choice("cache state", cache, CACHES)
    inputs.choice("numerics level", numerics, NUMERICS_LEVELS)
    inputs.choice("way to treat conditions", conditions, MODES)


def _for_each(programs: Sequence[Program], first: TuneRequest, until: str | None) -> list[TuneRequest]:
    """The request of each program; a goal in operations per second is another time for each."""
    goals = [replace(first.goals, time_s=inputs.goal(until, one)) for one in programs]
    return [replace(first, program=p, goals=g) for p, g in zip(programs, goals, strict=True)]


def _where(device: str, store: str | None) -> list[str]:
    """The flags of target, device and store."""
    return ["-d", device] * (device != TuneOptions.device) + ([] if store is None else ["--store", store])


def _said(
    tuning: Tuning,
    result: Result,
    *,
    json: bool,
    brief: bool,
    forms: Sequence[str] = (),
    given: Sequence[str] = (),
    explain: Callable[[str], str],
    began: float | None = None,
) -> int:
    """Print the answer; returns the exit status."""
    if json:
        answer_json(as_json(tuning, result))
    elif result.best is not None:
        said = partial(as_text, form_commands=forms, given=given, match_command=explain)
        answer(said(tuning, result, brief=brief, began=began))
    if result.best is not None:
        forget_slow_peak(tuning, result.best, inputs.peaks_path())
    return result.exit_code


def _failed(request: TuneRequest | None, limit: Deadline, json: bool, error: AutoschedError) -> None:
    """Print the answer of a run in which no candidate survived; the message follows on standard error."""
    if json:
        answer_json(failure_json(error, request, limit.tuning))


def _interrupted(store: str | None, what: str) -> None:
    kept = path_of(inputs.store_path(store)) != MEMORY
    said = f"nothing is lost. Continue:  {again(sys.argv[1:])}" if kept else "nothing was kept (--store :memory:)"
    talk().print(f"{what}; {said}", markup=False)


def again(arguments: Sequence[str]) -> str:
    """The command that continues this one: the same without `--fresh`, which would start over.

    >>> again(["tune", "my file.py", "--fresh", "-n", "8"])
    "autosched tune 'my file.py' -n 8"
    """
    return shlex.join(["autosched", *(a for a in arguments if a != "--fresh")])
