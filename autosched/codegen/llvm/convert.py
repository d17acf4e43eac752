"""Conversions between dtypes on LLVM values, each a single rounding, wrap or saturation.

Wide floats go to narrow ones through f32 rounded to odd, so that two roundings are one (Boldo and Melquiond 2008,
"Emulation of FMA and correctly rounded sums"). bf16, tf32 and floats of 8 and 4 bits round in integer arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable

from autosched.codegen import workarounds
from autosched.codegen.llvm.emitter import Emitter
from autosched.codegen.llvm.tables import Tables
from autosched.codegen.llvm.types import Val, constant, double_text, scalar, splat_text, suffix, typed
from autosched.codegen.passes.small_floats import Conversion, narrowing, widening
from autosched.ir.dtypes import BOOL, DTYPES, DType

F32, F64 = DTYPES["f32"], DTYPES["f64"]
U32 = DTYPES["u32"]
SUBNORMAL = 0x20
"""The class of `vfpclassps`, of either sign."""


class Convert:
    """Conversions at the current place of a function. `permuted`: how many lanes of 32 bits one instruction of the
    machine permutes (0: none is known). `to_bf16`: how many floats one instruction rounds to bf16, subnormal ones as
    zero (0: none is known). `evaluate`, which whoever prints values sets, takes the steps of a conversion."""

    def __init__(self, emitter: Emitter, permuted: int = 0, to_bf16: int = 0) -> None:
        self.out = emitter
        self.to_bf16 = to_bf16
        self.tables = Tables(emitter, permuted)
        self.evaluate: Callable[[Conversion, Val], Val] = _by_nobody

    def cast(self, v: Val, dtype: DType, saturate: bool = False) -> Val:
        """`v` converted as the language's casts are; `saturate` clamps to an integer dtype's range."""
        source = v.dtype
        if source == dtype:
            return v
        if not v.name.startswith("%") and v.lanes == 1 and source in (F32, F64) and dtype in (F32, F64):
            return Val(v.name if dtype == F64 else self._let(f"fptrunc {v.text} to float"), dtype)
        if source.is_float:
            if dtype.is_float:
                return self._narrow(self._widen(v, dtype), dtype)
            return self._float_to_int(v, dtype, saturate)
        if dtype.is_float:
            return self._int_to_float(v, dtype)
        return self._resize(self._clamp(v, dtype) if saturate else v, dtype)

    # -- helpers ------------------------------------------------------------------------------------------------

    def _let(self, text: str) -> str:
        return self.out.let(text)

    def _new(self, text: str, dtype: DType, lanes: int) -> Val:
        return Val(self.out.let(text), dtype, lanes)

    def _const(self, text: str | int, dtype: DType, lanes: int) -> str:
        return splat_text(scalar(dtype), str(text), lanes)

    def _two(self, op: str, a: Val, b: Val | str | int) -> Val:
        right = b.name if isinstance(b, Val) else self._const(b, a.dtype, a.lanes)
        return Val(self._let(f"{op} {a.text}, {right}"), a.dtype, a.lanes)

    def _test(self, op: str, a: Val, b: Val | str | int) -> Val:
        return Val(self._two(op, a, b).name, BOOL, a.lanes)

    def _pick(self, condition: Val, a: Val, b: Val | str | int) -> Val:
        right = b.name if isinstance(b, Val) else self._const(b, a.dtype, a.lanes)
        return Val(self._let(f"select {condition.text}, {a.text}, {a.type} {right}"), a.dtype, a.lanes)

    def bits(self, v: Val, dtype: DType) -> Val:
        """The same bits as another dtype of the same width."""
        return self._new(f"bitcast {v.text} to {typed(scalar(dtype), v.lanes)}", dtype, v.lanes)

    # -- integers -----------------------------------------------------------------------------------------------

    def _resize(self, v: Val, dtype: DType) -> Val:
        """Modulo 2**bits."""
        wide, narrow = dtype.bits, v.dtype.bits
        target = typed(scalar(dtype), v.lanes)
        if wide == narrow:
            return Val(v.name, dtype, v.lanes)
        if wide < narrow:
            return self._new(f"trunc {v.text} to {target}", dtype, v.lanes)
        return self._new(f"{'sext' if v.dtype.kind == 'int' else 'zext'} {v.text} to {target}", dtype, v.lanes)

    def _clamp(self, v: Val, dtype: DType) -> Val:
        if v.dtype == BOOL:
            return v
        (low, high), (least, most) = dtype.limits, v.dtype.limits
        sign = "s" if v.dtype.kind == "int" else "u"
        for op, bound, needed in (("max", low, low > least), ("min", high, high < most)):
            if needed:
                name = f"llvm.{sign}{op}.{suffix(scalar(v.dtype), v.lanes)}"
                function = self.out.declarations.need(v.type, name, v.type, v.type)
                limit = self._const(constant(bound, v.dtype), v.dtype, v.lanes)
                v = self._new(f"call {v.type} {function}({v.text}, {v.type} {limit})", v.dtype, v.lanes)
        return v

    def _int_to_float(self, v: Val, dtype: DType) -> Val:
        op = "sitofp" if v.dtype.kind == "int" else "uitofp"
        if dtype in (F32, F64):
            return self._new(f"{op} {v.text} to {typed(scalar(dtype), v.lanes)}", dtype, v.lanes)
        exact = F32 if v.dtype.bits <= 16 else F64
        if v.dtype.bits == 64:
            v = self._sticky(v)
        return self.cast(self._new(f"{op} {v.text} to {typed(scalar(exact), v.lanes)}", exact, v.lanes), dtype)

    def _sticky(self, v: Val) -> Val:
        """A 64-bit integer beyond 2**53 rounded to odd at 53 bits: exact in f64, and a later rounding is single."""
        low = self._two("and", v, 0x7FF)
        carry = self._two("and", self._two("add", low, 0x7FF), 0x800)
        folded = self._two("or", self._two("and", v, constant(-0x800, v.dtype)), carry)
        if v.dtype.kind == "int":
            big = self._test("icmp ugt", self._two("add", v, 1 << 53), 1 << 54)
        else:
            big = self._test("icmp ugt", v, 1 << 53)
        return self._pick(big, folded, v)

    # -- floats to integers -------------------------------------------------------------------------------------

    def _float_to_int(self, v: Val, dtype: DType, saturate: bool) -> Val:
        """Nearest even; NaN gives 0; out of range clamps, or wraps with infinity to 0."""
        if v.dtype not in (F32, F64):
            v = self._widen(v, F32)
        if saturate:
            # Below a byte LLVM legalises poorly: saturate to the byte and clamp in integers.
            wide = dtype if dtype.bits >= 8 else DTYPES["s16"]
            result = self._to_int_sat(v, wide)
            return result if wide == dtype else self._resize(self._clamp(result, dtype), dtype)
        v = self._rounded(v)
        kind = suffix(scalar(v.dtype), v.lanes)
        bits = 32 if dtype.bits <= 32 else 64
        # Beyond 2**(bits-1) reduce modulo 2**bits first. All steps are exact there: the float's unit is at least
        # 2**(bits - 53) (f64) or 2**(bits - 24) (f32), so the difference has no more bits than the type.
        name = self.out.declarations.need(v.type, f"llvm.fabs.{kind}", v.type)
        size = self._new(f"call {v.type} {name}({v.text})", v.dtype, v.lanes)
        big = self._test("fcmp oge", size, double_text(2.0 ** (bits - 1)))
        scaled = self._two("fmul", v, double_text(2.0**-bits))
        name = self.out.declarations.need(v.type, f"llvm.floor.{kind}", v.type)
        whole = self._new(f"call {v.type} {name}({scaled.text})", v.dtype, v.lanes)
        reduced = self._two("fsub", v, self._two("fmul", whole, double_text(2.0**bits)))
        signed, unsigned = DTYPES[f"s{bits}"], DTYPES[f"u{bits}"]
        direct = self._to_int_sat(v, signed)
        wrapped = self._to_int_sat(reduced, unsigned)
        return self._resize(self._pick(big, Val(wrapped.name, signed, v.lanes), direct), dtype)

    def _rounded(self, v: Val) -> Val:
        function = self.out.declarations.need(v.type, f"llvm.roundeven.{suffix(scalar(v.dtype), v.lanes)}", v.type)
        return self._new(f"call {v.type} {function}({v.text})", v.dtype, v.lanes)

    def _to_int_sat(self, v: Val, dtype: DType) -> Val:
        """Floats rounded and clamped to an integer type of at least a byte, NaN to 0."""
        if dtype.bits <= 32 and dtype.name != "u32":
            return self._to_int_clamped(v, dtype)
        v = self._rounded(v)
        target = typed(scalar(dtype), v.lanes)
        stem = "llvm.fptosi.sat" if dtype.kind == "int" else "llvm.fptoui.sat"
        name = f"{stem}.{suffix(scalar(dtype), v.lanes)}.{suffix(scalar(v.dtype), v.lanes)}"
        function = self.out.declarations.need(target, name, v.type)
        return self._new(f"call {target} {function}({v.text})", dtype, v.lanes)

    @workarounds.CLAMPED_FIRST
    def _to_int_clamped(self, v: Val, dtype: DType) -> Val:
        """The same by compares and selects. The bounds are integers, so clamping comes before rounding, and that is one
        instruction with the conversion."""
        low, high = dtype.limits
        top = float(high) if dtype.bits < 32 or v.dtype == F64 else float(2**31 - 2**7)  # the greatest f32 below 2**31
        floor = self._const(double_text(float(low)), v.dtype, v.lanes)
        raised = self._pick(self._test("fcmp ogt", v, double_text(float(low))), v, Val(floor, v.dtype, v.lanes))
        ceiling = self._const(double_text(top), v.dtype, v.lanes)
        inside = self._pick(self._test("fcmp olt", raised, double_text(top)), raised, Val(ceiling, v.dtype, v.lanes))
        # NaN goes here, where the least and its mask are one instruction; after the conversion it would be one more.
        inside = self._pick(self._test("fcmp ord", v, v), inside, double_text(0.0))
        s32 = DTYPES["s32"]
        into = typed("i32", v.lanes)
        name = f"llvm.lrint.{suffix('i32', v.lanes)}.{suffix(scalar(v.dtype), v.lanes)}"
        function = self.out.declarations.need(into, name, v.type)
        whole = self._new(f"call {into} {function}({inside.text})", s32, v.lanes)
        if top != float(high):
            beyond = self._test("fcmp oge", raised, double_text(float(high + 1)))
            whole = self._pick(beyond, Val(self._const(high, s32, v.lanes), s32, v.lanes), whole)
        return self._resize(whole, dtype)

    # -- floats -------------------------------------------------------------------------------------------------

    def _widen(self, v: Val, dtype: DType) -> Val:
        """To f32 or f64, exactly: the one that holds `v` and from which `dtype` is reached."""
        lanes, name = v.lanes, v.dtype.name
        if name == "f16":
            v = self._new(f"fpext {v.text} to {typed('float', lanes)}", F32, lanes)
        elif name == "tf32":
            v = Val(v.name, F32, lanes)
        elif name == "bf16":
            wide = self._new(f"zext {v.text} to {typed('i32', lanes)}", U32, lanes)
            v = self.bits(self._two("shl", wide, 16), F32)
        elif v.dtype.bits <= 8:
            v = self.tables.widened(v) if self.tables.hold(v) else self._widen_few(v)
        if dtype == F64 and v.dtype == F32:
            v = self._new(f"fpext {v.text} to {typed('double', lanes)}", F64, lanes)
        return v

    def _widen_few(self, v: Val) -> Val:
        """8 bits or 4 to f32."""
        wide = self._new(f"zext {v.text} to {typed('i32', v.lanes)}", U32, v.lanes)
        return self.evaluate(widening(v.dtype), wide)

    def _narrow(self, v: Val, dtype: DType) -> Val:
        """f32 or f64 rounded once into `dtype`."""
        if v.dtype == dtype:
            return v
        if dtype == F64:
            return self._new(f"fpext {v.text} to {typed('double', v.lanes)}", F64, v.lanes)
        if v.dtype == F64:
            near = self._new(f"fptrunc {v.text} to {typed('float', v.lanes)}", F32, v.lanes)
            if dtype == F32:
                return near
            v = self._odd_f32(v, near)
        if dtype.name == "f16":
            return self._new(f"fptrunc {v.text} to {typed('half', v.lanes)}", dtype, v.lanes)
        if dtype.name == "bf16" and v.lanes == self.to_bf16 > 1:
            return self._bf16_at_once(v, dtype)
        if dtype.name in ("bf16", "tf32"):
            return self._drop_bits(v, dtype)
        return self._narrow_few(v, dtype)

    def _odd_f32(self, v: Val, near: Val) -> Val:
        """f64 to f32 rounded to odd, from the nearest f32."""
        back = self._new(f"fpext {near.text} to {typed('double', v.lanes)}", F64, v.lanes)
        name = self.out.declarations.need(v.type, f"llvm.fabs.{suffix('double', v.lanes)}", v.type)
        size = self._new(f"call {v.type} {name}({v.text})", F64, v.lanes)
        reached = self._new(f"call {v.type} {name}({back.text})", F64, v.lanes)
        return self._step_to_odd(
            near, U32, self._test("fcmp olt", reached, size), self._test("fcmp ogt", reached, size)
        )

    def to_odd(self, total: Val, outward: Val, zero: Val) -> Val:
        """An f64 `total` rounded to odd; `outward` is its error, positive where the exact value is farther from 0."""
        more, less = self._test("fcmp ogt", outward, zero), self._test("fcmp olt", outward, zero)
        return self._step_to_odd(total, DTYPES["u64"], more, less)

    def _step_to_odd(self, near: Val, unsigned: DType, more: Val, less: Val) -> Val:
        """Move an even, inexact value one step away from (`more`) or towards (`less`) zero: its bits plus, minus 1."""
        raw = self.bits(near, unsigned)
        even = self._test("icmp eq", self._two("and", raw, 1), 0)
        up = Val(self._let(f"and {more.text}, {even.name}"), BOOL, near.lanes)
        down = Val(self._let(f"and {less.text}, {even.name}"), BOOL, near.lanes)
        moved = self._pick(up, self._two("add", raw, 1), raw)
        return self.bits(self._pick(down, self._two("sub", raw, 1), moved), near.dtype)

    def _bf16_at_once(self, v: Val, dtype: DType) -> Val:
        """An f32 register rounded by the instruction, and in integers where one of its lanes is subnormal."""
        out, n, bits = self.out, v.lanes, 32 * v.lanes
        kind, halves, flags = typed("i16", n), typed("bfloat", n), typed("i1", n)
        classes = out.declarations.need(flags, f"llvm.x86.avx512.fpclass.ps.{bits}", v.type, "i32 immarg")
        some = out.declarations.need("i1", f"llvm.vector.reduce.or.v{n}i1", flags)
        rounding = out.declarations.need(halves, f"llvm.x86.avx512bf16.cvtneps2bf16.{bits}", v.type)
        small = out.let(f"call {flags} {classes}({v.text}, i32 {SUBNORMAL})")
        half = out.let(f"call {halves} {rounding}({v.text})")
        quick = out.let(f"bitcast {halves} {half} to {kind}")
        before, exact, after = out.block, out.label("subnormal"), out.label("rounded")
        out.branch_if(out.let(f"call i1 {some}({flags} {small})"), exact, after)
        out.start(exact)
        slow = self._drop_bits(v, dtype)
        out.branch(after)
        out.start(after)
        return self._new(f"phi {kind} [ {quick}, %{before} ], [ {slow.name}, %{exact} ]", dtype, n)

    @workarounds.BF16_IN_INTEGERS
    def _drop_bits(self, v: Val, dtype: DType) -> Val:
        """Round an f32's low fraction bits away, ties to even, in integers; NaN stays NaN."""
        drop = 23 - dtype.mantissa
        raw = self.bits(v, U32)
        tie = self._two("and", self._two("lshr", raw, drop), 1)
        rounded = self._two("add", self._two("add", raw, (1 << (drop - 1)) - 1), tie)
        nan = Val(self._let(f"fcmp uno {v.text}, {v.name}"), BOOL, v.lanes)
        result = self._pick(nan, self._two("or", raw, 0x400000), rounded)
        if dtype.name == "tf32":
            return Val(self.bits(self._two("and", result, (1 << 32) - (1 << drop)), F32).name, dtype, v.lanes)
        top = self._two("lshr", result, 16)
        return self._new(f"trunc {top.text} to {typed('i16', v.lanes)}", dtype, v.lanes)

    def _narrow_few(self, v: Val, dtype: DType) -> Val:
        """f32 to 8 bits or 4."""
        found = self.evaluate(narrowing(dtype), v)
        return self._new(f"trunc {found.text} to {typed(scalar(dtype), v.lanes)}", dtype, v.lanes)


def _by_nobody(conversion: Conversion, v: Val) -> Val:
    raise AssertionError("a conversion of a small float needs an evaluator")
