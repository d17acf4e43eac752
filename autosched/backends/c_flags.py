"""`CFlags`: the switches by which GCC and Clang enable a backend's features when they build an exported kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def each(features: list[str]) -> str:
    """`-mavx2 -mavx512vnni -mavxvnniint8`: a switch for each feature."""
    joined = {"avx512_": "avx512", "avx_": "avx", "amx_": "amx-"}
    stems = [next(((stem, s) for stem, s in joined.items() if f.startswith(stem)), ("", "")) for f in features]
    return " ".join(f"-m{s}{f[len(stem) :].replace('_', '')}" for f, (stem, s) in zip(features, stems, strict=True))


@dataclass(frozen=True, slots=True)
class CFlags:
    """How features are enabled, and which ones exported C needs.

    `spell`: makes the switches of some features (None: unknown, and none are given). `vectors`: the feature without
    which vectors of more than so many bytes are split (GCC warns of another calling convention), widest first. `tails`:
    those without which the ends of rows of vectors of more than 32 bytes go through `memcpy`. `fused`: the one without
    which `fma` is a call. `registers`: how many vector registers there are with features of these prefixes, the last
    entry with any (empty: unknown)."""

    spell: Callable[[list[str]], str] | None = None
    vectors: tuple[tuple[int, str], ...] = ()
    tails: tuple[str, ...] = ()
    fused: str | None = None
    registers: tuple[tuple[str, int], ...] = ()

    def vector_feature(self, size: int) -> set[str]:
        """The feature that vectors of `size` bytes need."""
        return {next((feature for above, feature in self.vectors if size > above), "")} - {""}

    def vector_registers(self, features: set[str]) -> int:
        """The number of vector registers for code that needs `features`; 0 where it is unknown."""
        return next((n for stem, n in self.registers if any(f.startswith(stem) for f in features)), 0)
