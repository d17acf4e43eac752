"""Which operands an instruction takes from shared memory itself."""

from __future__ import annotations

import re

from autosched.tensorize.intrinsic import Intrinsic

_PLACED = re.compile(r"(\w+): in shared memory(?:, by descriptor)?( or registers)?")


def from_shared(intrinsic: Intrinsic) -> dict[str, bool]:
    """Operands that the instruction takes from shared memory itself, as its rules say (`b: in shared memory, by
    descriptor; a: in shared memory or registers`): whether they must be there."""
    return {name: not either for rule in intrinsic.rules for name, either in _PLACED.findall(rule)}
