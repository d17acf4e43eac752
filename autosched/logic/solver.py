"""The only way to z3: loaded when it is first needed, and by one thread at a time.

z3's terms live in a context, and no two threads may work in one: that ends the process. Every function that makes or
asks terms is `proving`, or called by one that is. Any thread may drop terms at any time, since Python's
garbage collector runs in whichever thread allocates: contexts are made such that this is safe.

Loading z3 would be a tenth of the start of the builder's process, which lowers what has been proved.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
_ALONE = threading.RLock()
_expects_drops = False


def proving(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, which one thread at a time is in, of all functions that are `proving`. Not for generators."""

    @wraps(function)
    def alone(*args: P.args, **kwargs: P.kwargs) -> R:
        with _ALONE:
            return function(*args, **kwargs)

    return alone


def is_proving() -> bool:
    """Whether this thread is in a function that is `proving`."""
    return _ALONE._is_owned()  # type: ignore[attr-defined, no-any-return]


if TYPE_CHECKING:
    import z3
else:

    class _Later:
        """The module, loaded when something in it is first asked for."""

        def __getattr__(self, name: str) -> Any:
            global _expects_drops
            import z3

            if not _expects_drops:
                z3.Z3_enable_concurrent_dec_ref(z3.main_ctx().ref())
                _expects_drops = True
            return getattr(z3, name)

    z3 = _Later()


def own_context() -> Any:
    """A context for the terms of one proof."""
    made = z3.Context()
    z3.Z3_enable_concurrent_dec_ref(made.ref())
    return made


__all__ = ["is_proving", "own_context", "proving", "z3"]
