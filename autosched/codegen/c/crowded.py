"""Register tiles that leave a compiler no register to spare."""

from __future__ import annotations

from math import prod

from autosched.codegen.c.flags import isa_flags
from autosched.codegen.kernel import IntrinsicCall, Kernel, statements


def crowded(kernel: Kernel) -> bool:
    """Whether what instructions work on takes all of the isa's vector registers."""
    issued = [stmt for stmt in statements(kernel.main.body) if isinstance(stmt, IntrinsicCall)]
    features = {feature for call in issued for feature in call.intrinsic.requires}
    there = isa_flags(kernel.isa).vector_registers(features)
    held = {ref.buffer for call in issued for ref in call.operands.values()}
    used = sum(prod(kernel.buffers[name].shape[:-1]) for name in held if kernel.buffers[name].scope == "register")
    return 0 < there <= used
