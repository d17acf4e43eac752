"""Where documented programs find `epilogues`; it stands in `autosched.tiling.plans.epilogue`."""

from autosched.tiling.plans.epilogue import epilogues

__all__ = ["epilogues"]
