"""Programs that commands write: files of ours may be overwritten, files of a person never."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from autosched.errors import UsageError


def write_program(path: Path, command: str, said: Sequence[str], program: str, flag: str) -> None:
    """Write a program below what the command says of it. UsageError where the file cannot be written, or is there and
    the command did not write it."""
    ours = f"# Written by `autosched {command}`"
    try:
        if path.is_file() and not path.read_text(encoding="utf-8", errors="replace").startswith(ours):
            raise UsageError(f"{path} exists, and autosched did not write it", hint=f"give {flag} another path")
        path.write_text("\n".join([ours, *(f"# {line}" for line in said), "", program]), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint=f"give {flag} another path") from None
