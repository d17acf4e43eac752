"""`autosched report`: a study as one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autosched.cli import options
from autosched.cli.output import answer, answer_json
from autosched.cli.stored import kernel_of, opened, picked
from autosched.codegen.tree.text import print_kernel
from autosched.errors import AutoschedError, UsageError
from autosched.report.html import study_html
from autosched.text_file import write_text


def report(
    study: options.StudyArg = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.html", help="Else the study's name and .html.")
    ] = None,
    store: options.StoreOpt = None,
    json: options.JsonOpt = False,
) -> None:
    """Write a study's report as one HTML file.

    It holds the course of the search, predictions, the fastest trials, failures and the best kernel's loop tree.
    """
    record, trials = opened(study, store)
    path = output or Path(f"{record.name}.html")
    if path.suffix not in (".html", ".htm"):
        raise UsageError(f"-o {path}: a report is HTML", hint="use a name that ends in .html")
    try:
        texts = {"Loop tree of the best": print_kernel(kernel_of(record, picked(record, trials, None)))}
    except AutoschedError as error:  # a report of a study that found nothing says so
        texts = {"Loop tree of the best": error.message}
    write_text(path, study_html(record, trials, texts))
    if json:
        answer_json({"schema": "autosched/report/1", "study": record.name, "file": str(path)})
    else:
        answer(str(path))
