"""Builds from the plan on, in the build process: lowered, printed and compiled."""

from __future__ import annotations

import pickle
from collections.abc import Callable

from autosched.device.cpu.build import LoweredCandidate, draft, finished
from autosched.device.cpu.compiled import Compiled
from autosched.device.cpu.remote_build import BuildRequest, BuildResult
from autosched.errors import MissingError
from autosched.tiling.candidate import Candidate
from autosched.tiling.plans.plan import Plan


class BuildServer:
    """Answers build requests, lowering and printing with `draft`; keeps each plan, with what was found out about it."""

    def __init__(self, compiled: Compiled, draft: Callable[..., LoweredCandidate] = draft) -> None:
        self._compiled, self._draft = compiled, draft
        self._plans: dict[bytes, Plan] = {}

    def build(self, request: BuildRequest) -> BuildResult | None:
        """The request's build; None where this process lacks something, which the requester had better say itself."""
        if request.plan not in self._plans:
            self._plans[request.plan] = pickle.loads(request.plan)
        candidate = Candidate(self._plans[request.plan], request.row)
        try:
            made = self._draft(candidate, request.scalars, request.violations)
            built = finished(made, lambda: self._compiled.objects(made.texts, request.cpu, request.features))
        except MissingError:
            return None
        return BuildResult(built.payload, built.error, built.seconds, built.kernel_sha, built.extra)
