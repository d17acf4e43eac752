"""What candidates are measured on: the program within all that their plans take for granted."""

from __future__ import annotations

import threading

from autosched.device.correctness.violations import assuming
from autosched.ir.program import Program
from autosched.tiling.plans.plan import Plan


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
