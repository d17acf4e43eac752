"""`ClaimableBuild`: a build claimed by whichever process is free first: the caller, which prints the candidate ahead of
need, or the build process, when the build's turn comes and it has loaded what that takes."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Lock
from typing import Generic, TypeVar

from autosched.device.protocol import Build
from autosched.tiling.plans.plan import Plan

T = TypeVar("T")
LOOK_S = 5e-3
"""Between two questions whether the builder's process can print."""


class ClaimableBuild(Generic[T]):
    """`here` prints in this process, and `compiled` builds what it answered; `there` does both elsewhere, once `ready`
    says that it can."""

    def __init__(
        self,
        here: Callable[[], T],
        compiled: Callable[[T], Build],
        there: Callable[[], Build],
        ready: Callable[[], bool] = lambda: True,
    ) -> None:
        self._here, self._compiled, self._there, self._ready = here, compiled, there, ready
        self._lock = Lock()
        self._begun = False
        self._printed: Future[T] = Future()

    def ahead(self) -> None:
        """Print it here, unless somebody has begun. What goes wrong is raised by the build."""
        try:
            if self._first():
                self._printed.set_result(self._here())
        except BaseException as error:
            if not self._printed.done():
                self._printed.set_exception(error)  # a build must not wait for ever, wherever Ctrl-C came
            if not isinstance(error, Exception):
                raise

    def __call__(self) -> Build:
        while not self._begun and not self._ready():
            wait([self._printed], LOOK_S)
        return self._there() if self._first() else self._compiled(self._printed.result())

    def _first(self) -> bool:
        with self._lock:
            begun, self._begun = self._begun, True
            return not begun


class PickledPlans:
    """Plans as bytes, each pickled once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Plan, bytes]] = {}  # with the plan, whose id stays its own then

    def of(self, plan: Plan) -> bytes:
        if id(plan) not in self._known:
            self._known[id(plan)] = plan, pickle.dumps(plan)
        return self._known[id(plan)][1]
