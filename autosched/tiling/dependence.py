"""Where documented programs find `analyse`; it stands in `autosched.tiling.analysis.dependence`."""

from autosched.tiling.analysis.dependence import analyse

__all__ = ["analyse"]
