"""What a store must do: open a study, append a trial, read the trials, list the studies."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from autosched.store.records import StudyRecord, Trial


class Store(Protocol):
    """Keeps studies. A trial whose `append` has returned survives the end of the process, however it ends."""

    def open(self, record: StudyRecord, *, fresh: bool = False) -> StudyRecord:
        """Create the study, or continue the one of that name, and return it as stored (with its first seed).

        `fresh` deletes an existing study of that name first. Raises StoreError when the stored key differs."""
        ...

    def append(self, study: str, trial: Trial) -> None:
        """Keep one trial. Raises StoreError when it cannot be kept; earlier trials stay as they are."""
        ...

    def trials(self, study: str) -> list[Trial]:
        """All trials of a study in the order they were appended. Raises StoreError for an unknown study."""
        ...

    def studies(self) -> list[StudyRecord]:
        """All studies, oldest first."""
        ...


@runtime_checkable
class Keeper(Protocol):
    """A store that also keeps, with a study, what its search worked out before anything was measured."""

    def keep(self, study: str, key: str, body: bytes) -> None:
        """Keep `body` with a study in place of what was there. Raises StoreError for an unknown study, and when it
        cannot be kept."""
        ...

    def kept(self, study: str, key: str) -> bytes | None:
        """What was kept with the study under this key; None where there is none. Raises StoreError when the store
        cannot be read."""
        ...


def differing_fields(stored: dict[str, str], wanted: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """The fields of two keys that differ, each with (stored, wanted); None where a side lacks the field.

    >>> differing_fields({"target": "a", "device": "cpu"}, {"target": "b", "device": "cpu"})
    {'target': ('a', 'b')}
    """
    names = [*stored, *(name for name in wanted if name not in stored)]
    return {name: (stored.get(name), wanted.get(name)) for name in names if stored.get(name) != wanted.get(name)}
