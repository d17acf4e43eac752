"""`autosched export`: a kernel, a schedule or all trials as files."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from autosched.cli import inputs, options
from autosched.cli.output import answer, answer_json
from autosched.cli.stored import kernel_of, opened, picked, program_of
from autosched.codegen.c import print_c
from autosched.codegen.c.self_test import self_test as test_text
from autosched.codegen.c.shared import build_shared, compiler
from autosched.errors import UsageError
from autosched.store.exchange import schedule_json, write_trials
from autosched.store.exchanged import FORMATS, write_measured
from autosched.store.measured import of_study


def export(
    study: options.StudyArg,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="FILE.c (with FILE.h), FILE.json (schedule) or FILE.jsonl (trials)."
        ),
    ],
    trial: options.TrialOpt = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="With FILE.json or FILE.json.gz: all trials in a format of other tuners, t4 or kernel-tuner.",
        ),
    ] = None,
    shared: Annotated[
        bool, typer.Option("--shared", help="With FILE.c: also FILE.so, built by this machine's C compiler.")
    ] = False,
    self_test: Annotated[
        bool, typer.Option("--self-test", help="With FILE.c: also FILE_test.c, a program that checks it.")
    ] = False,
    store: options.StoreOpt = None,
    json: options.JsonOpt = False,
) -> None:
    """Write the best kernel as C with its header, its schedule as JSON, or all trials as JSON lines.

    The kernel's function has the file's name. The self-test is a program of its own; it ends with 0 where all is well.
    """
    if kind is not None:
        inputs.choice("format", kind, tuple(FORMATS))
        if not output.name.endswith((".json", ".json.gz")) or shared or self_test or trial is not None:
            raise UsageError(f"--format {kind} writes all trials as JSON", hint="-o FILE.json, or FILE.json.gz, alone")
    elif output.suffix not in (".c", ".h", ".json", ".jsonl"):
        what = output.suffix or "a name without an ending"
        raise UsageError(f"-o {output}: no format for {what}", hint="it ends in .c, .json or .jsonl")
    if output.suffix not in (".c", ".h") and kind is None and (shared or self_test):
        what = "--shared" if shared else "--self-test"
        raise UsageError(f"{what} goes with C, not with {output.name}", hint="as in -o gemm.c")
    command = compiler() if shared else []
    record, trials = opened(study, store)
    written = [output]
    if kind is not None:
        write_measured(output, of_study(record, trials), kind)
    elif output.suffix == ".jsonl":
        write_trials(output, record, trials)
    elif output.suffix == ".json":
        _write(output, schedule_json(record, picked(record, trials, trial)))
    else:
        written = [output.with_suffix(".c"), output.with_suffix(".h")]
        kernel = replace(kernel_of(record, picked(record, trials, trial)), name=_function(output))
        code = print_c(kernel)
        for path, text in zip(written, (code.source, code.header), strict=True):
            _write(path, text)
        if self_test:
            written.append(output.with_name(f"{output.stem}_test.c"))
            reassociated = record.settings["numerics"] != "bitwise"
            _write(written[-1], test_text(kernel, code, program_of(record), reassociated))
        if shared:
            written.append(build_shared(code, output.with_suffix(".c"), kernel.isa, command))
    if json:
        answer_json({"schema": "autosched/export/1", "study": record.name, "files": [str(p) for p in written]})
    else:
        answer(" ".join(str(p) for p in written))


def _function(output: Path) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", output.stem):
        raise UsageError(f"-o {output}: {output.stem!r} cannot name a C function", hint="as in -o gemm.c")
    return output.stem


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint="give another path with -o") from None
