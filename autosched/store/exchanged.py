"""Files of measured configurations, our own and other tools'. Which kind a file is, is told from what is in it."""

from __future__ import annotations

from pathlib import Path

from autosched.errors import StoreError, UnknownNameError
from autosched.store.json_file import read_json
from autosched.store.kernel_tuner import from_cache, is_cache, write_cache
from autosched.store.measured import Measured, of_recording
from autosched.store.recorded_space import RecordedSpace
from autosched.store.replay_file import from_replay, is_replay, read_replays
from autosched.store.t4 import from_t4, is_t4, write_t4

FORMATS = {"t4": write_t4, "kernel-tuner": write_cache}
"""Format of another tool to what writes it at a path."""


def read_any(path: str | Path) -> RecordedSpace:
    """A recording of ours, a Kernel Tuner cache or T4 results, gzipped or not.

    Raises StoreError for anything else, and for a file that is cut short, of another schema, or not consistent."""
    found = _read(path)
    if isinstance(found, RecordedSpace):
        return found
    measured, source = found
    return measured.recording(source)


def read_all(path: str | Path) -> tuple[RecordedSpace, ...]:
    """As `read_any`, and all recordings of a file that holds several."""
    value = read_json(Path(path))
    return read_replays(path) if is_replay(value) else (read_any(path),)


def read_measured(path: str | Path) -> Measured:
    """The same files by names and values, with all that the formats share: parameters of one value, samples, and each
    cost by what it was for. Raises as `read_any` does."""
    found = _read(path)
    return of_recording(found) if isinstance(found, RecordedSpace) else found[0]


def _read(path: str | Path) -> RecordedSpace | tuple[Measured, str]:
    """A recording of ours, or what another tool measured and where that comes from."""
    value = read_json(Path(path))
    if is_replay(value):
        return from_replay(value, str(path))
    if is_cache(value):
        return from_cache(value, str(path)), f"Kernel Tuner cache {Path(path).name}"
    if is_t4(value):
        return from_t4(value, str(path)), f"T4 results {Path(path).name}"
    hint = "these have `schema`, `cache` or `results`"
    raise StoreError(f"{path} is JSON, but no recording, Kernel Tuner cache or T4 results", hint=hint)


def write_measured(path: str | Path, measured: Measured, kind: str) -> None:
    """Write in a format of FORMATS, gzipped where the name ends in .gz. Raises UnknownNameError, StoreError."""
    if kind not in FORMATS:
        raise UnknownNameError("format", kind, FORMATS)
    FORMATS[kind](Path(path), measured)
