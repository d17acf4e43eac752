"""Arrays between pages that cannot be read or written: an access past an array ends the process."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

PAGE = mmap.PAGESIZE


def before_the_fence(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy that ends where the fence begins."""
    return _copied(array, PAGE + -array.nbytes % PAGE, PAGE + array.nbytes + -array.nbytes % PAGE)


def behind_the_fence(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy that begins where the fence ends."""
    return _copied(array, PAGE, 0)


def _copied(array: np.ndarray[Any, Any], start: int, fence: int) -> np.ndarray[Any, Any]:
    """`array` at `start` of an area of its own, of which the page at `fence` is closed."""
    area = mmap.mmap(-1, 3 * PAGE + array.nbytes + -array.nbytes % PAGE)
    found = np.frombuffer(area, np.uint8, array.nbytes, start).view(array.dtype).reshape(array.shape)
    found[...] = array
    first = ctypes.addressof(ctypes.c_char.from_buffer(area))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(first + fence), ctypes.c_size_t(PAGE), 0) == 0
    return found
