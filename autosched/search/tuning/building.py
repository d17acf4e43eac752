"""`Building`: the builds of a search, whatever a candidate or the device does."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from autosched.device.checked import build_of, builds_of
from autosched.device.protocol import Aside, Build, BuildsAhead, BuildsMany, Device, Draft
from autosched.errors import MissingError, StoreError
from autosched.search.stopwatch import Stopwatch
from autosched.search.tuning.measuring import said
from autosched.tiling.candidate import Candidate


class Building:
    """Builds candidates on the device; all of it counts as the phase `build`. Raises MissingError and StoreError."""

    def __init__(self, device: Device, watch: Stopwatch) -> None:
        self.device, self.watch = device, watch

    def one(self, candidate: Candidate) -> Build:
        with self.watch.phase("build"):
            try:
                return build_of(self.device.build(candidate), candidate, self.device)
            except (MissingError, StoreError):
                raise
            except Exception as error:
                return Build(candidate, error=said(error))

    def all(self, candidates: Sequence[Candidate], together: bool) -> Iterator[Build]:
        """One a candidate, in order: all of them before the first, or begun by then, where they may be built `together`
        and the device is quicker so."""
        if together and len(candidates) > 1 and isinstance(self.device, BuildsAhead):
            return self._ahead(self.device, candidates)
        if together and len(candidates) > 1 and isinstance(self.device, BuildsMany):
            found = self._together(self.device, candidates)
            if found:
                return iter(found)
        return (self.one(c) for c in candidates)

    def draft(self, candidate: Candidate) -> Draft:
        """A build that is yet to be made, on a device that measures aside."""
        assert isinstance(self.device, Aside)
        with self.watch.phase("build"):
            try:
                return self.device.draft(candidate)
            except (MissingError, StoreError):
                raise
            except Exception as error:
                return _Failed(Build(candidate, error=said(error)))

    def ahead(self, draft: Draft) -> None:
        """Do what can be done of it here."""
        with self.watch.phase("build"):
            draft.ahead()

    def _ahead(self, device: BuildsAhead, candidates: Sequence[Candidate]) -> Iterator[Build]:
        made, left = device.builds(candidates), deque(candidates)
        while left:
            with self.watch.phase("build"):
                try:
                    build = build_of(next(made), left[0], device)
                except (MissingError, StoreError):
                    raise
                except Exception:  # a mistake of ours in one of them: one by one, the others can be measured
                    break
            left.popleft()
            yield build
        yield from (self.one(c) for c in left)

    def _together(self, device: BuildsMany, candidates: Sequence[Candidate]) -> list[Build]:
        with self.watch.phase("build"):
            try:
                return builds_of(device.build_all(candidates), candidates, device)
            except (MissingError, StoreError):
                raise
            except Exception:  # a mistake of ours in one of them: one by one, the others can be measured
                return []


@dataclass(frozen=True)
class _Failed:
    """A draft that came to nothing."""

    build: Build

    def ahead(self) -> None:
        pass

    def __call__(self) -> Build:
        return self.build
