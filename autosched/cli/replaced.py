"""Says which measurements of a file count for nothing."""

from __future__ import annotations

from autosched.cli.output import talk
from autosched.report.text import counted
from autosched.store.measured import REPLACED
from autosched.store.recorded_space import RecordedSpace


def tell_replaced(file: str, recording: RecordedSpace, quiet: bool) -> None:
    """A line where configurations were measured more than once: the last measurement of each counts."""
    replaced = int(recording.settings.get(REPLACED, 0))
    if replaced and not quiet:
        said = f"{counted(replaced, 'measurement')} of configurations that were measured again: the last one counts"
        talk().print(f"{file}: left out {said}", markup=False)
