"""Files of measured configurations, our own and other tools'. Which kind a file is, is told from what is in it."""

from __future__ import annotations

from pathlib import Path

from autosched.errors import StoreError, UnknownNameError
from autosched.store.json_file import read_json
from autosched.store.kernel_tuner import from_cache, is_cache, write_cache
from autosched.store.measured import Measured
from autosched.store.recorded_space import RecordedSpace
from autosched.store.replay_file import from_replay, is_replay
from autosched.store.t4 import from_t4, is_t4, write_t4

FORMATS = {"t4": write_t4, "kernel-tuner": write_cache}
"""Format of another tool to what writes it at a path."""


def read_any(path: str | Path) -> RecordedSpace:
    """A recording of ours, a Kernel Tuner cache or T4 results, gzipped or not.

    Raises StoreError for anything else, and for a file that is cut short, of another schema, or not consistent."""
    value = read_json(Path(path))
    if is_replay(value):
        return from_replay(value, str(path))
    if is_cache(value):
        return from_cache(value, str(path)).recording(f"Kernel Tuner cache {Path(path).name}")
    if is_t4(value):
        return from_t4(value, str(path)).recording(f"T4 results {Path(path).name}")
    hint = "these have `schema`, `cache` or `results`"
    raise StoreError(f"{path} is JSON, but no recording, Kernel Tuner cache or T4 results", hint=hint)


def write_measured(path: str | Path, measured: Measured, kind: str) -> None:
    """Write in a format of FORMATS, gzipped where the name ends in .gz. Raises UnknownNameError, StoreError."""
    if kind not in FORMATS:
        raise UnknownNameError("format", kind, FORMATS)
    FORMATS[kind](Path(path), measured)
