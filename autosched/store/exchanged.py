"""Files of measured configurations, our own and other tools'. Which kind a file is, is told from what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from autosched.errors import StoreError, UnknownNameError
from autosched.store.bat import from_table, is_table
from autosched.store.json_file import JsonLines, json_of, lines_of, unpacked_text
from autosched.store.kernel_tuner import from_cache, is_cache, write_cache
from autosched.store.ktt import from_ktt, is_ktt
from autosched.store.measured import Measured, of_recording
from autosched.store.recorded_space import RecordedSpace
from autosched.store.replay_file import check_once, is_replay, replays_of
from autosched.store.t4 import from_t4, is_t4, write_t4
from autosched.store.tvm_logs import from_log, is_log

FORMATS = {"t4": write_t4, "kernel-tuner": write_cache}
"""Format of another tool to what writes it at a path."""


def read_any(path: str | Path) -> RecordedSpace:
    """The recording in a file: one of ours, a Kernel Tuner cache, T4 or KTT results, a table of BAT, a log of AutoTVM
    or of TVM's auto-scheduler, gzipped or not.

    Raises StoreError for anything else, for a file that is cut short, of another schema, or not consistent, and for one
    that holds several recordings."""
    found = read_all(path)
    if len(found) > 1:
        hint = "`autosched simulate` and `model eval` take all of them"
        raise StoreError(f"{path} holds {len(found)} recordings, and one is wanted here", hint=hint)
    return found[0]


def read_all(path: str | Path) -> tuple[RecordedSpace, ...]:
    """As `read_any`, and all recordings of a file that holds several: each task of a log is one."""
    found = _read(Path(path))
    try:
        return tuple(one if isinstance(one, RecordedSpace) else one[0].recording(one[1]) for one in found)
    except StoreError as error:
        raise StoreError(f"{path}: {error.message}", hint=error.hint) from None


def read_measured(path: str | Path) -> Measured:
    """The same files by names and values, with all that the formats share: parameters of one value, samples, and each
    cost by what it was for. Raises as `read_any` does."""
    found = _read(Path(path))
    if len(found) == 1 and not isinstance(found[0], RecordedSpace):
        return found[0][0]
    return of_recording(read_any(path))


Found: TypeAlias = tuple[RecordedSpace, ...] | tuple[tuple[Measured, str], ...]
"""Recordings, or what others measured and where that comes from."""


def _read(path: Path) -> Found:
    text = unpacked_text(path)
    if is_table(text):
        return ((from_table(text, str(path)), f"table of BAT {path.name}"),)
    if path.name.endswith((".csv", ".csv.gz")) and text.lstrip()[:1] not in ("{", "["):
        said = f"{path} is no table of BAT: its first line names no columns config.… and objective"
        raise StoreError(said, hint="of other tables make a recording: docs/python.md#recordings")
    lines = lines_of(path, text)
    if lines is None:
        value = json_of(path, text)
        lines = JsonLines(((1, value),))
    else:
        value = None
    if is_log(lines):
        return from_log(lines, str(path))
    if value is None:
        raise StoreError(f"{path} has JSON values, one a line, and is no log of AutoTVM or of TVM's auto-scheduler")
    if is_replay(value):
        check_once(text, str(path))
        return replays_of(value, str(path))
    if is_cache(value):
        return ((from_cache(value, str(path)), f"Kernel Tuner cache {path.name}"),)
    if is_t4(value):
        return ((from_t4(value, str(path)), f"T4 results {path.name}"),)
    if is_ktt(value):
        return tuple((one, f"KTT results {path.name}") for one in from_ktt(value, str(path)))
    if isinstance(value, dict) and "ConfigurationSpace" in value:
        raise StoreError(f"{path} describes a space (T1), and has no measurements", hint="give the results, or a cache")
    hint = "these have `schema`, `cache`, `results` or `Results`"
    raise StoreError(f"{path} is JSON, but no recording, Kernel Tuner cache, T4 or KTT results", hint=hint)


def write_measured(path: str | Path, measured: Measured, kind: str) -> None:
    """Write in a format of FORMATS, gzipped where the name ends in .gz. Raises UnknownNameError, StoreError."""
    if kind not in FORMATS:
        raise UnknownNameError("format", kind, FORMATS)
    FORMATS[kind](Path(path), measured)
