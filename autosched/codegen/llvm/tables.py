"""Numbers of four bits out of a table: a permutation of a register where the machine has one.

LLVM makes `vpermps` (AVX2, AVX-512) of lanes that are taken out of a constant vector by the lanes of another.
Multiplying by a power of two takes longer, and much longer on numbers below f32's normal ones. Sixteen lanes at once
(AVX-512) are taken by the four lowest bits of whole words, whatever stands above: no mask, and integers are not
converted.
"""

from __future__ import annotations

from autosched.codegen.llvm.emitter import Emitter
from autosched.codegen.llvm.types import Val, double_text, splat_text, typed, vector_text
from autosched.codegen.passes.small_floats import table
from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.value import Arith, Call, Cast, Literal, Value

F32, U32, U4 = DTYPES["f32"], DTYPES["u32"], DTYPES["u4"]
SIXTEEN, EIGHT = 16, 8
"""Numbers of a table: all of a type, or those without a sign."""


class Tables:
    """Lookups at the current place of a function; `permuted`: lanes that one instruction permutes."""

    def __init__(self, emitter: Emitter, permuted: int) -> None:
        self.out = emitter
        self.permuted = permuted

    def hold(self, v: Val) -> bool:
        """Whether the vector's type has a table, and the machine an instruction that takes all lanes from it."""
        return v.dtype.bits == 4 and self.permuted >= EIGHT and v.lanes % EIGHT == 0

    def widened(self, v: Val) -> Val:
        """A vector of four-bit floats as f32; its lanes are a multiple of eight."""
        wide = self._new(f"zext {v.text} to {typed('i32', v.lanes)}", U32, v.lanes)
        if self.permuted >= SIXTEEN and v.lanes % SIXTEEN == 0:
            return self._chosen(wide, table(v.dtype))
        size = self._with(wide, "and", EIGHT - 1)
        bits = self._new(f"bitcast {self._chosen(size, table(v.dtype)[:EIGHT]).text} to {wide.type}", U32, v.lanes)
        sign = self._with(self._with(wide, "and", EIGHT), "shl", 28)
        signed = self.out.let(f"or {bits.text}, {sign.name}")
        return self._new(f"bitcast {wide.type} {signed} to {typed('float', v.lanes)}", F32, v.lanes)

    def hold_words(self, lanes: int, dtype: DType) -> bool:
        """Whether the machine has an instruction that takes numbers of four bits by this many words of a type."""
        return self.permuted >= SIXTEEN == lanes and dtype.bits == U32.bits

    def by_words(self, place: Val, dtype: DType) -> Val | None:
        """The numbers of a type of four bits, as f32, that the lowest bits of 32-bit words say; None where the words
        are the same in all lanes, or the machine has no instruction for so many."""
        if not self.hold_words(place.lanes, place.dtype):
            return None
        kind = typed("float", SIXTEEN)
        name = self.out.declarations.need(kind, "llvm.x86.avx512.permvar.sf.512", kind, place.type)
        held = vector_text("float", [double_text(n) for n in numbers(dtype)])
        return self._new(f"call {kind} {name}({kind} {held}, {place.text})", F32, SIXTEEN)

    def _chosen(self, place: Val, numbers: tuple[float, ...]) -> Val:
        """The number at each lane's place."""
        held = f"{typed('float', len(numbers))} {vector_text('float', [double_text(n) for n in numbers])}"
        result, kind = "poison", typed("float", place.lanes)
        for e in range(place.lanes):
            one = self.out.let(f"extractelement {place.text}, i64 {e}")
            found = self.out.let(f"extractelement {held}, i32 {one}")
            result = self.out.let(f"insertelement {kind} {result}, float {found}, i64 {e}")
        return Val(result, F32, place.lanes)

    def _with(self, v: Val, op: str, number: int) -> Val:
        return self._new(f"{op} {v.text}, {splat_text('i32', str(number), v.lanes)}", v.dtype, v.lanes)

    def _new(self, text: str, dtype: DType, lanes: int) -> Val:
        return Val(self.out.let(text), dtype, lanes)


def numbers(dtype: DType) -> tuple[float, ...]:
    """The numbers of a type of four bits, in the order of their bits."""
    if dtype.is_float:
        return table(dtype)
    low, high = dtype.limits
    return tuple(map(float, (*range(high + 1), *range(low, 0))))


def four_bits(value: Value) -> tuple[Value, DType] | None:
    """An integer whose four lowest bits are the number `value`, and that number's type; None where it is no such
    number. Masks and casts into four bits are left out: they keep those bits."""
    match value:
        case Cast(inner, DType(bits=4) as dtype, False) if dtype.is_integer and inner.dtype.is_integer:
            found = four_bits(inner)
            return (inner, dtype) if found is None else (found[0], dtype)
        case Call(function, (inner,), dtype) if function == f"bits_{dtype}" and dtype.bits == 4:
            found = four_bits(inner)
            return None if found is None else (found[0], dtype)
        case Arith("&", inner, Literal(15)) | Arith("&", Literal(15), inner):
            return inner, U4
    return None
