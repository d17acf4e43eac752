"""What candidates are measured on: the program within all that their plans take for granted, and a folder of data."""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path

from autosched.device.violations import assuming
from autosched.ir.program import Program
from autosched.tiling.plan import Plan


class Widening:
    """The program whose data candidates are measured on: `program` (None: their plans' own) within what their plans,
    and those of candidates before them, check or take for granted. Several threads may ask."""

    def __init__(self, program: Program | None) -> None:
        self._program = program
        self._lock = threading.Lock()
        self._latest: tuple[Program, Program] | None = None

    def of(self, *plans: Plan) -> Program:
        """The same object as before where the plans, of one program, add nothing."""
        base = self._program or plans[0].program
        with self._lock:
            before = base if self._latest is None or self._latest[0] is not base else self._latest[1]
            wider = assuming(before, [a for plan in plans for a in (*plan.guards, *plan.granted)])
            self._latest = base, wider
        return wider


class Folder:
    """A temporary folder, made when first wanted."""

    def __init__(self) -> None:
        self._made: tempfile.TemporaryDirectory[str] | None = None

    @property
    def path(self) -> Path:
        if self._made is None:
            self._made = tempfile.TemporaryDirectory(prefix="autosched-")
        return Path(self._made.name)

    def emptied(self) -> Path:
        """The folder, with nothing in it."""
        for old in self.path.iterdir():
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        return self.path

    def close(self) -> None:
        """Remove it, and all that is in it."""
        if self._made is not None:
            self._made.cleanup()
            self._made = None
