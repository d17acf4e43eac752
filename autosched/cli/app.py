"""The `autosched` command: all commands in one application; a command's file is loaded when it is called."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from autosched.version import __version__

COMMANDS = {
    "tune": "tune",
    "match": "match",
    "rewrite": "rewrite",
    "studies": "trials",
    "show": "show",
    "export": "export",
    "report": "report",
    "trials": "trials",
    "record": "record",
    "compare": "compare",
    "simulate": "simulate",
    "model": "model",
    "intrinsics": "intrinsics",
    "targets": "targets",
    "doctor": "doctor",
}
"""Command to the file of `autosched.cli.commands` that holds it, in the order of `--help`."""


def application(arguments: Sequence[str]) -> typer.Typer:
    """The application that serves these arguments: the one command that they begin with, else all commands.

    Loading the files of all commands takes half a second, which someone who asks for one answer, or for the version,
    should not wait.
    """
    first = arguments[0] if arguments else None
    names = [] if first == "--version" else [first] if first in COMMANDS else list(COMMANDS)
    app = typer.Typer(
        name="autosched",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=autosched,
    )
    for name in names:
        module = import_module(f"autosched.cli.commands.{COMMANDS[name]}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(getattr(module, name))
    return app


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"autosched {__version__}")
        raise typer.Exit


def autosched(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """The fastest verified kernel for a loop nest: instructions chosen by proof, schedules by search.

    Exit status: 0 done; 1 ran, and the answer is no; 2 usage, program or spec error; 3 a device, compiler or package is
    missing; 4 a candidate computed wrong numbers; 130 interrupted, state kept.
    """
