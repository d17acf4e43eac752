"""The solver's questions written out as SMT-LIB 2.6, so that anyone can ask another solver.

Proofs are made in many places; the folder to write to is therefore a context variable, set for the time of one call,
and no argument of every proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autosched.errors import UsageError
from autosched.escape import printable
from autosched.logic.solver import proving, z3

_LONGEST_NAME = 60


@dataclass
class _Folder:
    path: Path
    seen: set[str] = field(default_factory=set)


_FOLDER: ContextVar[_Folder | None] = ContextVar("smt_folder", default=None)


@contextmanager
def written_to(folder: Path | None) -> Iterator[None]:
    """Questions asked meanwhile are written to `folder`, made where it is missing, one file each; None: to nowhere.

    UsageError where it cannot be made.
    """
    if folder is None:
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise UsageError(f"{folder} cannot be made a folder: {e.strerror}", hint="name another folder") from None
    token = _FOLDER.set(_Folder(folder))
    try:
        yield
    finally:
        _FOLDER.reset(token)


def is_written() -> bool:
    """Whether questions are written to a folder: each has to be asked then."""
    return _FOLDER.get() is not None


@proving
def asked(part: str, statement: str, solver: z3.Solver, answer: Any) -> None:
    """Writes a question with its answer where a folder was given. `unsat` proves the statement."""
    folder = _FOLDER.get()
    if folder is None:
        return
    body = _standard(solver.to_smt2())
    if statement + body in folder.seen:
        return
    folder.seen.add(statement + body)
    number = len(folder.seen)
    slug = re.sub(r"[^a-z0-9]+", "-", statement.lower()).strip("-")[:_LONGEST_NAME].strip("-")
    meaning = {"unsat": "proved", "sat": "refuted"}.get(str(answer), "not decided within the limit")
    head = f"; {part}: {printable(statement)}\n; unsat proves it; z3 {z3.get_version_string()}: {answer}, {meaning}\n"
    status = f"(set-logic ALL)\n(set-info :status {answer})\n"
    text = body.removeprefix("; benchmark generated from python API\n")
    (folder.path / f"{number:04d}-{part}-{slug}.smt2").write_text(head + status + text, encoding="utf-8")


def _standard(text: str) -> str:
    """z3's text as other solvers read it: without its status, and names with a prime in bars."""
    body = re.sub(r"^\(set-info :status \w+\)\n", "", text, flags=re.MULTILINE)
    parts = body.split("|")  # every second part stands in bars already
    parts[::2] = [re.sub(r"[A-Za-z_]\w*'", r"|\g<0>|", part) for part in parts[::2]]
    return "|".join(parts)
