"""Compiler flags of GCC and Clang for features, as the header of an exported kernel names them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

Spell = Callable[[list[str]], str]
ARM_EXTENSIONS = {"asimdhp": "fp16", "asimddp": "dotprod"}
"""Extensions of `-march` that are spelt unlike the feature in /proc/cpuinfo."""


def _each(features: list[str]) -> str:
    """`-mavx2 -mavx512vnni -mavxvnniint8`: a switch for each feature."""
    joined = {"avx512_": "avx512", "avx_": "avx", "amx_": "amx-"}
    stems = [next(((stem, s) for stem, s in joined.items() if f.startswith(stem)), ("", "")) for f in features]
    return " ".join(f"-m{s}{f[len(stem) :].replace('_', '')}" for f, (stem, s) in zip(features, stems, strict=True))


def _extensions(features: list[str]) -> str:
    """`-march=armv8.2-a+dotprod`: extensions of the architecture that all of them may be added to; none for what every
    AArch64 core has."""
    added = [ARM_EXTENSIONS.get(f, f) for f in features if f != "asimd"]
    return "+".join(["-march=armv8.2-a", *added]) if added else ""


@dataclass(frozen=True, slots=True)
class IsaFlags:
    """How an isa's features are switched on. `vectors` names the feature without which vectors of more than so many
    bytes are split (GCC warns of another calling convention), widest first; `fused` the one without which `fma` is a
    call; `registers` how many vector registers there are with features that begin so, the last of them with any (none:
    not known)."""

    spell: Spell = _each
    vectors: tuple[tuple[int, str], ...] = ()
    fused: str | None = None
    registers: tuple[tuple[str, int], ...] = ()

    def vector_feature(self, size: int) -> set[str]:
        """What vectors of `size` bytes need."""
        return {next((feature for above, feature in self.vectors if size > above), "")} - {""}

    def vector_registers(self, features: set[str]) -> int:
        """How many there are to code that needs `features`; 0 where that is not known."""
        return next((n for stem, n in self.registers if any(f.startswith(stem) for f in features)), 0)


PLAIN = IsaFlags()
ISAS = {
    "x86": IsaFlags(
        vectors=((32, "avx512f"), (16, "avx2")), fused="fma", registers=(("avx512", 32), ("avx10", 32), ("", 16))
    ),
    "arm": IsaFlags(_extensions, registers=(("", 32),)),
}


def isa_flags(isa: str) -> IsaFlags:
    """Of an isa that is not listed: a switch for each feature that its intrinsics require."""
    return ISAS.get(isa, PLAIN)


def flags(isa: str, features: Iterable[str]) -> str:
    """The flags for a set of features.

    >>> flags("arm", {"asimddp", "i8mm"}), flags("x86", {"avx512_vnni", "fma"}), flags("arm", {"asimd"})
    ('-march=armv8.2-a+dotprod+i8mm', '-mavx512vnni -mfma', '')
    """
    return isa_flags(isa).spell(sorted(features))
