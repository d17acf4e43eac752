"""Backends that packages register as entry points of `autosched.backends`, by their isa."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import metadata

from autosched.backends.backend import Backend
from autosched.errors import PluginError

GROUP = "autosched.backends"


def plugged_isas() -> tuple[str, ...]:
    """The isas of the backends that packages offer."""
    return _isas_on(tuple(sys.path))


@lru_cache(maxsize=8)
def _isas_on(path: tuple[str, ...]) -> tuple[str, ...]:
    """Those of packages on the path, which are looked at once: every text of an instruction asks."""
    return tuple(sorted({e.name for e in metadata.entry_points(group=GROUP)}))


def plugged(isa: str) -> Backend | None:
    """The backend of an isa that a package offers; None where none does. PluginError for what is no backend of it."""
    for entry in metadata.entry_points(group=GROUP, name=isa):
        try:
            found = entry.load()
        except Exception as error:
            raise PluginError(f"the backend {isa!r} of {entry.value} does not load: {error}") from error
        if not isinstance(found, Backend) or found.isa != isa:
            raise PluginError(f"{entry.value} is no Backend of the isa {isa!r}", hint="see CONTRIBUTING.md")
        return found
    return None
