"""The union of the spaces of a study's plans, listed and scored once for all strategies. Read `space`."""

from autosched.search.space.space import SearchSpace

__all__ = ["SearchSpace"]
