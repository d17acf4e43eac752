"""How instructions add floats: contracts, one executable model of them, bounds, and inputs that tell two apart."""

from autosched.tensorize.numerics.contract import Numerics

__all__ = ["Numerics"]
