"""Levels of numerics, from the strictest on: how much a mapping or a rewrite may change float results.

    bitwise        the same bits on all inputs
    special        as `reassociated`, with NaN and infinities where the program has them
    reassociated   the same sum of the same products in any order
    rescaled       equal over the reals, with a proved bound on the error; of rewrites only
    real           equal over the reals
"""

from __future__ import annotations

NUMERICS_LEVELS = ("bitwise", "special", "reassociated", "rescaled", "real")
DEFAULT_NUMERICS = "rescaled"
"""The weakest level that is accepted where none is asked for."""


MEANING = {
    "bitwise": "the same bits",
    "special": "sums in any order, with the same NaN and infinities",
    "reassociated": "sums in any order",
    "rescaled": "equal over the reals, with a proved bound on the error",
    "real": "equal over the reals, and rounded elsewhere",
}
"""What a level allows, in a few words."""


def accepts(weakest: str, level: str) -> bool:
    """Whether a rewrite of a level may be used where `weakest` is asked for.

    >>> accepts("rescaled", "rescaled"), accepts("reassociated", "rescaled"), accepts("reassociated", "bitwise")
    (True, False, True)
    """
    return NUMERICS_LEVELS.index(level) <= NUMERICS_LEVELS.index(weakest)


def of_mappings(weakest: str) -> str:
    """What a level means where no rewrite is used: no mapping is `rescaled`, so that is `reassociated`."""
    return "reassociated" if weakest == "rescaled" else weakest
