"""`Building`: the builds of a search, whatever a candidate or the device does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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

    def each(self, candidates: Sequence[Candidate]) -> Iterator[Build]:
        """One a candidate, in order, on a device that measures aside: each as soon as it is there."""
        assert isinstance(self.device, Aside)
        builds = self.device.build_each(candidates)
        for candidate in candidates:
            with self.watch.phase("build"):
                try:
                    build = next(builds)
                except (MissingError, StoreError):
                    raise
                except Exception:  # a mistake of ours in one of them: one by one, the others can be measured
                    builds, build = iter(()), self.one(candidate)
            yield build

    def _together(self, device: BuildsMany, candidates: Sequence[Candidate]) -> list[Build]:
        with self.watch.phase("build"):
            try:
                return device.build_all(candidates)
            except (MissingError, StoreError):
                raise
            except Exception:  # as in `each`
                return []
