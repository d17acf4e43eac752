"""`BackgroundBuilds`: makes builds in a thread of its own while others are measured. Most of the time that thread waits
for the build process."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from threading import Condition

from autosched.device.processes.daemon_thread import DaemonThread, settled
from autosched.device.protocol import Build, Draft

AHEAD = 2
"""Builds that are begun before anybody wants them, at most: what is measured next is there then, and whoever proposes
keeps most of the processors that are not timing."""
PATIENCE_S, LIMIT_S = 0.5, 5.0
"""As `MeasureThread`'s."""


class BackgroundBuilds:
    """Makes builds in the order of their drafts, which is the order in which they are taken."""

    def __init__(self) -> None:
        self._thread: DaemonThread | None = None
        self._news = Condition()
        self._builds: list[Future[Build]] = []
        self._added = self._wanted = self._dropped = 0
        """Drafts so far; those up to the last one that was called; those that were let go."""

    def add(self, draft: Draft) -> Draft:
        """A draft whose build begins AHEAD of its turn."""
        if self._thread is None:
            self._thread = DaemonThread("autosched-beside")
        number, self._added = self._added, self._added + 1
        build = self._thread.submit(lambda: self._made(draft, number))
        self._builds = [*(b for b in self._builds if not b.done()), build]
        return _Begun(draft, build, self, number)

    def want(self, number: int) -> None:
        """The build of this draft is wanted now."""
        with self._news:
            self._wanted = max(self._wanted, number + 1)
            self._news.notify()

    def give_up(self, stop: Callable[[], None] = lambda: None) -> None:
        """Cancel the builds that have not begun, and wait for the one that has; where that takes long, `stop` must end
        the process that it waits for."""
        with self._news:
            self._dropped = self._wanted = self._added
            self._news.notify()
        for build in self._builds:
            build.cancel()
        if not settled(self._builds, stop, PATIENCE_S, LIMIT_S):
            self._let_end()

    def close(self, stop: Callable[[], None] = lambda: None) -> None:
        """Let the thread end."""
        self.give_up(stop)
        self._let_end()

    def _let_end(self) -> None:
        if self._thread is not None:
            self._thread.close()
            self._thread = None

    def _made(self, draft: Draft, number: int) -> Build:
        with self._news:
            self._news.wait_for(lambda: number < max(self._wanted + AHEAD, self._dropped))
            if number < self._dropped:
                raise CancelledError
        return draft()


@dataclass(frozen=True)
class _Begun:
    """A draft that somebody else builds; to call it is to wait for the build."""

    draft: Draft
    build: Future[Build]
    background: BackgroundBuilds
    number: int

    def ahead(self) -> None:
        self.draft.ahead()

    def __call__(self) -> Build:
        self.background.want(self.number)
        return self.build.result()
