"""What a device must do: describe itself, build a candidate, measure the build, close."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from autosched.store.records import Measurement
from autosched.tiling.schedule import Candidate


@dataclass(frozen=True)
class Build:
    """The outcome of a build. `payload` is the device's own (an object file, a kernel); `error` says why it is None."""

    candidate: Candidate
    payload: Any = None
    error: str | None = None
    seconds: float = 0.0
    kernel_sha: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


class Device(Protocol):
    """Something that can time. One instance serves one thread; nothing of the candidate may end the caller."""

    def describe(self) -> dict[str, Any]:
        """Name, kind and toolchain: part of a study's key."""
        ...

    def build(self, candidate: Candidate) -> Build:
        """Lower and compile; never raises for a candidate's own fault."""
        ...

    def measure(self, build: Build, repeats: str = "search") -> Measurement:
        """Check against the oracle, then time. `repeats` is `search` or `final` (more samples)."""
        ...

    def close(self) -> None:
        """Stop workers, free memory."""
        ...


@runtime_checkable
class BuildsMany(Protocol):
    """A device that builds several candidates in less time than one after the other."""

    def build_all(self, candidates: Sequence[Candidate]) -> list[Build]:
        """One build a candidate, in order, as `Device.build` makes it."""
        ...
