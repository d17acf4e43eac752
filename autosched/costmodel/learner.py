"""What models learn with, loaded when first wanted, by one thread at a time.

xgboost imports parts of scikit-learn, and both import scipy. Two threads that come from different ends of that chain
wait for each other, and Python then hands one of them a module that is only half there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import Lock, get_ident

_LOADING = Lock()
_alone = False


def alone() -> None:
    """Say that this process is ours, so that nobody in it wants xgboost's classes for scikit-learn. They take four
    fifths of the second that loading it costs, with parts of scipy and pandas; without them its boosters are the
    same."""
    global _alone
    _alone = True


def accompanied() -> None:
    """Say that code of others runs in this process from here on, a plug-in: it may want those classes."""
    global _alone
    _alone = False


def load(module: str) -> None:
    """Have `module` loaded whole. Whoever imports it afterwards gets it at once. ImportError where it is missing."""
    with _LOADING:
        if _alone and module == "xgboost" and not {"xgboost", "sklearn"} & sys.modules.keys():
            with _hidden("sklearn"):
                import_module(module)
        else:
            import_module(module)


class _Hiding:
    """The first whom an import asks where a module is: tells one thread that there is none."""

    def __init__(self, module: str) -> None:
        self.module, self.thread = module, get_ident()

    def find_spec(self, name: str, *_: object) -> None:
        if name == self.module and get_ident() == self.thread:
            raise ModuleNotFoundError(f"{name} is hidden", name=name)


@contextmanager
def _hidden(module: str) -> Iterator[None]:
    """Within it this thread cannot import the module; others can. (The list of finders is replaced, never changed:
    another thread may be halfway through it.)"""
    hiding = _Hiding(module)
    sys.meta_path = [hiding, *sys.meta_path]
    try:
        yield
    finally:
        sys.meta_path = [finder for finder in sys.meta_path if finder is not hiding]
