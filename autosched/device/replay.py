"""The `replay` device: answers with what was recorded, so that strategies and models are compared without a machine."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from autosched.device.protocol import Build
from autosched.errors import AutoschedError, UsageError
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.store.recorded_space import RecordedSpace
from autosched.store.records import Measurement
from autosched.store.replay_file import read_replay
from autosched.tiling.candidate import Candidate
from autosched.tiling.space.listed import ListedSpace

REPEATS = ("search", "final")


class ReplayDevice:
    """Serves a recording: the file at `path`, or one that was read already.

    A candidate is known by its plan's name and the names and labels of its decisions, so candidates of the space that
    was recorded from are served as well as those of the recording. What was not recorded is refused. Every answer is
    always the same; `seed` changes nothing, and `threads` and `cache` must be those of the recording. Raises UsageError
    for a recording of another program, StoreError for a file that is none.
    """

    name = "replay"

    def __init__(
        self,
        program: Program | None = None,
        target: Target | None = None,
        *,
        path: str = "",
        recording: RecordedSpace | None = None,
        threads: int | None = None,
        seed: int = 0,
        cache: str | None = None,
    ) -> None:
        if recording is None and not path:
            raise UsageError("the device replay needs a recording", hint="-d replay:FILE")
        self.recording = recording or read_replay(path)
        made = self.recording.device
        for what, asked in (("threads", threads), ("cache", cache)):
            if asked is not None and what in made and made[what] != asked:
                raise UsageError(f"{self.recording.name} was recorded with {what} {made[what]}, not {asked}")
        if program is not None and str(program) != self.recording.program:
            raise UsageError(
                f"{path or self.recording.name} is a recording of {self.recording.name}, not of this {program.name}",
                hint=f"its program and sizes:\n{self.recording.program}" if self.recording.program else None,
            )
        self._plans = {p.name: (p, p.space()) for p in self.recording.plans}

    def describe(self) -> dict[str, Any]:
        """What results depend on: the recording."""
        said = dict(self.recording.device)
        rows = "".join(f"{name} {space.version}" for name, (_, space) in sorted(self._plans.items()))
        times = b"".join(p.time_s.tobytes() for p in self.recording.plans)
        return {
            "name": self.name,
            "kind": "replay",
            "recording": self.recording.name,
            "rows": len(self.recording),
            "version": hashlib.sha256(rows.encode() + times).hexdigest()[:16],
            "of": str(said.get("cpu") or said.get("name") or self.recording.source),
        }

    def build(self, candidate: Candidate) -> Build:
        """`payload` is the row's place in its plan; nothing is compiled."""
        place = self._place(candidate)
        if place is None:
            said = f"{candidate.key} is not among the {len(self.recording)} recorded rows"
            return Build(candidate, error=said, extra={"status": "refused"})
        return Build(candidate, place, kernel_sha=hashlib.sha256(candidate.key.encode()).hexdigest()[:16])

    def measure(self, build: Build, repeats: str = "search") -> Measurement:
        """The recorded outcome; `final` too has no other."""
        if repeats not in REPEATS:
            raise UsageError(f"repeats is one of {', '.join(REPEATS)}, not {repeats!r}")
        if build.error is not None or build.payload is None:
            return Measurement(build.extra.get("status", "build"), message=build.error or "nothing was built")
        plan, _ = self._plans[build.candidate.plan.name]
        said = {"verified": False, "verified_by": "recorded as right"}  # nothing ran here
        return replace(plan.measurement(int(build.payload)), extra=said, kernel_sha=build.kernel_sha)

    def close(self) -> None:
        """Nothing is held."""

    def _place(self, candidate: Candidate) -> int | None:
        found = self._plans.get(candidate.plan.name)
        if found is None:
            return None
        space, theirs, row = found[1], candidate.plan.space, candidate.row
        if not isinstance(theirs, ListedSpace) or theirs.version != space.version:
            try:
                row = space.row_of(candidate.schedule.named)
            except AutoschedError:
                return None
        place = int(space.places([row])[0])
        return place if place >= 0 else None
