"""The `autosched` command: all commands in one application."""

from __future__ import annotations

from typing import Annotated

import typer

from autosched.cli import compare, doctor, export, intrinsics, match, show, targets, trials, tune
from autosched.version import __version__

app = typer.Typer(
    name="autosched",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("tune")(tune.tune)
app.command("match")(match.match)
app.command("show")(show.show)
app.command("compare")(compare.compare)
app.command("export")(export.export)
app.command("trials")(trials.trials)
app.command("studies")(trials.studies)
app.add_typer(intrinsics.app, name="intrinsics")
app.add_typer(targets.app, name="targets")
app.command("doctor")(doctor.doctor)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"autosched {__version__}")
        raise typer.Exit


@app.callback()
def autosched(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """The fastest verified kernel for a loop nest: instructions chosen by proof, schedules by search.

    Exit status: 0 done; 1 ran, and the answer is no; 2 usage, program or spec error; 3 a device, compiler or package is
    missing; 4 a candidate computed wrong numbers; 130 interrupted, state kept.
    """
