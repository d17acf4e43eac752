"""Where documented programs find `record`; it stands in `autosched.search.evaluate.recording`."""

from autosched.search.evaluate.recording import record

__all__ = ["record"]
