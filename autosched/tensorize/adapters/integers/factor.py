"""An element of a product in an instruction's type: as it is, widened, or shifted by half the range (offset-binary).

    u8(a) ^ 0x80 = a + 128 for every s8 a        the same bits with the highest one flipped; 128·Σb makes up for it
    s16(a) = a            for every u8 a        nothing to make up for

Each is proved for every value of the element, by exhaustion up to 16 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from autosched.ir.dtypes import DType
from autosched.ir.value import Arith, Cast, Literal, Read, Value, converted
from autosched.tensorize.adapters.integers.polynomial import signed
from autosched.tensorize.adapters.proof import prove
from autosched.tensorize.adapters.proposal import lemma
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.body.equal import holds
from autosched.tensorize.match_types import Obligation


@dataclass(frozen=True)
class AdaptedFactor:
    """One element of the product: `read` as the program has it, `dtype` as the instruction takes it, whose value is
    `read + offset`."""

    read: Read
    dtype: DType
    offset: int = 0

    @property
    def converted(self) -> bool:
        """Whether the instruction needs other bits than the program has."""
        return self.dtype != self.read.dtype

    @property
    def name(self) -> str:
        """The adapter in words, of a factor that is converted."""
        tensor = self.read.tensor
        return f"offset-binary {tensor}" if self.offset else f"widen {tensor} to {self.dtype}"

    def value(self) -> Value:
        """The element in the instruction's type, as a value of the program's element."""
        if not self.offset:
            return Cast(self.read, self.dtype)
        flipped = signed(abs(self.offset), self.dtype) if self.dtype.signed else abs(self.offset)
        return Arith("^", Cast(self.read, self.dtype), Literal(flipped, self.dtype), self.dtype)

    def lemma(self, wide: DType, timeout_ms: int) -> Obligation:
        """That `value` is the element plus the offset, in `wide`. Raises NotProved."""
        claim = converted(self.read, wide)
        if self.offset:
            claim = Arith("+", claim, Literal(self.offset, wide), wide)
        how = prove(converted(self.value(), wide), claim, timeout_ms)
        what = show_leaf(self.read)
        if self.offset:
            text = f"{self.dtype}({what}) ^ {abs(self.offset):#x} is {what} {self.offset:+d}"
        else:
            text = f"{self.dtype}({what}) is {what}"
        return lemma(f"{text} for every {self.read.dtype}", how)


def factor_of(read: Read, wanted: DType) -> AdaptedFactor | None:
    """How an integer element becomes one of the wanted type; None where it cannot."""
    if read.dtype == wanted or holds(read.dtype, wanted):
        return AdaptedFactor(read, wanted)
    if not wanted.is_integer or read.dtype.bits != wanted.bits or wanted.bits < 2:
        return None
    half = 1 << (wanted.bits - 1)
    return AdaptedFactor(read, wanted, half if read.dtype.signed else -half)
