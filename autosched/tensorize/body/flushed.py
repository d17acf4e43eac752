"""Programs that flush subnormal numbers themselves, as an instruction does that overwrites its target."""

from __future__ import annotations

from autosched.ir.dtypes import BOOL, DType
from autosched.ir.value import Arith, Call, Cast, Comparison, Literal, Read, Select, Value
from autosched.tensorize.body.canonical import canonical
from autosched.tensorize.body.equal import SIGN_OF_ZERO


def flushed_as(program: Value, term: Value) -> tuple[Value, tuple[str, ...]] | None:
    """`term`, a conversion whose element is flushed to a zero of its sign, with that written out as `program` does it,
    and what this leaves open: as such a zero (`bf16(a * 0.0 if abs(a) < 2^-126 else a)`), or as 0.0. None where the
    program does not, or where the result of `term` may be flushed, too."""
    if not (isinstance(term, Cast) and isinstance(term.operand, Read) and _as_wide(term.operand.dtype, term.dtype)):
        return None
    read, mine = term.operand, canonical(program)
    zero = Literal(0.0, read.dtype)
    forms: list[tuple[Value, tuple[str, ...]]] = [(Arith("*", read, zero, read.dtype), ()), (zero, (SIGN_OF_ZERO,))]
    for flushed_to, left_open in forms:
        found = Cast(_flushed(read, flushed_to), term.dtype)
        if mine == canonical(found):
            return found, left_open
    return None


def _as_wide(source: DType, dtype: DType) -> bool:
    """Whether no normal number of `source` becomes a subnormal one of `dtype`."""
    alike = (source.exponent, source.bias) == (dtype.exponent, dtype.bias)
    return source.is_float and dtype.is_float and not source.scale and alike


def _flushed(value: Read, zero: Value) -> Value:
    least = Literal(2.0 ** (1 - value.dtype.bias), value.dtype)
    subnormal = Comparison("<", Call("abs", (value,), value.dtype), least, BOOL)
    return Select(subnormal, zero, value, value.dtype)
