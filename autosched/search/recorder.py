"""Where documented programs find `record`; it stands in `autosched.search.evaluate.recorder`."""

from autosched.search.evaluate.recorder import record

__all__ = ["record"]
