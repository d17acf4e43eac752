"""Says what of a file counts for nothing."""

from __future__ import annotations

from autosched.cli.output import talk
from autosched.report.text import counted
from autosched.store.measured import LEFT_OUT, REPLACED
from autosched.store.recorded_space import RecordedSpace


def tell_replaced(file: str, recording: RecordedSpace, quiet: bool, first: bool = True) -> None:
    """A line where configurations were measured more than once: the last measurement of each counts. For the `first`
    recording of a file also a line for what else was left out of the file."""
    if quiet:
        return
    if replaced := int(recording.settings.get(REPLACED, 0)):
        said = f"{counted(replaced, 'measurement')} of configurations that were measured again: the last one counts"
        talk().print(f"{file}: left out {said}", markup=False)
    for said in recording.settings.get(LEFT_OUT, ()) if first else ():
        talk().print(f"{file}: left out {said}", markup=False)
