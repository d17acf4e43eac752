"""Builds that the builder's process makes from the plan on: lowering and printing take as long as LLVM does for some
kernels, and a search has better to do meanwhile."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any

from autosched.device.cpu.build import draft, finished
from autosched.device.cpu.compiled import Compiled
from autosched.device.protocol import Build
from autosched.errors import MissingError
from autosched.tiling.plans.plan import Plan
from autosched.tiling.schedule import Candidate


@dataclass(frozen=True)
class Order:
    """A candidate for another process: its plan, pickled, and a row of it. `scalars` and `violations` are those of a
    draft; `cpu` and `features` what to compile for."""

    plan: bytes = field(repr=False)
    row: int
    scalars: dict[str, Any]
    violations: tuple[str, ...]
    cpu: str | None
    features: str | None


@dataclass(frozen=True)
class Filled:
    """A `Build` without its candidate, which the one who ordered it has."""

    payload: Any
    error: str | None
    seconds: float
    kernel_sha: str | None
    extra: dict[str, Any]

    def build(self, candidate: Candidate) -> Build:
        return Build(candidate, self.payload, self.error, self.seconds, self.kernel_sha, self.extra)


class Orders:
    """The builder's side: plans are kept, with what was found out about them."""

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        self._plans: dict[bytes, Plan] = {}

    def fill(self, order: Order) -> Filled | None:
        """The order's build; None where this process lacks something, which the other one had better say itself."""
        if order.plan not in self._plans:
            self._plans[order.plan] = pickle.loads(order.plan)
        candidate = Candidate(self._plans[order.plan], order.row)
        try:
            made = draft(candidate, order.scalars, order.violations)
            built = finished(made, lambda: self._compiled.objects(made.texts, order.cpu, order.features))
        except MissingError:
            return None
        return Filled(built.payload, built.error, built.seconds, built.kernel_sha, built.extra)
