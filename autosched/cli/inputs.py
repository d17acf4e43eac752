"""Parses the texts of flags into values, once; UsageError for what cannot be right."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from platformdirs import user_cache_dir, user_data_dir

from autosched import api
from autosched.errors import UnknownNameError, UsageError
from autosched.ir.data import with_data as known_data
from autosched.ir.program import Program
from autosched.ir.work import operations
from autosched.machine.agree import refuse_misspelt, refuse_unknown
from autosched.machine.target import Target
from autosched.store.sqlite import SqliteStore
from autosched.tensorize.spec.catalogue import Catalogue

_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_SHORT = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_RATES = {"M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


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


def programs(specs: Sequence[str], texts: Sequence[str] | None) -> list[Program]:
    """The programs that the command names. `-D` sets sizes of all of them, a `-D` quoted with a program
    (`'matmul -D m=64'`) its own. Raises UsageError for any other flag quoted with a program."""
    found = []
    for spec in specs:
        # Everything before the first flag is one word: paths and einsum strings may have spaces.
        name, *flags = re.split(r"\s(?=-[^>])", spec, maxsplit=1)
        own = _sizes(spec, "".join(flags))
        replaced = {text.partition("=")[0].strip() for text in own}
        texts_left = [t for t in texts or () if t.partition("=")[0].strip() not in replaced]
        found.append(program(name.strip(), texts_left + own))
    return found


def _sizes(spec: str, flags: str) -> list[str]:
    """The texts of `-D m=64 -Dn=64`, of the program `spec`."""
    try:
        words = shlex.split(flags)
    except ValueError as error:
        raise UsageError(f"{spec!r}: {error}") from None
    own: list[str] = []
    while words:
        flag = words.pop(0)
        if not flag.startswith("-D"):
            raise UsageError(f"{spec!r}: {flag!r} is not understood", hint="as in 'matmul -D m=64 -D n=64'")
        own.append(flag[2:] if len(flag) > 2 else words.pop(0) if words else "")
    return own


def occurrences(text: str | None, count: int) -> list[float]:
    """`--occurs 4,1`: how often each program occurs; once each without it. Raises UsageError for anything else."""
    try:
        found = [1.0] * count if text is None else [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--occurs {text}: not a list of numbers", hint="as in --occurs 4,1") from None
    if len(found) != count:
        said = f"--occurs {text}: {len(found)} given, for {count} program{'s' * (count > 1)}"
        raise UsageError(said, hint="give one for each, in order")
    return found


def with_data(program: Program, texts: Sequence[str] | None) -> Program:
    """The program with the values that `--data NAME=FILE.npy` gives. Raises UsageError for a file that is no plain
    array (pickled objects are never read), and what `ir.data.with_data` raises."""
    found: dict[str, Any] = {}
    for text in texts or ():
        name, equals, path = text.partition("=")
        if not equals or not name.isidentifier() or not path:
            raise UsageError(f"--data {text}: not of the form NAME=FILE.npy", hint="as in --data B=weights.npy")
        if name in found:
            raise UsageError(f"--data {name} is given twice")
        found[name] = _array(text, Path(path).expanduser())
    return known_data(program, found)


def _array(text: str, path: Path) -> Any:
    import numpy as np

    try:
        with path.open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        said = f"--data {text}: cannot read the file: {error.strerror or error}"
        raise UsageError(said, hint="write the array with numpy.save") from None
    except (ValueError, EOFError) as error:
        hint = "write it with numpy.save, as a plain array of the tensor's dtype"
        raise UsageError(f"--data {text}: no .npy file of a plain array: {error}", hint=hint) from None


def intrinsic_paths(paths: Sequence[str] | None) -> tuple[str, ...]:
    """`--intrinsics`, after the folders of AUTOSCHED_INTRINSICS (separated as PATH is), as absolute paths."""
    known = [p for p in os.environ.get("AUTOSCHED_INTRINSICS", "").split(os.pathsep) if p]
    return tuple(dict.fromkeys(os.path.realpath(Path(p).expanduser()) for p in [*known, *(paths or ())]))


def catalogue(paths: Sequence[str] | None) -> Catalogue:
    """The built-in catalogue with the user's files."""
    return api.catalogue(intrinsic_paths(paths))


def target(name: str, known: Catalogue | None = None) -> Target:
    """The target; measured figures of this machine are kept in the user's cache folder. With the catalogue, SpecError
    for a feature or an instruction of the target that the catalogue does not know, UsageError for a chip without a
    host of which it knows no instruction."""
    found = api.target(name, cache=peaks_path())
    if known is not None:
        refuse_misspelt(found, known)
        refuse_unknown(found, known)
    return found


def peaks_path() -> Path:
    return Path(user_cache_dir("autosched")) / "peaks.json"


def choice(flag: str, value: str, known: Sequence[str]) -> str:
    """A flag's value that must be one of a few. Raises UnknownNameError naming the nearest."""
    if value not in known:
        raise UnknownNameError(flag, value, known)
    return value


def names(text: str) -> list[str]:
    """The names in a text with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def budgets(text: str | None) -> list[int] | None:
    """`16,64` as numbers of trials, ascending. Raises UsageError for what are none."""
    if text is None:
        return None
    try:
        found = sorted({int(part) for part in text.split(",")})
    except ValueError:
        found = [0]
    if found[0] < 1:
        raise UsageError(f"--budgets {text}: must be numbers of trials with commas", hint="--budgets 16,64")
    return found


def timeout(text: str | None) -> float | None:
    """`90s`, `10m`, `2h` or plain seconds. Raises UsageError for anything else, and for zero."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*(ms|s|m|h)?\s*", text)
    value = float(found[1]) * _UNITS[found[2] or "s"] if found else 0.0
    if value <= 0:
        raise UsageError(f"--timeout {text}: not a time", hint="as in 90s, 10m or 2h")
    return value


def goal(text: str | None, program: Program) -> float | None:
    """`--until`: seconds of one call, given as a time (`250us`) or as operations a second (`900G`). Raises UsageError
    for anything else, for zero, and for a speed of a program without arithmetic."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*(?:(ns|us|µs|ms|s)|([MGTP])(?:FLOPS|OP/s)?)\s*", text)
    value = float(found[1]) if found else 0.0
    if found is None or value <= 0:
        hint = "as in 250us or 1.5ms, or 900G or 1.2T op/s"
        raise UsageError(f"--until {text}: neither a time nor a speed", hint=hint)
    if found[2]:
        return value * _SHORT[found[2]]
    work = operations(program)
    if not work:
        raise UsageError(f"--until {text}: {program.name} has no arithmetic to count", hint="give a time, as in 250us")
    return work / (value * _RATES[found[3]])


def share(text: str | None) -> float | None:
    """`--least-gain`: `1%` or `0.01`. Raises UsageError unless it is a share between 0 and 1."""
    if text is None:
        return None
    value = _fraction(text)
    if value is None or not 0 < value < 1:
        raise UsageError(f"--least-gain {text}: not a share between 0 and 1", hint="as in 1% or 0.01")
    return value


def deviation(text: str | None) -> float | None:
    """`--noise`: `2%`, `0.02` or `0`. Raises UsageError for anything below 0, or from 1 on."""
    if text is None:
        return None
    value = _fraction(text)
    if value is None or not 0 <= value < 1:
        raise UsageError(f"--noise {text}: not a relative deviation", hint="0 is none, 1% or 0.01 is one per cent")
    return value


def _fraction(text: str) -> float | None:
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*", text)
    return float(found[1]) / (100 if found[2] else 1) if found else None


def store_path(where: str | None) -> str:
    """`--store`, else AUTOSCHED_STORE, else a file in the user's data folder."""
    if where is not None:
        return where
    return os.environ.get("AUTOSCHED_STORE") or str(Path(user_data_dir("autosched")) / "autosched.db")


def open_store(where: str | None, *, read_only: bool = False) -> SqliteStore:
    """The store; unless `read_only`, it is made where there is none."""
    return SqliteStore(store_path(where), read_only=read_only)
