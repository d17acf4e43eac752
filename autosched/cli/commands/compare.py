"""`autosched compare`: which strategy finds good schedules sooner, with the same budget and seeds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from autosched import api
from autosched.cli import inputs, options
from autosched.cli.answers.unused import tell_unused
from autosched.cli.output import answer, answer_json, talk
from autosched.errors import UsageError
from autosched.numerics_levels import NUMERICS_LEVELS
from autosched.report.comparison import StrategyComparison
from autosched.report.exchange import as_json, figure, write_csv, write_plot
from autosched.report.html import comparison_html
from autosched.report.text import seconds
from autosched.search.evaluate.compare import RunDone
from autosched.text_file import write_text
from autosched.tune_options import TuneOptions

PICTURES = (".png", ".svg", ".pdf")


def compare(
    program: options.ProgramArg,
    define: options.DefineOpt = None,
    strategies: Annotated[
        str,
        typer.Option(
            "--strategies",
            "-s",
            metavar="NAMES",
            help="Names with commas; auto:analytic is auto with that cost model. Others are compared with the first.",
        ),
    ] = "random,evolutionary,auto",
    trials: Annotated[
        int, typer.Option("--trials", "-n", metavar="N", help="Candidates that every run measures.")
    ] = TuneOptions.trials,
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="N", help="Runs of each strategy, each with a seed of its own.")
    ] = 20,
    first_seed: options.FirstSeedOpt = 0,
    budgets: options.BudgetsOpt = None,
    target: options.TargetOpt = "native",
    device: options.DeviceOpt = "simulator",
    cost_model: options.CostModelOpt = TuneOptions.cost_model,
    threads: options.ThreadsOpt = TuneOptions.threads,
    intrinsics: options.IntrinsicsOpt = None,
    intrinsic: options.OnlyOpt = None,
    numerics: options.NumericsOpt = TuneOptions.numerics,
    output: options.ComparedOpt = None,
    json: options.JsonOpt = False,
    quiet: options.QuietOpt = False,
    verbose: options.VerboseOpt = False,
) -> None:
    """Compare strategies: tune with each and with many seeds.

    Every candidate is measured once, so runs differ only in what they chose. Nothing is kept in a store.
    """
    inputs.choice("numerics level", numerics, NUMERICS_LEVELS)
    stated = inputs.budgets(budgets)
    if stated and max(stated) > trials:
        raise UsageError(f"--budgets {budgets}: runs have {trials} trials", hint="state smaller ones, or give more -n")
    if seeds < 1:
        raise UsageError(f"{seeds} seeds leave nothing to compare", hint="give --seeds 20")
    if output is not None:
        can_write(output)
    known = inputs.catalogue(intrinsics)
    machine = inputs.target(target, known)
    tell_unused(known, intrinsics, machine)
    with Line(quiet, verbose) as line:
        found = api.compare(
            inputs.program(program, define),
            inputs.names(strategies),
            device,
            trials,
            range(first_seed, first_seed + seeds),
            machine,
            cost_model=cost_model,
            threads=threads,
            intrinsics=tuple(intrinsic or ()),
            numerics=numerics,
            known=known,
            on_run=line,
        )
    if output is not None:
        write(output, found, checkpoints=stated, quiet=quiet)
    if json:
        answer_json(as_json(found, checkpoints=stated))
    else:
        answer(str(found.summary(checkpoints=stated)) if quiet else found.text(checkpoints=stated))


class Line:
    """Says how far the comparison is: in one line of a terminal, or a line for every run with --verbose."""

    def __init__(self, quiet: bool, verbose: bool) -> None:
        self.verbose = verbose
        self.console = talk()
        self.live = sys.stderr.isatty() and not self.console.is_dumb_terminal and not quiet and not verbose
        self.status = self.console.status("matching") if self.live else None

    def __enter__(self) -> Line:
        if self.status is not None:
            self.status.start()
        return self

    def __exit__(self, *unused: Any) -> None:
        if self.status is not None:
            self.status.stop()

    def __call__(self, run: RunDone) -> None:
        said = f"{run.done}/{run.total} runs; {run.strategy}, seed {run.seed}: {seconds(run.best_s)}"
        if self.status is not None:
            self.status.update(said)
        elif self.verbose:
            self.console.print(said, markup=False)


def write(
    output: Path,
    found: StrategyComparison,
    baseline: str | None = None,
    checkpoints: list[int] | None = None,
    quiet: bool = False,
) -> None:
    """Write the comparison in the format that the file's name asks for, and say so."""
    if output.suffix == ".csv":
        write_csv(output, found)
    elif output.suffix == ".html":
        write_text(output, comparison_html(found, baseline, checkpoints))
    else:
        write_plot(output, found, checkpoints or ())
    wrote(output, quiet)


def wrote(output: Path, quiet: bool) -> None:
    if not quiet:
        talk().print(f"wrote {output}", markup=False)


def can_write(output: Path) -> None:
    """Refuse before minutes of runs, and not after them, what cannot be written."""
    if output.suffix not in (".csv", ".html", *PICTURES):
        raise UsageError(f"-o {output}: unknown format", hint="use a name that ends in .csv, .html, .png, .svg or .pdf")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"-o {output}: there is no such folder")
    if output.suffix in PICTURES:
        figure(output)
