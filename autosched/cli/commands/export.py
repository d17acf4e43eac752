"""`autosched export`: a kernel, a schedule or all trials as files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from autosched.backends import C, Language
from autosched.cli import inputs, options
from autosched.cli.output import answer, answer_json
from autosched.cli.printed import endings, files_of, languages_of_file, not_of_a_gpu, one_of
from autosched.cli.stored import opened, picked, plan_of, program_of, target_of
from autosched.codegen.c.export.self_test import self_test as test_text
from autosched.codegen.c.export.shared_library import build_shared, compiler
from autosched.codegen.lower import lower
from autosched.device.correctness.oracle import slack
from autosched.errors import UsageError
from autosched.store.exchange import schedule_json, write_trials
from autosched.store.exchanged import FORMATS, read_measured, write_measured
from autosched.store.measured import of_study
from autosched.store.records import StudyRecord, Trial
from autosched.text_file import write_text


def export(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="FILE.c or FILE.cu (and FILE.h), FILE.json (schedule) or FILE.jsonl."
        ),
    ],
    study: options.StudyArg = None,
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
        bool, typer.Option("--self-test", help="With FILE.c or FILE.cu: also FILE_test.c, a program that checks it.")
    ] = False,
    torch: Annotated[
        bool, typer.Option("--torch", help="With FILE.c or FILE.cu: also FILE_torch.py, an operator for PyTorch.")
    ] = False,
    store: options.StoreOpt = None,
    json: options.JsonOpt = False,
) -> None:
    """Write the best kernel, its schedule, or all trials.

    The kernel is C, or CUDA C++ for a GPU, with its header; its function has the file's name. The self-test is a
    program of its own; it ends with 0 where all is well. With --format, STUDY may also be the FILE of a recorded space,
    whose rows are written.
    """
    these = languages_of_file(output)
    if kind is not None:
        inputs.choice("format", kind, tuple(FORMATS))
        if not output.name.endswith((".json", ".json.gz")) or shared or self_test or torch or trial is not None:
            raise UsageError(f"--format {kind} writes all trials as JSON", hint="-o FILE.json, or FILE.json.gz, alone")
    elif not these and output.suffix not in (".json", ".jsonl"):
        what = output.suffix or "a name without an ending"
        raise UsageError(f"-o {output}: no format for {what}", hint=f"use a name that ends in {endings()}")
    if shared and C not in these:
        raise _only_c("--shared", output)
    if not these and (self_test or torch):
        raise _only_c("--self-test" if self_test else "--torch", output)
    if kind is not None and study is not None and Path(study).is_file():
        measured = read_measured(study)
        write_measured(output, measured, kind)
        _told(measured.name, [output], json)
        return
    command = compiler() if shared else []
    record, trials = opened(study, store)
    written = [output]
    if kind is not None:
        write_measured(output, of_study(record, trials), kind)
    elif output.suffix == ".jsonl":
        write_trials(output, record, trials)
    elif output.suffix == ".json":
        write_text(output, schedule_json(record, picked(record, trials, trial)))
    else:
        asked = _Asked(one_of(these, target_of(record)), self_test, torch, command if shared else None)
        written = _kernel(output.with_suffix(these[0].suffix), record, picked(record, trials, trial), asked)
    _told(record.name, written, json)


def _told(name: str, written: list[Path], json: bool) -> None:
    if json:
        answer_json({"schema": "autosched/export/1", "study": name, "files": [str(p) for p in written]})
    else:
        answer(" ".join(str(p) for p in written))


@dataclass(frozen=True)
class _Asked:
    """A language, the files beside the kernel, and the command of the compiler that builds it (None: it is not
    built)."""

    language: Language
    self_test: bool
    torch: bool
    command: list[str] | None


def _kernel(output: Path, record: StudyRecord, trial: Trial, asked: _Asked) -> list[Path]:
    """Write a kernel, and build it if `--shared` is given; returns the files written."""
    _refuse_other(output, record, asked.language)
    plan = plan_of(record, trial)
    kernel, target = lower(plan, plan.space.schedule(trial.row)), target_of(record)
    kernel = replace(kernel, name=_function(output))
    files = files_of(kernel, target, asked.language, record.device == target.backend.device)
    _can_be_called(output, files.name, files.header + files.source)
    texts = {output: files.source} | ({output.with_suffix(".h"): files.header} if files.header else {})
    if asked.self_test:
        if files.called is None:
            raise _only_c("--self-test", output)
        reassociated = record.settings["numerics"] != "bitwise"
        program = program_of(record)
        texts[_beside(output, "_test.c")] = test_text(kernel, files.called, program, reassociated, slack(plan))
    if asked.torch:
        if files.operator is None:
            raise _only_c("--torch", output)
        texts[_beside(output, "_torch.py")] = files.operator()
    written = _written(texts)
    if asked.command is None or files.built is None:
        return written
    return [*written, build_shared(files.built, output, kernel.isa, asked.command)]


def _refuse_other(output: Path, record: StudyRecord, language: Language) -> None:
    """UsageError where the kernels of the study's target are not printed in the language."""
    if language == C:
        not_of_a_gpu(target_of(record), lambda own: f"-o {output.stem}{own.suffix}")
    elif record.settings.get("target") is not None and target_of(record).backend.language != language:
        said = f"{record.name!r} is for {record.target}, no {language.machine}"
        raise UsageError(said, hint=f"-o {output.stem}.c")


def _only_c(option: str, output: Path) -> UsageError:
    return UsageError(f"{option} goes with C, not with {output.name}", hint="as in -o gemm.c")


def _beside(output: Path, ending: str) -> Path:
    return output.with_name(output.stem + ending)


def _written(texts: Mapping[Path, str]) -> list[Path]:
    for path, text in texts.items():
        write_text(path, text)
    return list(texts)


def _function(output: Path) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", output.stem):
        raise UsageError(f"-o {output}: {output.stem!r} cannot name a C function", hint="as in -o gemm.c")
    return output.stem


def _can_be_called(output: Path, name: str, text: str) -> None:
    """Refuse a file whose name printed code needs for something else: its function would have another one, or its
    header would be read in place of one that `text` includes."""
    if output.stem in ("stdio", "stdlib") or f"#include <{output.stem}.h>" in text:
        said = f"-o {output}: {output.stem}.h is a header of the system"
        raise UsageError(said, hint=f"as in -o {output.stem}_{output.suffix}")
    if name != output.stem:
        said = f"-o {output}: {output.stem!r} is taken in the language of the file, or by what the code uses"
        raise UsageError(said, hint=f"as in -o {name}{output.suffix}")
