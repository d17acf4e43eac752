"""The only way to z3: one thread at a time.

z3's terms live in a context, and no two threads may work in one: that ends the process. Every function that makes or
asks terms is `proving`, or called by one that is. Any thread may drop terms at any time, since Python's
garbage collector runs in whichever thread allocates: contexts are made such that this is safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import z3

P = ParamSpec("P")
R = TypeVar("R")
PROVING = threading.RLock()
"""Held by the thread that makes or asks terms."""
z3.Z3_enable_concurrent_dec_ref(z3.main_ctx().ref())


def proving(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, which one thread at a time is in, of all functions that are `proving`. Not for generators."""

    @wraps(function)
    def alone(*args: P.args, **kwargs: P.kwargs) -> R:
        with PROVING:
            return function(*args, **kwargs)

    return alone


def own_context() -> z3.Context:
    """A context for the terms of one proof."""
    made = z3.Context()
    z3.Z3_enable_concurrent_dec_ref(made.ref())
    return made


__all__ = ["PROVING", "own_context", "proving", "z3"]
