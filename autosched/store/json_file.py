"""JSON files, our own and of other tools, gzipped or not, and what can be wrong with them."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autosched.errors import Location, StoreError
from autosched.escape import json_text
from autosched.json_text import parse_json
from autosched.text_file import read_bytes

MAX_BYTES = 1 << 28
"""Of the text, unpacked: the largest published file has some tens of millions."""


@dataclass(frozen=True)
class JsonLines:
    """A file of several JSON values, one a line: each with the number of its line."""

    values: tuple[tuple[int, Any], ...]


def read_json(path: Path, most_bytes: int = MAX_BYTES) -> Any:
    """The JSON value in a file, through gzip where its first bytes say so. StoreError where it is cut short or none, or
    longer than `most_bytes` once it is unpacked."""
    return json_of(path, unpacked_text(path, most_bytes))


def unpacked_text(path: Path, most_bytes: int = MAX_BYTES) -> str:
    """A file's text, through gzip where its first bytes say so. StoreError where it is cut short or no text, or longer
    than `most_bytes` once it is unpacked."""
    try:
        data = read_bytes(path, StoreError, most_bytes, "give a recording, or a file of another tuner")
        if data[:4] == b"PK\x03\x04":
            raise StoreError(f"{path} is a zip archive", hint="unpack it, and give the file that is in it")
        if data[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
                data = unpacked.read(most_bytes + 1)
            if len(data) > most_bytes:
                said = f"{path} unpacks to more than {most_bytes:,} bytes"
                raise StoreError(said, hint="split it into several files")
        return data.decode("utf-8")
    except gzip.BadGzipFile as error:
        raise StoreError(f"{path} is damaged: {error}") from error
    except (EOFError, zlib.error) as error:
        raise StoreError(f"{path} is cut short or damaged: {error}", hint="copy or download it again") from error
    except UnicodeDecodeError as error:
        raise StoreError(f"{path} is not text, nor text that gzip compressed") from error


def json_of(path: Path, text: str) -> Any:
    """The JSON value that a text of this file is. Raises StoreError."""
    try:
        return parse_json(text, finite=False)  # other tools write NaN where a figure is missing
    except json.JSONDecodeError as error:
        raise _no_json(path, error) from error
    except ValueError as error:
        raise StoreError(f"{path}: {error}") from error


def lines_of(path: Path, text: str) -> JsonLines | None:
    """The values of a text that holds several JSON objects, one a line (empty lines and comments, `# …`, are passed
    over); None where it is no such text. StoreError where a later line is none, or cut short."""
    found = [
        (number, line)
        for number, line in enumerate(text.split("\n"), start=1)
        if (kept := line.strip()) and not kept.startswith("#")
    ]
    if len(found) < 2 or not found[0][1].lstrip().startswith("{"):
        return None
    values: list[tuple[int, Any]] = []
    for number, line in found:
        try:
            values.append((number, parse_json(line, finite=False)))
        except ValueError as error:
            if not values:
                return None  # a value of several lines
            if number == found[-1][0] and not text.endswith("\n"):
                hint = "copy the file again, or remove the line: a tuner was stopped while it wrote it"
                said = f"{path} is cut short: line {number} ends in the middle of a value"
                raise StoreError(said, hint=hint) from error
            raise StoreError(f"{path}:{number}: not JSON: {error}") from error
    return JsonLines(tuple(values))


def write_json(path: Path, value: Any) -> None:
    """Write through gzip where the name ends in .gz. Raises StoreError where the file cannot be written."""
    data = json_text(value, allow_nan=False, indent=1).encode()
    try:
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}", hint="give another path") from error


def _no_json(path: Path, error: json.JSONDecodeError) -> StoreError:
    if not error.doc.strip():
        return StoreError(f"{path} is empty", hint="copy the file again, or name another")
    if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string"):
        return StoreError(
            f"{path} is cut short: it ends in line {error.lineno}, in the middle of a value",
            hint="copy the file again; of a Kernel Tuner cache the closing braces are missing until its run has ended",
        )
    line = error.doc.splitlines()[error.lineno - 1] if error.doc else ""
    place = Location(str(path), error.lineno, error.colno, line if len(line) < 120 else "")
    xml = "KTT writes JSON, too: OutputFormat::JSON" if error.doc.lstrip().startswith("<") else None
    return StoreError(f"not JSON: {error.msg}", hint=xml, location=place)
