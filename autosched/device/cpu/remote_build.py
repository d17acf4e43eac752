"""What the build process is asked for, and answers: a build from the plan on. For some kernels
lowering and printing take as long as LLVM does, and a search has better to do meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from autosched.device.protocol import Build
from autosched.tiling.candidate import Candidate


@dataclass(frozen=True)
class BuildRequest:
    """A candidate for another process: its plan, pickled, and a row of it. `scalars` and `violations` are those of a
    draft; `cpu` and `features` what to compile for."""

    plan: bytes = field(repr=False)
    row: int
    scalars: dict[str, Any]
    violations: tuple[str, ...]
    cpu: str | None
    features: str | None


@dataclass(frozen=True)
class BuildResult:
    """A `Build` without its candidate, which the requester has."""

    payload: Any
    error: str | None
    seconds: float
    kernel_sha: str | None
    extra: dict[str, Any]

    def build(self, candidate: Candidate) -> Build:
        return Build(candidate, self.payload, self.error, self.seconds, self.kernel_sha, self.extra)
