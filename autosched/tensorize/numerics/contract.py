"""`Numerics`: how an instruction adds floats, as its YAML states it. What certificates quote and `Model` executes."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log2


@dataclass(frozen=True, slots=True)
class Numerics:
    """`accumulate` is what is promised, the rest is the executable model of how it is done.

    The products of one issue, in the order of the semantics' loops or in that of `order` (places in the former), are
    added in blocks of `terms` (all of them where it is None), block after block. `sum` says how a block is added to the
    accumulator:

    - `chain`: one product after the other, each sum rounded; `fused`: with its product, as a multiply-add.
    - `aligned`: accumulator and products are aligned to the largest exponent among them, cut to `fraction_bits` below
      it (towards zero), added exactly, and rounded once; a zero is positive. The exponent of a product is the sum of
      its factors'. With `sum_bits` and `accumulator_bits` the products are added so on their own first; that sum and
      the accumulator are then aligned, and cut to these many bits (downwards); `parts`: in so many interleaved sums,
      which are aligned and cut downwards to `fraction_bits` to be joined. An accumulator whose exponent lies more than
      `accumulator_reach` below is left out. `group`: products of so many neighbours are added exactly first, without
      the factors that they share (scales), whose exponents alone tell where the group is cut; what is added so may lie
      `below` bits lower than these say.
    - `tree`: products are rounded and added in pairs, the sums of pairs in pairs; the last sum is added to the
      accumulator.
    - `lanes`: `terms` chains from zero, one for each k modulo `terms`, over the whole issue; they are then added as a
      tree, and that to the accumulator.

    `start` zero: the blocks are added from zero, and what comes out is added to the accumulator to nearest even.
    `rounding` is that of every sum; `result_bits` are the fraction bits that a block's result keeps (None: all of the
    type's). `operands_as`: factors are converted to this type first, which tells subnormal ones from normal ones.
    `sum_as`: the accumulator is converted to this wider type, sums are in it, and the last one is rounded back to
    nearest even. `subnormals` flushed: factors, the accumulator and every rounded result become a zero of their sign;
    `results`: the accumulator and results alone, factors count as they are.

    `relative`: of an instruction that overwrites its target, each element may be off the exact value of the semantics
    by so much of it, and by `absolute` beside (vendors state a bound, not bits). What executes the model computes the
    value itself.
    """

    accumulate: str = "exact"  # exact | sequential | unordered
    fraction_bits: int | None = None
    terms: int | None = None
    rounding: str = "rne"  # rne | rz | odd
    subnormals: str = "kept"  # kept | flushed | results
    fused: bool = False
    sum: str = "chain"  # chain | aligned | tree | lanes
    start: str = "accumulator"  # accumulator | zero
    result_bits: int | None = None
    sum_bits: int | None = None
    accumulator_bits: int | None = None
    operands_as: str | None = None
    order: tuple[int, ...] = ()
    sum_as: str | None = None
    parts: int = 1
    accumulator_reach: int | None = None
    group: int = 1
    below: int = 0
    relative: float | None = None
    absolute: float | None = None

    @property
    def bounded(self) -> bool:
        """Whether it states how far off elements may be, and no bits."""
        return self.relative is not None or self.absolute is not None

    @property
    def bounds(self) -> str:
        """What it states, in words."""
        share = None if self.relative is None else f"{in_powers(self.relative)} of each element"
        number = None if self.absolute is None else f"{in_powers(self.absolute)}"
        return " and ".join(b for b in (number, share) if b)

    @property
    def scaled(self) -> bool:
        """Whether each element of a product of several counts when sums are aligned."""
        return self.sum == "aligned" and self.operands_as is None and self.sum_as is None

    @property
    def flushed(self) -> bool:
        """Whether subnormal results become zeros."""
        return self.subnormals != "kept"

    @property
    def flushes_factors(self) -> bool:
        """Whether subnormal factors do."""
        return self.subnormals == "flushed"

    def kept_bits(self, mantissa: int) -> int:
        """The fraction bits that sums keep, of an accumulator with `mantissa` of them."""
        return min(b for b in (mantissa, self.fraction_bits, self.result_bits) if b is not None)

    def slack(self, mantissa: int) -> float:
        """How much further off than sums in such an accumulator: 1, or more where fewer bits are kept."""
        bits = self.kept_bits(mantissa)
        return float(2.0 ** (mantissa - bits + 2)) if bits < mantissa else 1.0

    @property
    def counts_issues(self) -> bool:
        """Whether the bound on a sum depends on how many issues it takes."""
        return self.sum == "aligned"

    def __str__(self) -> str:
        """In words: `16 terms aligned with the accumulator, 25 fraction bits kept, rz`."""
        if self.bounded:
            return f"within {self.bounds}" + (", subnormals flushed" if self.flushed else "")
        if self.accumulate == "exact":
            return "exact"
        grouped = f"in groups of {self.group} " if self.group > 1 else ""
        words = {
            "chain": "one term after the other, fused" if self.fused else "one term after the other",
            "aligned": f"{self.terms or 'all'} terms {grouped}aligned with the accumulator, "
            f"{self.fraction_bits} fraction bits",
            "tree": f"{self.terms or 'all'} terms added in pairs",
            "lanes": f"{self.terms} chains from zero",
        }[self.sum]
        parts = [words if self.start == "accumulator" else words.replace(" with the accumulator", "") + ", from zero"]
        if self.order:
            parts[0] += ", in an order of its own"
        parts.append(self.rounding)
        if self.result_bits is not None:
            parts.append(f"{self.result_bits} fraction bits stored")
        if self.flushed:
            parts.append("subnormals flushed" if self.flushes_factors else "subnormal sums flushed")
        return ", ".join(parts) + f" ({self.accumulate})"


def in_powers(share: float) -> str:
    """A share as vendors write it: `2^-14`, `1.5·2^-12`, `2^-9.9`."""
    exponent = log2(share)
    if (near := round(exponent, 2)) and abs(2.0**near / share - 1) < 1e-9:
        return f"2^{near:g}"
    whole = floor(exponent)
    return f"{share / 2.0**whole:.6g}·2^{whole}"


EXACT = Numerics()
"""What integers do."""
