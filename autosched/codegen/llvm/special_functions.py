"""`scalb` and `lookup`: on any machine, and where AVX-512 has an instruction for sixteen lanes."""

from __future__ import annotations

from collections.abc import Callable

from autosched.codegen.llvm.ops import Ops
from autosched.codegen.llvm.types import Val, scalar, suffix, typed, vector_text
from autosched.ir.dtypes import DTYPES

S32 = DTYPES["s32"]
AVX512 = "avx512f"
SIXTEEN = 16
"""Elements of 32 bits in AVX-512's registers."""
FAR = 5000.0
"""A power of two that takes every float to infinity or zero."""
NEAREST = "i32 4"
"""Rounding as it is set."""


class Words:
    """Values at the current place of a function."""

    def __init__(self, ops: Ops) -> None:
        self.ops, self.out = ops, ops.out

    def scalb(self, x: Val, k: Val, features: frozenset[str]) -> Val:
        """x times two to the power floor(k), rounded once; both have the same lanes."""
        if AVX512 in features and x.dtype.name == "f32":
            return self._by_sixteen(self._scalef, x, k)
        ops, dtype = self.ops, x.dtype
        far, near, zero = (ops.literal(n, dtype, x.lanes) for n in (FAR, -FAR, 0.0))
        floor = ops.intrinsic("llvm.floor", k)
        power = ops.convert.cast(ops.arith("min", ops.arith("max", floor, near), far), S32)
        name = f"llvm.ldexp.{suffix(scalar(dtype), x.lanes)}.{suffix('i32', x.lanes)}"
        function = self.out.declarations.need(x.type, name, x.type, power.type)
        found = Val(self.out.let(f"call {x.type} {function}({x.text}, {power.text})"), dtype, x.lanes)
        # An infinite power has the last word over a NaN; 0 and infinity it may make one.
        unknown = ops.compare("!=", x, x)
        for sign, end in ((1.0, ops.literal(float("inf"), dtype, x.lanes)), (-1.0, zero)):
            infinite = ops.compare("==", k, ops.literal(sign * float("inf"), dtype, x.lanes))
            found = ops.select(infinite, ops.select(unknown, end, ops.arith("*", x, end)), found)
        return ops.select(ops.compare("!=", k, k), k, found)

    def lookup(self, index: Val, numbers: list[str], features: frozenset[str]) -> Val:
        """The one of `numbers`, literals of the float type as wide as the index, that its lowest bits choose."""
        dtype, count = DTYPES[f"f{index.dtype.bits}"], len(numbers)
        element, word = scalar(dtype), scalar(index.dtype)
        if AVX512 in features and dtype.name == "f32" and count == 2 * SIXTEEN:
            halves = [vector_text(element, numbers[at : at + SIXTEEN]) for at in (0, SIXTEEN)]
            return self._by_sixteen(lambda i: self._permuted(halves, i), index)
        table = f"{typed(element, count)} {vector_text(element, numbers)}"
        place = self.ops.arith("&", index, self.ops.literal(count - 1, index.dtype))
        if index.lanes == 1:
            return Val(self.out.let(f"extractelement {table}, {place.text}"), dtype)
        result, kind = "poison", typed(element, index.lanes)
        for e in range(index.lanes):
            one = self.out.let(f"extractelement {place.text}, i64 {e}")
            found = self.out.let(f"extractelement {table}, {word} {one}")
            result = self.out.let(f"insertelement {kind} {result}, {element} {found}, i64 {e}")
        return Val(result, dtype, index.lanes)

    # -- AVX-512 ------------------------------------------------------------------------------------------------

    def _scalef(self, x: Val, k: Val) -> Val:
        name = "llvm.x86.avx512.mask.scalef.ps.512"
        function = self.out.declarations.need(x.type, name, x.type, x.type, x.type, "i16", "i32")
        call = f"call {x.type} {function}({x.text}, {k.text}, {x.type} zeroinitializer, i16 -1, {NEAREST})"
        return Val(self.out.let(call), x.dtype, x.lanes)

    def _permuted(self, halves: list[str], index: Val) -> Val:
        kind = typed("float", SIXTEEN)
        function = self.out.declarations.need(kind, "llvm.x86.avx512.vpermi2var.ps.512", kind, index.type, kind)
        call = f"call {kind} {function}({kind} {halves[0]}, {index.text}, {kind} {halves[1]})"
        return Val(self.out.let(call), DTYPES["f32"], SIXTEEN)

    def _by_sixteen(self, function: Callable[..., Val], *values: Val) -> Val:
        """A function of sixteen lanes on any number of them."""
        lanes = values[0].lanes
        if lanes == SIXTEEN:
            return function(*values)
        if lanes == 1:
            return self._one(function, *values)
        parts = [function(*(self._lanes(v, at, SIXTEEN) for v in values)) for at in range(0, lanes, SIXTEEN)]
        parts += parts[-1:] * ((1 << (len(parts) - 1).bit_length()) - len(parts))  # pairs; nobody reads the last
        while len(parts) > 1:
            parts = [self._joined(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0] if parts[0].lanes == lanes else self._lanes(parts[0], 0, lanes)

    def _one(self, function: Callable[..., Val], *values: Val) -> Val:
        wide = []
        for v in values:
            kind = typed(scalar(v.dtype), SIXTEEN)
            wide.append(Val(self.out.let(f"insertelement {kind} poison, {v.text}, i64 0"), v.dtype, SIXTEEN))
        result = function(*wide)
        return Val(self.out.let(f"extractelement {result.text}, i64 0"), result.dtype)

    def _lanes(self, v: Val, first: int, count: int) -> Val:
        """`count` lanes from `first` on; those past the end may be anything."""
        places = [f"i32 {first + e}" if first + e < v.lanes else "i32 poison" for e in range(count)]
        mask = f"<{count} x i32> <{', '.join(places)}>"
        return Val(self.out.let(f"shufflevector {v.text}, {v.type} poison, {mask}"), v.dtype, count)

    def _joined(self, a: Val, b: Val) -> Val:
        places = ", ".join(f"i32 {e}" for e in range(2 * a.lanes))
        mask = f"<{2 * a.lanes} x i32> <{places}>"
        return Val(self.out.let(f"shufflevector {a.text}, {b.text}, {mask}"), a.dtype, 2 * a.lanes)
