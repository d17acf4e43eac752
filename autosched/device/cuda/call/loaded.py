"""`LoadedLaunches`: a kernel's code and memory on one GPU, and its launches with their arguments, kept by what they
depend on.

A call finds its launches by the stream, the addresses and the scalars: what was called so before is issued as it is.
Memory of the kernel's own belongs to a stream, and in a graph that is being recorded to that graph, so that calls on
several streams, or a graph beside other calls, do not meet there; it lives as long as this does.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autosched.device.cuda.driver import Card
from autosched.device.cuda.launch_job import CudaJob, LaunchCall
from autosched.device.cuda.launcher import Launcher, Template

MOST = 1024
"""Calls whose launches are kept."""
Key = tuple[Any, ...]
"""The stream, then addresses and scalars' bytes, in the parameters' order."""
Calls = Callable[[Sequence[bytes]], tuple[LaunchCall, ...]]
"""Launches, given the scalars."""


class LoadedLaunches:
    """`calls` are what a call launches, of `job`'s code, maps and memory. `fixed` are addresses that all calls share:
    constants, and what was prepared of them. CudaError where the GPU refuses the code.

    Threads may call at once. Where there is memory of the kernel's own they issue one after the other.
    """

    def __init__(
        self, card: Card, job: CudaJob, calls: Calls, names: Sequence[str], fixed: Mapping[str, int] | None = None
    ) -> None:
        self.card, self.job, self.calls, self.names = card, job, calls, tuple(names)
        self.fixed = dict(fixed or {})
        self.held = {n: h for n, h in job.held.items() if n not in self.fixed}
        self.known: dict[Key, tuple[Launcher, ...]] = {}
        """Launches of calls that were made before: who asks need not look at its arguments again. Where there is memory
        of the kernel's own, only this object issues them."""
        self.direct = card.alone and not self.held
        """Whether whoever asks may run `known` launches one after the other, and call this where one fails."""
        self.issue = card.issue
        self._templates: dict[LaunchCall, Template] = {}
        self._last: tuple[tuple[LaunchCall, ...], tuple[Template, ...]] | None = None
        self._places: dict[Key, tuple[int, int]] = {}
        self._memory: dict[tuple[int, int], dict[str, int]] = {}
        self._lock = threading.RLock()
        self._closed = True
        with card.current():
            self._module = card.load(job.code)
            self._maps = card.maps(job.maps)
        self._closed = False

    def __call__(self, key: Key) -> None:
        """Issue the launches of a call, without waiting. CudaError."""
        if not self.held:
            self.issue(self.known.get(key) or self._made(key))
            return
        with self._lock:
            place = self.card.recording(key[0]), key[0]
            known = self.known.get(key)
            if known is None or self._places[key] != place:
                known = self._made(key, place)
            self.issue(known)

    def prepare(self, calls: Sequence[LaunchCall], stream: int) -> None:
        """Launch on the fixed addresses alone, once, and wait."""
        with self.card.current():
            addresses = self.fixed | (self._own((0, stream)) if calls else {})
            self.issue([self._template(call).at(addresses, self._maps, stream) for call in calls])
            self.card.wait("preparing", stream)

    def _made(self, key: Key, place: tuple[int, int] | None = None) -> tuple[Launcher, ...]:
        """The launches of a call, with memory of the `place` where there is any of the kernel's own."""
        count = 1 + len(self.names)
        with self._lock:
            calls = self.calls(key[count:])
            if len(self.known) >= MOST:
                self.known, self._places = {}, {}
                if self._maps.full:
                    self._maps = self.card.maps(self.job.maps)  # launches under way have the old ones
            there = self._last is not None and self._last[0] is calls and (place is None or place in self._memory)
            with contextlib.nullcontext() if there else self.card.current():
                if self._last is None or self._last[0] is not calls:
                    self._last = calls, tuple(map(self._template, calls))
                addresses = self.fixed | dict(zip(self.names, key[1:count], strict=True))
                if place is not None:
                    addresses |= self._own(place)
                    self._places[key] = place
                made = tuple(template.at(addresses, self._maps, key[0]) for template in self._last[1])
            self.known[key] = made
            return made

    def _template(self, call: LaunchCall) -> Template:
        found = self._templates.get(call)
        if found is None:
            if len(self._templates) >= MOST:  # calls with ever other scalars
                self._templates = {}
            found = self._templates[call] = self.card.template(self._module, call)
        return found

    def _own(self, place: tuple[int, int]) -> dict[str, int]:
        """Memory of the kernel's own for calls of a graph (0: of none) on a stream."""
        if place not in self._memory:
            made: dict[str, int] = {}
            try:
                for name, held in self.held.items():
                    made[name] = self.card.allocate(held.bytes)
            except BaseException:
                for address in made.values():
                    self.card.free(address)
                raise
            self._memory[place] = made
        return self._memory[place]

    def close(self) -> None:
        """Free everything. The GPU waits for what is under way; graphs that hold the kernel must not be run again."""
        if self._closed:
            return
        self._closed = True
        with self.card.current():
            for made in self._memory.values():
                for address in made.values():
                    self.card.free(address)
            self.card.unload(self._module)
        self.known, self._memory = {}, {}

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the interpreter may be ending
            self.close()
