"""Spaces of schedules: rows of an integer matrix and the rules that make them legal. Nothing here knows of hardware.
Read `tiling.step`, then `space` and `enumerate`.
"""

from autosched.tiling.space.space import Space

__all__ = ["Space"]
