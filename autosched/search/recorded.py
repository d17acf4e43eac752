"""Where documented programs find the space of a recording; it stands in `autosched.search.space.recorded`."""

from autosched.search.space.recorded import space_of

__all__ = ["space_of"]
