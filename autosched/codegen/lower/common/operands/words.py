"""Elements of four or eight bits taken out of the word of a narrow panel that has them.

Where a word has more than two, its values are f32. Of a difference of integers as floats (`integer_differences`) the
element at bit b stays where it is: under the exponent of 2**(23 - b) it is the integer that it was, so a mask and that
exponent make the float, in one operation, and the other side moves from its base to that power of two. The upper half
of a word of 32 bits is shifted down first, since a fraction has 23 bits. Any other element, which has four bits, is
shifted down and looked up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from autosched.codegen.lower.common.positions import Position
from autosched.ir.dtypes import dtype
from autosched.ir.value import Arith, Call, Cast, FromIndex, Literal, Read, Value
from autosched.logic import Int
from autosched.tiling.steps.common.computed import PAIR, SourceElement

F32, U32, S32 = dtype("f32"), dtype("u32"), dtype("s32")
HALF_BITS = 16
"""Of a word, which stand low enough in it."""
FRACTION, BIAS = 23, 127


@dataclass(frozen=True)
class PlaceInWord:
    """Which element of its word one is: the first has the lowest bits."""

    source: SourceElement
    place: Int

    @property
    def bits(self) -> int:
        return self.source.read.dtype.bits

    @property
    def signed(self) -> bool:
        return self.source.read.dtype.kind == "int"

    def element(self, word: Value) -> Value:
        """The element by itself. Where a byte has two, a signed one stands in the highest bits of a word for a moment,
        so that it brings its sign along."""
        kind = self.source.read.dtype
        if self.signed and self.source.word == PAIR:
            up = FromIndex(S32.bits - self.bits - self.place * self.bits, S32)
            high = Arith("<<", Cast(word, S32), up, S32)
            return Cast(Arith(">>", high, Literal(S32.bits - self.bits, S32), S32), kind)
        low = Arith(">>", Cast(word, U32), FromIndex(self.place * self.bits, U32), U32)
        bits = Arith("&", low, Literal((1 << self.bits) - 1, U32), U32)
        few = Cast(bits, dtype(f"u{self.bits}") if kind.is_float else kind)
        return Call(f"bits_{kind}", (few,), kind) if kind.is_float else few

    def in_float(self, word: Value) -> Value:
        """2**(23 - b) plus the element at bit b, and half of its range if it is signed: its highest bit is turned."""
        down = FromIndex(self.place // self._half * HALF_BITS, U32)
        bits = Arith("&", Arith(">>", Cast(word, U32), down, U32), self._at_bit((1 << self.bits) - 1), U32)
        if self.signed:
            turned = Arith("|", self._at_bit(1 << (self.bits - 1)), self._exponent, U32)
            return _float(Arith("^", bits, turned, U32))
        return _float(Arith("|", bits, self._exponent, U32))

    def moved(self, other: Value, base: float) -> Value:
        """The other side of a difference: `base` plus an integer, moved to where `in_float` has 0."""
        zero: Value = _float(self._exponent)
        if self.signed:
            zero = Arith("+", zero, Literal(float(1 << (self.bits - 1)), F32), F32)
        return Arith("-", other, Arith("-", Literal(base, F32), zero, F32), F32)

    @property
    def _half(self) -> int:
        return HALF_BITS // self.bits

    @property
    def _bit(self) -> Int:
        return self.place % self._half * self.bits

    def _at_bit(self, bits: int) -> Value:
        return Arith("<<", Literal(bits, U32), FromIndex(self._bit, U32), U32)

    @property
    def _exponent(self) -> Value:
        return Arith("<<", FromIndex(BIAS + FRACTION - self._bit, U32), Literal(FRACTION, U32), U32)


def _float(bits: Value) -> Value:
    return Call("bits_f32", (bits,), F32)


def in_float(read: Read) -> Read:
    """A name for the float that `PlaceInWord.in_float` makes of an element."""
    return replace(read, tensor=f"{read.tensor} in a float", dtype=F32)


def in_word(here: Position, count: int) -> tuple[Int, Int]:
    """The word of `count` depth units in which this one is, and its place there. Trips of a multiple of so many units
    begin with a word."""
    if here.step is None or here.trip % count:
        return here.unit // count, here.unit % count
    first, behind = here.step
    return first // count + behind // count, behind % count
