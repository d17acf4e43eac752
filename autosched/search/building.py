"""`Building`: the builds of a search, whatever a candidate or the device does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from autosched.device.protocol import Aside, Build, BuildsMany, Device
from autosched.errors import MissingError, StoreError
from autosched.search.measuring import said
from autosched.search.stopwatch import Stopwatch
from autosched.tiling.schedule import Candidate


class Building:
    """Builds candidates on the device; all of it counts as the phase `build`. Raises MissingError and StoreError."""

    def __init__(self, device: Device, watch: Stopwatch) -> None:
        self.device, self.watch = device, watch

    def one(self, candidate: Candidate) -> Build:
        with self.watch.phase("build"):
            try:
                return self.device.build(candidate)
            except (MissingError, StoreError):
                raise
            except Exception as error:
                return Build(candidate, error=said(error))

    def all(self, candidates: Sequence[Candidate], together: bool) -> Iterator[Build]:
        """One a candidate, in order: all of them before the first, where they may be built `together` and the device is
        quicker so."""
        if together and len(candidates) > 1 and isinstance(self.device, BuildsMany):
            found = self._together(self.device, candidates)
            if found:
                return iter(found)
        return (self.one(c) for c in candidates)

    def draft(self, candidate: Candidate) -> Callable[[], Build]:
        """On a device that measures aside: what is to be built there, as far as it can be here."""
        assert isinstance(self.device, Aside)
        with self.watch.phase("build"):
            try:
                return self.device.draft(candidate)
            except (MissingError, StoreError):
                raise
            except Exception as error:
                return partial(Build, candidate, error=said(error))

    def _together(self, device: BuildsMany, candidates: Sequence[Candidate]) -> list[Build]:
        with self.watch.phase("build"):
            try:
                return device.build_all(candidates)
            except (MissingError, StoreError):
                raise
            except Exception:  # a mistake of ours in one of them: one by one, the others can be measured
                return []
