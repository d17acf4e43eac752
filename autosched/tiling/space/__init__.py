"""Spaces of schedules: rows of an integer matrix and the rules that make them legal. Nothing here knows of hardware.
Read `tiling.step`, `base` (what rows mean), then `enumerate` and `space`.
"""

from autosched.tiling.space.space import Space

__all__ = ["Space"]
