"""Tensor maps of one kernel, kept by the address that they are for.

The first map of a name is encoded; the same at another address is a copy of it with the address put in, which takes a
microsecond. Launches point to where a map lies, so its memory stays for as long as these keep the owner.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, Protocol

from autosched.device.cuda.launch_job import Encoding

BYTES, ALIGNMENT = 128, 64
"""Of a `CUtensorMap`."""
TOGETHER = 64
"""Maps whose memory is had at once."""
MOST = 4096
"""Maps that are kept; half a megabyte."""


class Encodes(Protocol):
    """Writes a tensor map to memory of this process: a new one, or one that is there for another address."""

    def encode(self, encoding: Encoding, address: int, to: int) -> None: ...

    def move(self, to: int, address: int) -> None: ...


class Maps:
    """`encodings` by name. Threads may ask at once: at worst both make the same map."""

    def __init__(self, card: Encodes, encodings: Mapping[str, Encoding]) -> None:
        self.card, self.encodings = card, encodings
        self._first: dict[str, int] = {}
        self._known: dict[tuple[str, int], int] = {}
        self._memory: list[Any] = []
        self._free: list[int] = []
        """Places for maps yet to come."""

    def buffer(self, name: str) -> str:
        """Whose address the map `name` holds."""
        return self.encodings[name].buffer

    def at(self, name: str, address: int) -> int:
        """Where the map of the buffer at `address` lies. CudaError where the driver refuses it."""
        found = self._known.get((name, address))
        if found is None:
            found = self._known[name, address] = self._made(name, address)
        return found

    @property
    def full(self) -> bool:
        """Whether so many are kept that whoever owns the launches should begin anew."""
        return len(self._known) >= MOST

    def _made(self, name: str, address: int) -> int:
        try:
            place = self._free.pop()  # one thread alone gets it
        except IndexError:
            memory = ctypes.create_string_buffer(TOGETHER * BYTES + ALIGNMENT)
            self._memory.append(memory)
            first_place = -(-ctypes.addressof(memory) // ALIGNMENT) * ALIGNMENT
            place, *others = range(first_place, first_place + TOGETHER * BYTES, BYTES)
            self._free += others
        first = self._first.get(name)
        if first is None:
            self.card.encode(self.encodings[name], address, place)
            self._first[name] = place
        else:
            ctypes.memmove(place, first, BYTES)
            self.card.move(place, address)
        return place
