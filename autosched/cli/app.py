"""The `autosched` command: all commands in one application, and one place where errors become exit statuses."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

from autosched.cli import doctor, intrinsics, match, study, targets, tune
from autosched.cli.output import complain
from autosched.errors import AutoschedError
from autosched.version import __version__

app = typer.Typer(
    name="autosched",
    help="Proved auto-tensorization and auto-scheduling: the fastest verified kernel for a loop nest.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("tune")(tune.tune)
app.command("match")(match.match)
app.command("show")(study.show)
app.command("export")(study.export)
app.command("trials")(study.trials)
app.command("studies")(study.studies)
app.add_typer(intrinsics.app, name="intrinsics")
app.add_typer(targets.app, name="targets")
app.command("doctor")(doctor.doctor)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def autosched(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Exit status: 0 done, 1 ran and the answer is no, 2 usage, program or spec error, 3 a device, compiler or package
    is missing, 4 a candidate computed wrong numbers, 130 interrupted (state kept)."""


def main() -> None:
    """Run the command line. Whatever a person can cause ends in one message and the right status, never a traceback."""
    try:
        app()
    except AutoschedError as error:
        complain(str(error))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        complain("interrupted")
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has left: nothing to say to it
        sys.stderr.close()
        sys.exit(0)
    except MemoryError:
        complain("out of memory", "use smaller sizes or fewer threads")
        sys.exit(3)
    except RecursionError:
        complain("the input nests too deeply")
        sys.exit(2)
    except Exception:
        complain("this is a mistake in autosched, not in your input; please report what follows")
        traceback.print_exc()
        sys.exit(70)
