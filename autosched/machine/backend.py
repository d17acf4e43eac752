"""`Backend`: what the code knows of a kind of machine, by the name that targets and instructions give as their `isa`.

What differs from machine to machine of a kind (threads of a warp, features, sizes) is the target's.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backend:
    """`printer` makes its kernels (`llvm`, `cuda`; None: they are only simulated), `device` runs them (None: only the
    simulator does). `fuses`: every machine of the kind multiplies and adds in one instruction, whatever features it
    lists."""

    isa: str
    printer: str | None = None
    device: str | None = None
    fuses: bool = False


BACKENDS = {
    b.isa: b
    for b in (
        Backend("x86", "llvm", "cpu"),
        Backend("arm", "llvm", "cpu"),
        Backend("portable", "llvm", "cpu"),
        Backend("cuda", "cuda", "cuda", fuses=True),
    )
}


def backend_of(isa: str) -> Backend:
    """The backend of an isa; of one that no printer knows, a backend that is only simulated."""
    return BACKENDS.get(isa) or Backend(isa)
