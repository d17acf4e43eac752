"""Flags that mean the same everywhere, and how their texts are read."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from platformdirs import user_cache_dir, user_data_dir

from autosched import api
from autosched.errors import UsageError
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.store.sqlite import SqliteStore
from autosched.tensorize.catalogue import Catalogue

ProgramArg = Annotated[
    str, typer.Argument(metavar="PROGRAM", help="path.py, path.py:function, a workload's name, or an einsum string.")
]
DefineOpt = Annotated[
    list[str] | None,
    typer.Option("-D", metavar="NAME=VALUE", help="A size (m=512), a range kept symbolic (m=1..4096) or a dtype (a=u8)."),
]
TargetOpt = Annotated[
    str, typer.Option("--target", "-t", metavar="TARGET", help="A target's name, a YAML file, or native.")
]
DeviceOpt = Annotated[str, typer.Option("--device", "-d", help="auto, cpu or simulator.")]
IntrinsicsOpt = Annotated[
    list[str] | None,
    typer.Option("--intrinsics", metavar="PATH", help="A YAML file or folder of more intrinsics (repeatable)."),
]
OnlyOpt = Annotated[
    list[str] | None, typer.Option("--intrinsic", "-i", metavar="GLOB", help="Consider only these intrinsics.")
]
StoreOpt = Annotated[
    str | None,
    typer.Option("--store", metavar="PATH", help="Where studies are kept: a path, sqlite:///path or :memory:."),
]
JsonOpt = Annotated[bool, typer.Option("--json", help="Print one JSON value on standard output.")]
QuietOpt = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the answer.")]
NumericsOpt = Annotated[
    str, typer.Option("--numerics", help="The weakest level accepted: bitwise, reassociated or real.")
]


def defines(texts: Sequence[str] | None) -> dict[str, Any]:
    """`-D` texts as sizes, ranges and dtypes. Raises UsageError for one without a name or a value, or given twice."""
    found: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        name, value = name.strip(), value.strip()
        if not equals or not name.isidentifier() or not value:
            raise UsageError(f"-D {text}: not of the form name=value", hint="as in -D m=512 or -D a=u8")
        if name in found:
            raise UsageError(f"-D {name} is given twice")
        found[name] = int(value) if re.fullmatch(r"[+-]?\d{1,18}", value) else value
    return found


def program(spec: str, texts: Sequence[str] | None) -> Program:
    """The program that the command names, with its sizes."""
    return api.resolve(spec, defines(texts))


def intrinsic_paths(paths: Sequence[str] | None) -> tuple[str, ...]:
    """`--intrinsics`, after the folders of AUTOSCHED_INTRINSICS (separated as PATH is), as absolute paths."""
    known = [p for p in os.environ.get("AUTOSCHED_INTRINSICS", "").split(os.pathsep) if p]
    return tuple(str(Path(p).expanduser().resolve()) for p in [*known, *(paths or ())])


def catalogue(paths: Sequence[str] | None) -> Catalogue:
    """The built-in catalogue with the user's files."""
    return api.catalogue(intrinsic_paths(paths))


def target(name: str) -> Target:
    """The target; measured figures of this machine are kept in the user's cache folder."""
    return api.target(name, cache=peaks_path())


def peaks_path() -> Path:
    return Path(user_cache_dir("autosched")) / "peaks.json"


def store_path(where: str | None) -> str:
    """`--store`, else AUTOSCHED_STORE, else a file in the user's data folder (made when it is not there)."""
    chosen = where or os.environ.get("AUTOSCHED_STORE")
    if chosen:
        return chosen
    folder = Path(user_data_dir("autosched"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make {folder}: {error.strerror}", hint="give --store PATH") from None
    return str(folder / "autosched.db")


def open_store(where: str | None, *, read_only: bool = False) -> SqliteStore:
    return SqliteStore(store_path(where), read_only=read_only)


def timeout(text: str | None) -> float | None:
    """`90s`, `10m`, `2h` or plain seconds. Raises UsageError for anything else, and for zero."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*(ms|s|m|h)?\s*", text)
    value = float(found[1]) * {"ms": 1e-3, "s": 1, "m": 60, "h": 3600}[found[2] or "s"] if found else 0.0
    if value <= 0:
        raise UsageError(f"--timeout {text}: not a time", hint="as in 90s, 10m or 2h")
    return value
