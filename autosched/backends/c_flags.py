"""`CFlags`: how GCC and Clang are told of a backend's features where an exported kernel is built."""

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
    """How features are switched on: `spell` makes the switches of some (None: not known, and none are given). `vectors`
    names the feature without which vectors of more than so many bytes are
    split (GCC warns of another calling convention), widest first; `tails` those without which the ends of rows of
    vectors of more than 32 bytes go through `memcpy`; `fused` the one without which `fma` is a call; `registers` how
    many vector registers there are with features that begin so, the last of them with any (none: not known)."""

    spell: Callable[[list[str]], str] | None = None
    vectors: tuple[tuple[int, str], ...] = ()
    tails: tuple[str, ...] = ()
    fused: str | None = None
    registers: tuple[tuple[str, int], ...] = ()

    def vector_feature(self, size: int) -> set[str]:
        """What vectors of `size` bytes need."""
        return {next((feature for above, feature in self.vectors if size > above), "")} - {""}

    def vector_registers(self, features: set[str]) -> int:
        """How many there are to code that needs `features`; 0 where that is not known."""
        return next((n for stem, n in self.registers if any(f.startswith(stem) for f in features)), 0)
