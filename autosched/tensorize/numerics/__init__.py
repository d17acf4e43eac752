"""How instructions add floats: contracts, one executable model of them, bounds, and inputs that tell two apart.
Read `contract`, then `model` and `sums`.
"""

from autosched.tensorize.numerics.contract import Numerics

__all__ = ["Numerics"]
