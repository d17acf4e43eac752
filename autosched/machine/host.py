"""What this CPU can do, as LLVM says. Needs little else: code is loaded by processes whose start must stay short."""

from __future__ import annotations

import llvmlite.binding as llvm

from autosched.machine.features import our_name
from autosched.permission import refused


def host_features() -> frozenset[str]:
    """The instruction-set features of this CPU under our names (empty where LLVM cannot tell), less those that the
    system does not let this process use."""
    found = frozenset(our_name(k) for k, on in llvm_features().items() if on)
    return found - refused(found)


def llvm_features() -> dict[str, bool]:
    """The features that LLVM knows of under its own names, and whether this CPU has them."""
    try:
        return dict(llvm.get_host_cpu_features())
    except RuntimeError:  # LLVM does not know how to ask on this platform
        return {}
