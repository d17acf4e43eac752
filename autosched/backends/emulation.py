"""`Emulation`: how code of a backend runs on machines of another kind."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Emulation:
    """The emulator's command with the features of its widest core, and the compilers to try, each with its options."""

    run: tuple[str, ...]
    features: frozenset[str]
    compilers: tuple[tuple[str, ...], ...]
