"""What models learn with, loaded when first wanted, by one thread at a time.

xgboost imports parts of scikit-learn, and both import scipy. Two threads that come from different ends of that chain
wait for each other, and Python then hands one of them a module that is only half there.
"""

from __future__ import annotations

from importlib import import_module
from threading import Lock

_LOADING = Lock()


def load(module: str) -> None:
    """Import all of `module`; whoever imports it afterwards gets it at once. ImportError where it is missing."""
    with _LOADING:
        import_module(module)
