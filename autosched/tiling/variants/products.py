"""What counts as a product among stages."""

from __future__ import annotations

from autosched.ir.nodes import Stage
from autosched.ir.value import Arith, reads, walk


def is_product(stage: Stage) -> bool:
    """Whether a stage sums products of elements of several tensors, for several results."""
    value = stage.assign.value
    several = len({r.tensor for r in reads(value)}) > 1
    product = several and any(isinstance(v, Arith) and v.op == "*" for v in walk(value))
    return product and stage.assign.op == "+=" and bool(stage.reduction) and bool(stage.spatial)
