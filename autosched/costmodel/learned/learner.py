"""What models learn with, loaded when first wanted, by one thread at a time.

xgboost imports parts of scikit-learn, and both import scipy. Two threads that come from different ends of that chain
wait for each other, and Python then hands one of them a module that is only half there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import LazyLoader, find_spec, module_from_spec
from threading import Lock, get_ident

_LOADING = Lock()
_NOT_WANTED = "sklearn", "xgboost.plotting"
"""What xgboost does without where it is missing; without the second it leaves out its own classes for the first, for
which it would load scipy.special (0.1 s of 0.25)."""
_NOT_TOUCHED = "numpy.f2py", "numpy.testing"
"""What scipy names, as part of all that numpy has, and does not touch: 0.06 s."""
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
            with _hidden(*_NOT_WANTED):
                _put_off(*_NOT_TOUCHED)
                import_module(module)
        else:
            import_module(module)


def _put_off(*modules: str) -> None:
    """Have these submodules, where they are not there yet, loaded once somebody imports them or asks one for an
    attribute."""
    for name in modules:
        parent, _, child = name.rpartition(".")
        package = import_module(parent)
        spec = None if name in sys.modules else find_spec(name)
        if spec is None or spec.loader is None:
            continue
        spec.loader = LazyLoader(spec.loader)
        sys.modules[name] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
        setattr(package, child, module)


class _Hiding:
    """The first whom an import asks where a module is: tells one thread that there are none of these."""

    def __init__(self, *modules: str) -> None:
        self.modules, self.thread = modules, get_ident()

    def find_spec(self, name: str, *_: object) -> None:
        if name in self.modules and get_ident() == self.thread:
            raise ModuleNotFoundError(f"{name} is hidden", name=name)


@contextmanager
def _hidden(*modules: str) -> Iterator[None]:
    """Within it this thread cannot import the modules; others can. (The list of finders is replaced, never changed:
    another thread may be halfway through it.)"""
    hiding = _Hiding(*modules)
    sys.meta_path = [hiding, *sys.meta_path]
    try:
        yield
    finally:
        sys.meta_path = [finder for finder in sys.meta_path if finder is not hiding]
