"""Where documented programs find `request`; it stands in `autosched.tiling.space.request`."""

from autosched.tiling.space.request import request

__all__ = ["request"]
