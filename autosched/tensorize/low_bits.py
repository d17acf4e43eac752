"""How much of an integer operand's elements a value looks at, as far as masks say: `b[e[i, k] & 3]` at two bits."""

from __future__ import annotations

from autosched.ir.value import Arith, Literal, Read, Value, map_value, reads


def looks_past(value: Value, operand: str, bits: int) -> bool:
    """Whether a value may depend on more than so many low bits of an operand's elements."""

    def masked(v: Value) -> Value:
        match v:
            case Arith("&", Read(tensor), Literal(mask)) | Arith("&", Literal(mask), Read(tensor)):
                return Literal(0, v.dtype) if tensor == operand and 0 <= int(mask) < 1 << bits else v
        return v

    return any(r.tensor == operand for r in reads(map_value(value, masked)))


def low_bits(value: Value, operand: str, width: int) -> int:
    """The fewest low bits of an operand's elements, which have `width`, beyond which a value does not look."""
    return next((n for n in range(1, width) if not looks_past(value, operand, n)), width)
