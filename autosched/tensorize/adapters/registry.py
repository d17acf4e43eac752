"""The adapters there are, in the order in which they are asked. A new one is a file of its own and a name here."""

from __future__ import annotations

from autosched.tensorize.adapters.apart import apart
from autosched.tensorize.adapters.inlined import inlined
from autosched.tensorize.adapters.integers.ring import ring
from autosched.tensorize.adapters.issued import issued
from autosched.tensorize.adapters.masks.hold import lengths, masks
from autosched.tensorize.adapters.masks.kept import kept
from autosched.tensorize.adapters.masks.masked import masked
from autosched.tensorize.adapters.ones import ones
from autosched.tensorize.adapters.promotion import promotion
from autosched.tensorize.adapters.proposal import Adapter
from autosched.tensorize.adapters.rolled import rolled
from autosched.tensorize.adapters.selected import selected
from autosched.tensorize.adapters.split import split
from autosched.tensorize.adapters.staged import staged
from autosched.tensorize.adapters.supplied import supplied
from autosched.tensorize.adapters.widen import widened

GOVERNED: tuple[Adapter, ...] = (lengths, kept, masked, masks)
"""Those for instructions with masks and lengths."""
OVERWRITING: tuple[Adapter, ...] = (supplied, inlined, apart)
"""Those for instructions that overwrite their target; the others restate sums."""
CHOOSING: tuple[Adapter, ...] = (*OVERWRITING, kept)
"""Those for instructions that overwrite their target with a choice by what an operand holds."""
ADAPTERS: tuple[Adapter, ...] = (selected, widened, staged, rolled, ring, promotion, issued, ones)
"""Those that add less work come first: a later one is asked only where no earlier one makes the instruction fit."""
FILLING: tuple[Adapter, ...] = (split,)
"""Those for instructions that fit as the program stands, and sum over an axis that none of its loops fills."""
