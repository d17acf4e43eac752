"""The language's data types: exact values, one numpy storage type each. `_ALL` is the table of them; everything that
interpreters and printers need to know of a type is derived from its fields.

`u4 s4 b1 e2m1 e2m3 e3m2` hold one element per array entry here (ml_dtypes storage); packing several into a byte is a
matter of the address map, not of the value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from autosched.errors import Location, ProgramError, nearest
from autosched.logic.remember import Remembering, remembers_hash


@remembers_hash
@dataclass(frozen=True, slots=True)
class DType(Remembering):
    """`kind` is `int`, `uint`, `float` or `bool`; `bits` is the width; `mantissa` and `exponent` count a float's stored
    bits. `special` says which patterns of a float are no numbers:

    - `ieee`: the greatest exponent holds infinity and NaN
    - `fn`: finite; NaN is the pattern of ones (OCP OFP8's e4m3)
    - `fnuz`: finite, and one zero: the pattern of minus zero is NaN (AMD's 8-bit floats up to CDNA3)
    - `finite`: none; what overflows becomes the greatest number, NaN becomes zero (OCP MX's e2m1, e2m3, e3m2)
    - `scale`: powers of two alone, without sign, fraction and zero; NaN is the pattern of ones (OCP MX's e8m0)
    """

    name: str
    kind: str
    bits: int
    numpy: Any
    mantissa: int = 0
    exponent: int = 0
    special: str = "ieee"

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def signed(self) -> bool:
        return self.kind != "uint"

    @property
    def fnuz(self) -> bool:
        """Finite, one zero; the pattern of minus zero is the only NaN."""
        return self.special == "fnuz"

    @property
    def scale(self) -> bool:
        """Powers of two that scale blocks of other numbers: nothing computes with them or rounds to them."""
        return self.special == "scale"

    @property
    def blank(self) -> int | float:
        """What stands where a tensor has no element, the value whose bits are zero: 0, and of a scale its least."""
        return 2.0**-self.bias if self.scale else 0.0 if self.is_float else 0

    @property
    def finite(self) -> bool:
        """Whether every pattern is a number: conversions saturate, and a NaN becomes 0, as that of an integer does."""
        return self.is_integer or self.special == "finite"

    @property
    def small_float(self) -> bool:
        """A float that is computed with as f32, and rounded after each operation."""
        return self.is_float and self.mantissa < 23

    @property
    def sub_byte(self) -> bool:
        """Narrower than the byte that holds it."""
        return self.bits < 8 and self.kind != "bool"

    @property
    def padding(self) -> int:
        """The low bits of a stored float that are always zero."""
        return self.bits - (not self.scale) - self.exponent - self.mantissa if self.is_float else 0

    @property
    def bytes(self) -> int:
        """Bytes of one element in an array (one for the packed types, which are stored one to a byte)."""
        return max(1, self.bits // 8)

    @property
    def limits(self) -> tuple[int, int]:
        """Least and greatest value of an integer type."""
        assert self.is_integer
        if self.kind == "uint":
            return 0, 2**self.bits - 1
        return -(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1

    @property
    def unit_roundoff(self) -> float:
        """Half a unit in the last place of 1.0: the relative error of one rounding."""
        assert self.is_float
        return 2.0 ** -(self.mantissa + 1)

    @property
    def bias(self) -> int:
        """What is added to the exponent of a normal number before it is stored."""
        half = 1 << (self.exponent - 1)
        return half if self.fnuz else half - 1

    @property
    def exponents(self) -> tuple[int, int]:
        """Exponents of the least subnormal (of a scale: of the least value) and of the greatest finite value."""
        greatest = (1 << self.exponent) - 1 - self.bias - (self.special in ("ieee", "scale"))
        if self.scale:
            return -self.bias, greatest
        return 1 - self.bias - self.mantissa, greatest

    @property
    def greatest(self) -> float:
        """The greatest finite value of a float."""
        fraction = self.mantissa - (self.special == "fn")  # its pattern of ones is NaN
        return math.ldexp(2 - 2.0**-fraction, self.exponents[1])

    @property
    def codes(self) -> FloatCodes:
        """The patterns at the upper end of a float without padding."""
        sign = 1 << (self.bits - 1)
        if self.scale:
            ones = (1 << self.bits) - 1
            return FloatCodes(ones - 1, ones, ones)
        if self.special == "fn":
            return FloatCodes(sign - 2, sign - 1, sign - 1)
        if self.special == "fnuz":
            return FloatCodes(sign - 1, sign, sign)
        if self.special == "finite":
            return FloatCodes(sign - 1, sign - 1, 0)
        infinity = sign - (1 << self.mantissa)
        return FloatCodes(infinity - 1, infinity, infinity | 1 << (self.mantissa - 1))


class FloatCodes(NamedTuple):
    """Patterns of a float, sign removed: of the greatest finite value, of what overflows, of NaN (which has no sign
    where it is a zero)."""

    greatest: int
    overflow: int
    nan: int


_ALL = [
    DType("b1", "uint", 1, np.uint8),
    DType("u4", "uint", 4, ml_dtypes.uint4),
    DType("s4", "int", 4, ml_dtypes.int4),
    DType("u8", "uint", 8, np.uint8),
    DType("s8", "int", 8, np.int8),
    DType("u16", "uint", 16, np.uint16),
    DType("s16", "int", 16, np.int16),
    DType("u32", "uint", 32, np.uint32),
    DType("s32", "int", 32, np.int32),
    DType("u64", "uint", 64, np.uint64),
    DType("s64", "int", 64, np.int64),
    DType("e2m1", "float", 4, ml_dtypes.float4_e2m1fn, 1, 2, "finite"),
    DType("e2m3", "float", 6, ml_dtypes.float6_e2m3fn, 3, 2, "finite"),
    DType("e3m2", "float", 6, ml_dtypes.float6_e3m2fn, 2, 3, "finite"),
    DType("e4m3", "float", 8, ml_dtypes.float8_e4m3fn, 3, 4, "fn"),
    DType("e5m2", "float", 8, ml_dtypes.float8_e5m2, 2, 5),
    DType("e3m4", "float", 8, ml_dtypes.float8_e3m4, 4, 3),
    DType("e4m3fnuz", "float", 8, ml_dtypes.float8_e4m3fnuz, 3, 4, "fnuz"),
    DType("e5m2fnuz", "float", 8, ml_dtypes.float8_e5m2fnuz, 2, 5, "fnuz"),
    DType("e8m0", "float", 8, ml_dtypes.float8_e8m0fnu, 0, 8, "scale"),
    DType("f16", "float", 16, np.float16, 10, 5),
    DType("bf16", "float", 16, ml_dtypes.bfloat16, 7, 8),
    # tf32 values are stored in four bytes with the low 13 fraction bits zero.
    DType("tf32", "float", 32, np.float32, 10, 8),
    DType("f32", "float", 32, np.float32, 23, 8),
    DType("f64", "float", 64, np.float64, 52, 11),
]
DTYPES: dict[str, DType] = {d.name: d for d in _ALL}
BOOL = DType("bool", "bool", 1, np.bool_)
"""What comparisons yield; not a type that a program may name."""


def dtype(name: str, location: Location | None = None) -> DType:
    """The type called `name`; ProgramError with the nearest name where there is none."""
    found = DTYPES.get(name)
    if found is None:
        close = nearest(name, DTYPES)
        hint = (f"did you mean {close!r}? " if close else "") + "types: " + " ".join(DTYPES)
        raise ProgramError(f"unknown dtype {name!r}", hint=hint, location=location)
    return found
