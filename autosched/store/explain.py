"""Where a store is, what went wrong with it, and what helps: the text of store errors."""

from __future__ import annotations

from pathlib import Path

from autosched.errors import StoreError

MEMORY = ":memory:"

_HINTS = {
    "not a database": "the file is something else; give --store another path",
    "malformed": "the file is damaged; give --store another path, or restore a copy",
    "disk is full": "free some space and run the same command again; finished trials in the store are safe",
    "disk I/O": "check the disk, then run the same command again; finished trials in the store are safe",
    "locked": "another process is writing to this store; wait for it, or give --store another path",
    "readonly": "the file or its folder is read-only; make it writable, or give --store another path",
    "unable to open": "check that the folder exists and may be written, or give --store another path",
    "UNIQUE constraint": "another process is tuning the same study; let one of them finish, or name another study",
}


def plain_text(text: str) -> str:
    """What SQLite says, in words of ours where its own are of tables."""
    return "this trial is there already" if text.startswith("UNIQUE constraint failed: trial") else text


def hint_for(text: str) -> str | None:
    return next((hint for part, hint in _HINTS.items() if part in text), None)


def path_of(location: str | Path) -> str:
    """The file's path; `sqlite:///a.db` is relative to here, `sqlite:////a.db` is absolute, as SQLAlchemy has it."""
    text = str(location)
    if text in (MEMORY, "sqlite://", "sqlite:///:memory:"):
        return MEMORY
    if text.startswith("sqlite:///"):
        text = text.removeprefix("sqlite:///")
    elif "://" in text:
        scheme = text.split("://", 1)[0]
        raise StoreError(f"a store is an SQLite file, not {scheme}://", hint="use a path, sqlite:///path or :memory:")
    if not text:
        raise StoreError("the store's path is empty", hint="use a path, sqlite:///path or :memory:")
    return str(Path(text).expanduser())


def describe_difference(fields: dict[str, tuple[str | None, str | None]]) -> str:
    """The differing fields as one phrase: short values in full, long ones by name only.

    >>> describe_difference({"target": ("zen4", "spr"), "program": ("def a(): …" * 9, "def b(): …" * 9)})
    "target (stored 'zen4', wanted 'spr'), program"
    """
    parts = []
    for name, (stored, wanted) in fields.items():
        short = all(value is None or (len(value) <= 40 and "\n" not in value) for value in (stored, wanted))
        parts.append(f"{name} (stored {stored!r}, wanted {wanted!r})" if short else name)
    return ", ".join(parts)
