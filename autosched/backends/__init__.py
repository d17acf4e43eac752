"""Kinds of machines: what the code knows of each, in one value. Read `backend` first, then `x86` as an example.

A kind that is not listed here needs no code: a target file may name any isa, and the simulator runs its kernels.
Packages offer further ones (`plugged`).
"""

from __future__ import annotations

import platform
from contextlib import suppress
from functools import cache

from autosched.backends.arm import ARM
from autosched.backends.backend import Backend
from autosched.backends.emulation import Emulation
from autosched.backends.gpus import CUDA, CUDA_C, HIP, MACA
from autosched.backends.language import C, Language
from autosched.backends.plugged import plugged, plugged_isas
from autosched.backends.x86 import X86
from autosched.errors import PluginError

__all__ = [
    "ARM", "BACKENDS", "CUDA", "CUDA_C", "HIP", "MACA", "PORTABLE", "X86", "Backend", "C", "Emulation", "Language",
    "backend_of", "backends", "host_backend", "language_of_text", "languages",
]  # fmt: skip

PORTABLE = Backend("portable", "cpu", language=C, device="cpu", compiles="llvm")
"""Any CPU that LLVM knows: instructions without a feature, written as plain vector code."""
BACKENDS = {b.isa: b for b in (X86, ARM, PORTABLE, CUDA, HIP, MACA)}
"""Those that come with autosched."""


def backend_of(isa: str) -> Backend:
    """The backend of an isa; of one that nobody describes, a backend that is only simulated."""
    return BACKENDS.get(isa) or _other(isa)


def backends() -> list[Backend]:
    """All of them, those of packages last, without any that does not load: who asks for it by name is told why."""
    found = list(BACKENDS.values())
    for isa in plugged_isas():
        with suppress(PluginError):
            found += [made for made in [plugged(isa)] if made is not None and isa not in BACKENDS]
    return found


def languages() -> dict[str, Language]:
    """The languages that kernels are printed in, by name."""
    return {C.name: C} | {b.language.name: b.language for b in backends() if b.language is not None}


def language_of_text(name: str) -> Language | None:
    """The language of an instruction's text called `name`; None where no kernels are printed in it (LLVM)."""
    ours = {b.language for b in BACKENDS.values() if b.language is not None}
    return next((of for of in [*ours, *languages().values()] if name in (of.name, *of.texts)), None)


def host_backend() -> Backend:
    """That of the machine this runs on; `PORTABLE` where it is none of those known."""
    here = platform.machine().lower()
    of_ours = next((b for b in BACKENDS.values() if here in b.machines), None)
    return of_ours or next((b for b in backends() if here in b.machines), PORTABLE)


@cache
def _other(isa: str) -> Backend:
    return plugged(isa) or Backend(isa)
