"""Flags that mean the same in every command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from autosched.tune_options import MEANINGS


def option(name: str, *flags: str, metavar: str | None = None, least: int | None = None) -> Any:
    """The flag of an option of `tune`, `--name` unless `flags` say more, with the help that the table has.

    >>> option("threads").help
    'Threads that a kernel may use.'
    """
    spelled = flags or (f"--{name.replace('_', '-')}",)
    return typer.Option(*spelled, metavar=metavar, min=least, help=MEANINGS[name])


ProgramArg = Annotated[
    str, typer.Argument(metavar="PROGRAM", help="path.py, path.py:function, a workload's name, or an einsum string.")
]
ProgramsArg = Annotated[
    list[str],
    typer.Argument(
        metavar="PROGRAM...",
        help="path.py, path.py:function, a workload's name, or an einsum string; several share the budget, each with"
        " sizes of its own if quoted: 'matmul -D m=64'.",
    ),
]
StudyArg = Annotated[
    str | None,
    typer.Argument(
        metavar="STUDY",
        help="A study's name, short or whole, or its beginning (see `autosched studies`); else the last one tuned.",
    ),
]
DefineOpt = Annotated[
    list[str] | None,
    typer.Option(
        "-D",
        metavar="NAME=VALUE",
        help="A size (m=512), a range kept symbolic (m=1..4096) or a dtype (a=u8); repeatable.",
    ),
]
TargetOpt = Annotated[
    str, typer.Option("--target", "-t", metavar="TARGET", help="A target's name, a YAML file, or native.")
]
DeviceOpt = Annotated[str, option("device", "--device", "-d", metavar="DEVICE")]
IntrinsicsOpt = Annotated[
    list[str] | None,
    typer.Option("--intrinsics", metavar="PATH", help="A YAML file or folder of more intrinsics (repeatable)."),
]
OnlyOpt = Annotated[
    list[str] | None,
    typer.Option("--intrinsic", "-i", metavar="GLOB", help="Consider only these intrinsics (repeatable)."),
]
PlansOpt = Annotated[
    list[str] | None,
    typer.Option("--plans", metavar="FAMILY", help="Search plans of this family alone: 'one pass', … (repeatable)."),
]
StoreOpt = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="PATH",
        help="Where studies are kept: a path, sqlite:///path or :memory:. Else AUTOSCHED_STORE, else the data folder.",
    ),
]
TrialOpt = Annotated[int | None, typer.Option("--trial", metavar="N", help="This trial instead of the best one.")]
ComparedOpt = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Also write FILE.html (a report), .csv (all trials), .png, .svg or .pdf."
    ),
]
JsonOpt = Annotated[bool, typer.Option("--json", help="Print one JSON value on standard output.")]
QuietOpt = Annotated[bool, typer.Option("--quiet", "-q", help="Print the answer alone.")]
VerboseOpt = Annotated[bool, typer.Option("--verbose", "-v", help="Say more.")]
BudgetsOpt = Annotated[
    str | None,
    typer.Option("--budgets", metavar="N,N", help="Trials up to which strategies are told; else 4, 16, 64, … and all."),
]
FirstSeedOpt = Annotated[
    int,
    typer.Option("--first-seed", metavar="N", min=0, help="The first seed: tables of other seeds share no luck."),
]
SeedOpt = Annotated[int, option("seed", metavar="N", least=0)]
CostModelOpt = Annotated[str, option("cost_model", metavar="NAME")]
ThreadsOpt = Annotated[int, option("threads", metavar="N")]
DataOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        metavar="NAME=FILE.npy",
        help="The values of a const tensor: conditions that they meet need no check, and kernels are for them alone"
        " (repeatable).",
    ),
]
NumericsOpt = Annotated[str, option("numerics", metavar="LEVEL")]
