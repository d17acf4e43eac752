"""Files: those that a person names are read within a limit, with errors that say what is wrong; caches are written
whole."""

from __future__ import annotations

import os
from pathlib import Path

from autosched.errors import AutoschedError, Location, UsageError


def read_bytes(path: str | Path, kind: type[AutoschedError], most: int, hint: str | None = None) -> bytes:
    """What is in the file. Raises `kind` where it cannot be read or is larger than `most` bytes."""
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(most + 1)
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = error.strerror if isinstance(error, OSError) else None
        raise kind(f"cannot read {path}: {reason or error}", hint=hint) from None
    if len(data) > most:
        raise kind(f"{path} is larger than {most:,} bytes", hint="split it into several files")
    return data


def read_text(path: str | Path, kind: type[AutoschedError], most: int, hint: str | None = None) -> str:
    """The file as UTF-8 text, without a mark at its start. Raises as `read_bytes` does, and for other text."""
    data = read_bytes(path, kind, most, hint)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise kind(f"{path} is not UTF-8 text", location=Location(str(path), line)) from None


def write_text(path: Path, text: str) -> None:
    """What `-o` asks for. UsageError where the file cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint="give another path with -o") from None


def write_whole(path: Path, data: bytes) -> None:
    """Write a file such that readers see all of it or the one before. OSError where the folder cannot be written."""
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():  # a pipe or a device has nothing that could be half written
        path.write_bytes(data)
        return
    made = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        made.write_bytes(data)
        os.replace(made, path)
    except BaseException:
        made.unlink(missing_ok=True)
        raise
