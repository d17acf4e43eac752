"""Learning on one thread, whatever the machine has.

Threads of OpenBLAS and OpenMP wait busily for the next piece of work. Pieces are small here, so nothing is gained by
them, and on a machine whose cores are taken (or in a container that may use two cores of sixty-four) each piece waits
until every thread had its turn: a fit of 0.4 s took minutes. xgboost is told so by a parameter; the others have none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

_THREADED = ("numpy", "scipy.linalg", "sklearn.utils._openmp_helpers")
"""Modules that bring libraries with threads."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Within it libraries that are loaded by then use the thread that calls them."""
    with _controller(tuple(module in sys.modules for module in _THREADED)).limit(limits=1):
        yield


@lru_cache(maxsize=len(_THREADED) + 1)
def _controller(loaded: tuple[bool, ...]) -> Any:
    """Finding the libraries takes some milliseconds, so it is done once for each set of modules."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
