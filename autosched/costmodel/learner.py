"""What models learn with, loaded when first wanted, by one thread at a time.

xgboost imports parts of scikit-learn, and both import scipy. Two threads that come from different ends of that chain
wait for each other, and Python then hands one of them a module that is only half there.
"""

from __future__ import annotations

import sys
from importlib import import_module
from threading import Lock

_LOADING = Lock()
_alone = False


def alone() -> None:
    """Say that this process is ours, so that nobody in it wants xgboost's classes for scikit-learn. They take four
    fifths of the second that loading it costs, with parts of scipy and pandas; without them its boosters are the
    same."""
    global _alone
    _alone = True


def load(module: str) -> None:
    """Have `module` loaded whole. Whoever imports it afterwards gets it at once. ImportError where it is missing."""
    with _LOADING:
        hidden = _alone and module == "xgboost" and not {"xgboost", "sklearn"} & sys.modules.keys()
        if hidden:
            sys.modules["sklearn"] = None  # type: ignore[assignment]  # what is None here cannot be imported
        try:
            import_module(module)
        finally:
            if hidden:
                del sys.modules["sklearn"]
