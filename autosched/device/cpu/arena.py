"""Memory for kernels: guarded buffers that end at an unmapped page, and plain ones for timing.

A read or write past the end of a guarded buffer is a segmentation fault in the worker, which the parent records as a
crash. Bytes before the start are a canary, so that writes there are found afterwards.
"""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import dataclass, field
from functools import cache
from weakref import finalize

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
CANARY = 0xA5
POISONS = (0xCD, 0x7F)
"""Outputs are filled with the first before the check (a large negative float or integer) and with the second before
timing (a large positive one), so that a maximum or minimum that forgot its first value cannot hide."""
SCRATCH_POISON = 0xFF
"""Kernel-owned memory: not a number in every float type, so that even zero times it is seen."""
ALIGN = 64
FREE_BYTES = 64 << 20
"""Pages that are kept for the next candidate, at most."""
_PROT_NONE, _PROT_READ, _PROT_WRITE = 0, 1, 2


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


class _Pages:
    """`span` bytes of whole pages at `inside`, between two that nobody may touch."""

    def __init__(self, span: int) -> None:
        page = mmap.PAGESIZE
        self._map = mmap.mmap(-1, span + 2 * page)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self.inside, self.span = base + page, span
        self._flags = _PROT_READ | _PROT_WRITE
        _protect(base, page, _PROT_NONE)
        _protect(self.inside + span, page, _PROT_NONE)

    def protect(self, flags: int) -> None:
        """Allow this of all of it."""
        if flags != self._flags:
            _protect(self.inside, self.span, flags)
            self._flags = flags


class FreePages:
    """Keeps freed pages for the next buffer of the same size, `most_bytes` at most. Candidates ask for the same sizes
    again, and the first touch of a new page costs more than filling it (10 us in some virtual machines)."""

    def __init__(self, most_bytes: int = FREE_BYTES) -> None:
        self.most_bytes = most_bytes
        self._by_span: dict[int, list[_Pages]] = {}

    @property
    def bytes(self) -> int:
        """Bytes of the pages that are kept."""
        return sum(span * len(free) for span, free in self._by_span.items())

    def take(self, span: int) -> _Pages:
        """Pages of this span: some that are free, or new ones."""
        free = self._by_span.get(span)
        return free.pop() if free else _Pages(span)

    def give_back(self, pages: _Pages) -> None:
        """Keep these pages for the next `take`, unless they alone exceed `most_bytes`. Drops the others where all
        together would."""
        if pages.span > self.most_bytes:
            return
        if self.bytes + pages.span > self.most_bytes:
            self._by_span.clear()  # sizes of long ago
        pages.protect(_PROT_READ | _PROT_WRITE)
        self._by_span.setdefault(pages.span, []).append(pages)


_FREE = FreePages()


@dataclass
class Guarded:
    """`size` writable bytes (`view`, at `address`) that end at a protected page.

    The start is aligned to `align`; bytes that this leaves between the end and the page are canary too. The pages are
    some of the `free` ones, where there are any.
    """

    size: int
    align: int = 1
    free: FreePages = field(default=_FREE, repr=False)

    def __post_init__(self) -> None:
        self._pages = self.free.take(-(-max(self.size, 1) // mmap.PAGESIZE) * mmap.PAGESIZE)
        inside, span = self._pages.inside, self._pages.span
        start = (inside + span - self.size) // self.align * self.align
        self.address = start
        whole = _view(inside, span)
        whole[:] = CANARY
        offset = start - inside
        self.view = whole[offset : offset + self.size]
        self._before, self._after = whole[:offset], whole[offset + self.size :]
        finalize(self, self.free.give_back, self._pages).atexit = False

    def freeze(self) -> None:
        """Make the whole buffer read-only: a write to an input is a crash."""
        self._pages.protect(_PROT_READ)

    def intact(self) -> bool:
        """Whether no byte around the buffer was written; what was is made good, for the next kernel."""
        whole = bool((self._before == CANARY).all() and (self._after == CANARY).all())
        if not whole:
            self._before[:] = self._after[:] = CANARY
        return whole


def plain(size: int, stagger: int = 0) -> Bytes:
    """`size` bytes aligned to a cache line, at `stagger` lines past a page.

    Buffers that all start on a page boundary would compete for the same sets of the first cache.
    """
    page = mmap.PAGESIZE
    raw = np.zeros(size + 2 * page, np.uint8)
    start = -raw.ctypes.data % page + (stagger * ALIGN) % page
    return raw[start : start + size]


def _view(address: int, size: int) -> Bytes:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def _protect(address: int, size: int, flags: int) -> None:
    if _libc().mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), flags) != 0:
        raise OSError(ctypes.get_errno(), "mprotect failed")
