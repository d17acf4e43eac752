"""`autosched simulate`: strategies on a space that was measured before, with as many repeats as one likes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autosched import api
from autosched.cli import options
from autosched.cli.commands.compare import Line, can_write, write
from autosched.cli.output import answer, answer_json
from autosched.errors import UsageError
from autosched.report.exchange import as_json


def simulate(
    recording: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A Kernel Tuner cache, T4 results, or a recording of autosched, gzipped or not."
        ),
    ],
    strategies: Annotated[
        str,
        typer.Option("--strategies", "-s", metavar="NAMES", help="Names with commas, or all. As in `compare`."),
    ] = "all",
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials", "-n", metavar="N", help="Trials of every run; else until random search is 95 % of the way."
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", help="Runs of each strategy, with seeds 0 to N-1.")
    ] = 100,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="NAME", help="Others are compared with it; else with random, or the first."),
    ] = None,
    cost_model: Annotated[str, typer.Option("--cost-model", metavar="NAME", help="As in `tune`.")] = "xgb",
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", metavar="N", help="Processes that share the runs; the answer is the same.")
    ] = 1,
    output: options.ComparedOpt = None,
    json: options.JsonOpt = False,
    quiet: options.QuietOpt = False,
    verbose: options.VerboseOpt = False,
) -> None:
    """Compare strategies on recorded measurements, without a device. The answers are the same every time.

    Performance is 0 where random search is expected to be, and 1 at the optimum.
    """
    if trials is not None and trials < 1:
        raise UsageError(f"--trials {trials} leaves nothing to compare", hint="give 1 or more")
    if jobs < 1:
        raise UsageError(f"--jobs is {jobs}, and must be at least 1", hint="give 1 or more")
    if output is not None:
        can_write(output)
    chosen = [name.strip() for name in strategies.split(",") if name.strip()]
    if baseline is not None and chosen != ["all"] and baseline not in chosen:  # said before minutes of runs
        raise UsageError(f"--baseline {baseline} takes no part", hint=f"-s names {', '.join(chosen)}")
    if baseline is None and chosen == ["all"]:
        baseline = "random"
    with Line(quiet, verbose) as line:
        named = "all" if chosen == ["all"] else chosen
        found = api.simulate(recording, named, trials, repeats, cost_model=cost_model, jobs=jobs, on_run=line)
    if output is not None:
        write(output, found, baseline)
    if json:
        answer_json(as_json(found, baseline))
    else:
        answer(str(found.summary(baseline)) if quiet else found.text(baseline))
