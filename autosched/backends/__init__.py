"""Kinds of machines: what the code knows of each, in one value. Read `backend` first, then `x86` as an example.

A kind that is not listed here needs no code: a target file may name any isa, and the simulator runs its kernels.
"""

from __future__ import annotations

import platform

from autosched.backends.arm import ARM
from autosched.backends.backend import Backend
from autosched.backends.gpus import CUDA, HIP, MACA
from autosched.backends.x86 import X86

__all__ = ["ARM", "BACKENDS", "CUDA", "HIP", "MACA", "PORTABLE", "X86", "Backend", "backend_of", "host_backend"]

PORTABLE = Backend("portable", "cpu", printer="llvm", device="cpu")
"""Any CPU that LLVM knows: instructions without a feature, written as plain vector code."""
BACKENDS = {b.isa: b for b in (X86, ARM, PORTABLE, CUDA, HIP, MACA)}


def backend_of(isa: str) -> Backend:
    """The backend of an isa; of one that is not listed, a backend that is only simulated."""
    return BACKENDS.get(isa) or Backend(isa)


def host_backend() -> Backend:
    """That of the machine this runs on; `PORTABLE` where it is none of those listed."""
    here = platform.machine().lower()
    return next((b for b in BACKENDS.values() if here in b.machines), PORTABLE)
