"""The names by which a command accepts a study: the long one, its beginning, the short one, or the digest alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from autosched.errors import UsageError
from autosched.store.records import StudyRecord

_DIGEST = re.compile(r"@.*-([0-9a-f]{6})$")


def short_name(record: StudyRecord) -> str:
    """The program's name and the digest that ends the study's name, as in `matmul-896d4d`; the name itself where it
    has no digest.

    >>> short_name(StudyRecord("matmul-m64@zen3-cpu-896d4d", {}, "", "matmul", "zen3", "cpu", 0))
    'matmul-896d4d'
    """
    digest = _DIGEST.search(record.name)
    return f"{record.program_name}-{digest[1]}" if digest else record.name


def named(text: str, records: Sequence[StudyRecord]) -> str | None:
    """The name of the one study that `text` names; None where none is named so.

    A whole name counts before a program's, and that before a beginning. Raises UsageError where several studies are
    meant.
    """
    for accepts in (_is, _of_program, _begins):
        found = [record for record in records if accepts(record, text)]
        if len(found) == 1:
            return found[0].name
        if found:
            names = ", ".join(short_name(record) for record in found[:6])
            raise UsageError(f"{len(found)} studies begin with {text!r}", hint=f"name one: {names}")
    return None


def _is(record: StudyRecord, text: str) -> bool:
    short = short_name(record)
    return text in (record.name, short, short.rpartition("-")[2])


def _of_program(record: StudyRecord, text: str) -> bool:
    return text == record.program_name


def _begins(record: StudyRecord, text: str) -> bool:
    return record.name.startswith(text) or short_name(record).startswith(text)
