"""What runs on beside the interpreter's current statement: copies under way, barriers, roles of a block.

A copy that was started lands at once or as late as it may, as a seeded coin says, so that a kernel which reads too soon
or overwrites too soon computes wrong numbers or reads what nobody wrote. Roles take turns at their barriers, in random
order; where none can go on, that is a deadlock and said so.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from autosched.codegen.tree.kernel import KernelError

Action = Callable[[], None]


class DeadlockError(KernelError):
    """A barrier is awaited that nothing will ever signal."""


class _OverError(Exception):
    """Another role failed: this one ends where it waits."""


@dataclass
class _Role:
    """One role's thread of control; `ready` says whether what it waits for has come."""

    name: str
    body: Action
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    ready: Callable[[], bool] = lambda: True
    waits: str = ""
    done: bool = False
    error: BaseException | None = None


class Concurrency:
    """The state of one block (or cluster of blocks)."""

    def __init__(self, order: random.Random) -> None:
        self.order = order
        self.landing: list[Action] = []  # copies that will signal a barrier
        self.groups: dict[tuple[int, ...], list[Action]] = {}  # copies, and calls, by issuing worker, oldest first
        self.arrived: dict[tuple[str, int], int] = {}
        self.roles: list[_Role] = []
        self.current: _Role | None = None
        self.back = threading.Semaphore(0)
        self.over = False

    @property
    def role(self) -> str:
        """The role that runs now; empty where none does."""
        return self.current.name if self.current is not None else ""

    def begin(self) -> None:
        """A new block: its barriers have seen nothing."""
        self.arrived.clear()

    def end(self) -> None:
        """KernelError where copies are still under way as the block ends."""
        left = len(self.landing) + sum(map(len, self.groups.values()))
        self.landing.clear()
        self.groups.clear()
        if left:
            raise KernelError(f"{left} copies or calls were started and never waited for")

    def start_group(self, worker: tuple[int, ...], copy: Action, in_order: bool = False) -> None:
        """One more group of a worker; `in_order`: none runs before those that were started earlier."""
        groups = self.groups.setdefault(worker, [])
        if self.order.random() < 0.5:
            if in_order:
                for earlier in groups:
                    earlier()
                groups[:] = [_nothing] * len(groups)
            copy()
            copy = _nothing
        groups.append(copy)

    def wait(self, worker: tuple[int, ...], pending: int) -> None:
        groups = self.groups.get(worker, [])
        while len(groups) > pending:
            groups.pop(0)()

    def start(self, copy: Action, barrier: str, slot: int) -> None:
        early = self.order.random() < 0.5
        if early:
            copy()

        def land() -> None:
            if not early:
                copy()
            self.signal(barrier, slot)

        self.landing.append(land)

    def signal(self, barrier: str, slot: int) -> int:
        """One more arrival; how many there are."""
        key = barrier, slot
        self.arrived[key] = self.arrived.get(key, 0) + 1
        return self.arrived[key]

    def wait_for(self, barrier: str, slot: int, times: int) -> None:
        """Let others go on until the barrier's slot has seen so many arrivals."""

        def come() -> bool:
            return self.arrived.get((barrier, slot), 0) >= times

        role = self.current
        what = f"{barrier}[{slot}] x {times}"
        if role is not None:
            role.ready, role.waits = come, what
            self.back.release()
            role.turn.acquire()
            if self.over:
                raise _OverError
            return
        while not come():
            if not self.landing:
                raise DeadlockError(f"{what} is awaited, and no copy is under way")
            self._land()

    def run_roles(self, names: tuple[str, ...], bodies: list[Action]) -> None:
        """All bodies side by side, until each has ended; where one fails, the others end where they wait."""
        self.roles = [_Role(name, body) for name, body in zip(names, bodies, strict=True)]
        threads = [threading.Thread(target=self._life, args=(role,), daemon=True) for role in self.roles]
        for thread in threads:
            thread.start()
        try:
            while left := [r for r in self.roles if not r.done]:
                self._go_on(left)
        finally:
            self.over = True
            for role, thread in zip(self.roles, threads, strict=True):
                role.turn.release()
                thread.join()
            self.roles, self.current, self.back, self.over = [], None, threading.Semaphore(0), False

    def _go_on(self, left: list[_Role]) -> None:
        """Land a copy, or let one role run until it waits."""
        able = [r for r in left if r.ready()]
        if self.landing and (not able or self.order.random() < 0.3):
            self._land()
            return
        if not able:
            raise DeadlockError("; ".join(f"{r.name} awaits {r.waits}" for r in left))
        role = self.order.choice(able)
        self.current = role
        role.turn.release()
        self.back.acquire()
        self.current = None
        if role.error is not None:
            raise role.error

    def _life(self, role: _Role) -> None:
        role.turn.acquire()
        try:
            if not self.over:
                with np.errstate(all="ignore"):
                    role.body()
        except _OverError:
            pass
        except BaseException as error:
            role.error = error
        role.done = True
        self.back.release()

    def _land(self) -> None:
        self.landing.pop(self.order.randrange(len(self.landing)))()


def _nothing() -> None:
    """A copy that has landed already."""
