"""Arithmetic of the language on LLVM values: one wrap or one rounding an operation, no fast-math, no traps.

Types narrower than f32 compute in f32 and round once more. That equals one rounding for `+ - * / sqrt`, since f32's
24 bits are at least 2p + 2 for p <= 11 (Figueroa 1995, "When is double rounding innocuous?"); bf16's subnormal range
is f32's, but the results there that f32 cannot hold lie below half of bf16's least number and round to the same zero.
Only `fma` needs more, see `_fma_narrow`.
"""

from __future__ import annotations

from autosched.codegen.llvm.convert import Convert
from autosched.codegen.llvm.emitter import Emitter
from autosched.codegen.llvm.lanes import clean_width
from autosched.codegen.llvm.types import Val, constant, scalar, splat_text, suffix, typed
from autosched.ir.dtypes import BOOL, DTYPES, DType

F32, F64 = DTYPES["f32"], DTYPES["f64"]
NATIVE = ("f32", "f64")
_INT_COMPARE = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_FLOAT_COMPARE = {"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "==": "oeq", "!=": "une"}
_FLOAT_OPS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_INT_OPS = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
_MATH = {
    "exp": "llvm.exp",
    "log": "llvm.log",
    "sqrt": "llvm.sqrt",
    "floor": "llvm.floor",
    "ceil": "llvm.ceil",
    "round": "llvm.roundeven",
    "abs": "llvm.fabs",
    "tanh": "llvm.tanh",
}
_ROUNDED = ("exp", "log", "tanh", "erf", "sigmoid", "rsqrt")


class Ops:
    """Operations at the current place of a function. Operands of one operation are brought to one lane count."""

    def __init__(self, emitter: Emitter, permuted: int = 0, to_bf16: int = 0) -> None:
        self.out = emitter
        self.convert = Convert(emitter, permuted, to_bf16)

    # -- lanes --------------------------------------------------------------------------------------------------

    def splat(self, v: Val, lanes: int) -> Val:
        """`v` in every one of `lanes` lanes."""
        if v.lanes == lanes:
            return v
        element = scalar(v.dtype)
        if not v.name.startswith("%"):
            return Val(splat_text(element, v.name, lanes), v.dtype, lanes)
        kind = typed(element, lanes)
        first = self.out.let(f"insertelement {kind} poison, {element} {v.name}, i64 0")
        return Val(
            self.out.let(f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer"),
            v.dtype,
            lanes,
        )

    def together(self, *values: Val) -> tuple[Val, ...]:
        lanes = max(v.lanes for v in values)
        return tuple(self.splat(v, lanes) for v in values)

    def literal(self, value: int | float, dtype: DType, lanes: int = 1) -> Val:
        return Val(splat_text(scalar(dtype), constant(value, dtype), lanes), dtype, lanes)

    def select(self, condition: Val, a: Val, b: Val) -> Val:
        c, a, b = self.together(condition, a, b)
        return Val(self.out.let(f"select {c.text}, {a.text}, {b.text}"), a.dtype, a.lanes)

    def _two(self, op: str, a: Val, b: Val) -> Val:
        return Val(self.out.let(f"{op} {a.text}, {b.name}"), a.dtype, a.lanes)

    def intrinsic(self, name: str, *args: Val) -> Val:
        """An LLVM function named after the first argument's type, which its result has too."""
        first = args[0]
        full = f"{name}.{suffix(scalar(first.dtype), first.lanes)}"
        function = self.out.declarations.need(first.type, full, *(a.type for a in args))
        return Val(
            self.out.let(f"call {first.type} {function}({', '.join(a.text for a in args)})"), first.dtype, first.lanes
        )

    # -- arithmetic ---------------------------------------------------------------------------------------------

    def arith(self, op: str, left: Val, right: Val) -> Val:
        """`left op right` in their dtype."""
        a, b = self.together(left, right)
        if a.dtype.is_float:
            return self._float(op, a, b)
        if op in _INT_OPS:
            return self._two(_INT_OPS[op], a, b)
        if op in ("min", "max"):
            return self.intrinsic(f"llvm.{'s' if a.dtype.kind == 'int' else 'u'}{op}", a, b)
        if op in ("<<", ">>"):
            return self._shift(op, a, b)
        return self._floor_divide(op, a, b)

    def _float(self, op: str, a: Val, b: Val) -> Val:
        if a.dtype.name not in NATIVE:
            wide = self._float(op, self.convert.cast(a, F32), self.convert.cast(b, F32))
            return self.convert.cast(wide, a.dtype)
        if op in _FLOAT_OPS:
            return self._two(_FLOAT_OPS[op], a, b)
        if op in ("min", "max"):
            # numpy's rule: a NaN on either side gives NaN. `llvm.maximum` orders zeros too and takes twice as long;
            # the first choice is x86's maxps as it is: the second number, where one of them is NaN.
            if not b.name.startswith("%"):
                a, b = b, a
            chosen = self.select(self.compare(">" if op == "max" else "<", a, b), a, b)
            if not a.name.startswith("%") and constant(float("nan"), a.dtype) not in a.name:
                return chosen
            nan = Val(self.out.let(f"fcmp uno {a.text}, {a.name}"), BOOL, a.lanes)
            return self.select(nan, a, chosen)
        remainder = self._two("frem", a, b)
        zero = self.literal(0, a.dtype, a.lanes)
        if op == "%":
            return self._float_remainder(remainder, b, zero)
        return self._float_floor_divide(a, b, remainder, zero)

    def _float_remainder(self, remainder: Val, b: Val, zero: Val) -> Val:
        """numpy's rule: the sign of the divisor; a zero remainder takes it too."""
        exact = self.compare("==", remainder, zero)
        opposite = self._logic("xor", self.compare("<", b, zero), self.compare("<", remainder, zero))
        lifted = self.select(opposite, self._two("fadd", remainder, b), remainder)
        signed_zero = self.intrinsic("llvm.copysign", zero, b)
        return self.select(exact, signed_zero, lifted)

    def _float_floor_divide(self, a: Val, b: Val, remainder: Val, zero: Val) -> Val:
        """numpy's rule (`npy_divmod`): from the exact remainder, then snapped to the nearest integer."""
        quotient = self._two("fdiv", self._two("fsub", a, remainder), b)
        opposite = self._logic("xor", self.compare("<", b, zero), self.compare("<", remainder, zero))
        moved = self._logic("and", opposite, self.compare("!=", remainder, zero))
        one = self.literal(1, a.dtype, a.lanes)
        quotient = self.select(moved, self._two("fsub", quotient, one), quotient)
        floor = self.intrinsic("llvm.floor", quotient)
        half = self.compare(">", self._two("fsub", quotient, floor), self.literal(0.5, a.dtype, a.lanes))
        snapped = self.select(half, self._two("fadd", floor, one), floor)
        direct = self._two("fdiv", a, b)
        snapped = self.select(
            self.compare("!=", quotient, zero), snapped, self.intrinsic("llvm.copysign", zero, direct)
        )
        return self.select(self.compare("==", b, zero), direct, snapped)

    def _logic(self, op: str, a: Val, b: Val) -> Val:
        a, b = self.together(a, b)
        return self._two(op, a, b)

    def _shift(self, op: str, a: Val, b: Val) -> Val:
        """A shift by the width or more (or by a negative amount) gives 0, or the sign for `>>` of signed types."""
        bits, signed = a.dtype.bits, a.dtype.kind == "int"
        last = self.literal(bits - 1, a.dtype, a.lanes)
        if bits == 1:
            stays = self._two("icmp eq", b, self.literal(0, a.dtype, a.lanes))
            return self.select(Val(stays.name, BOOL, a.lanes), a, self.literal(0, a.dtype, a.lanes))
        amount = self.intrinsic("llvm.umin", b, last)
        if op == ">>" and signed:
            return self._two("ashr", a, amount)
        shifted = self._two("shl" if op == "<<" else "lshr", a, amount)
        inside = self.out.let(f"icmp ule {b.text}, {last.name}")
        return self.select(Val(inside, BOOL, a.lanes), shifted, self.literal(0, a.dtype, a.lanes))

    def _floor_divide(self, op: str, a: Val, b: Val) -> Val:
        """`//` and `%` that floor; by zero they give 0, and the least number over -1 wraps."""
        zero, one = self.literal(0, a.dtype, a.lanes), self.literal(1, a.dtype, a.lanes)
        is_zero = self.compare("==", b, zero)
        if a.dtype.kind == "uint":
            safe = self.select(is_zero, one, b)
            return self.select(is_zero, zero, self._two("udiv" if op == "//" else "urem", a, safe))
        # -1 is taken out too: the hardware traps on the quotient that does not fit.
        minus = self.compare("==", b, self.literal(-1, a.dtype, a.lanes))
        safe = self.select(self._logic("or", is_zero, minus), one, b)
        remainder = self._two("srem", a, safe)
        inexact = self.compare("!=", remainder, zero)
        opposite = self.compare("<", self._two("xor", remainder, safe), zero)
        below = self._logic("and", inexact, opposite)
        if op == "%":
            return self.select(is_zero, zero, self.select(below, self._two("add", remainder, safe), remainder))
        quotient = self._two("sdiv", a, safe)
        quotient = self.select(below, self._two("sub", quotient, one), quotient)
        quotient = self.select(minus, self._two("sub", zero, a), quotient)
        return self.select(is_zero, zero, quotient)

    # -- the rest -----------------------------------------------------------------------------------------------

    def compare(self, op: str, left: Val, right: Val) -> Val:
        """A comparison; with NaN only `!=` holds."""
        a, b = self.together(left, right)
        if a.lanes > 1 and a.dtype.bits < clean_width(a.lanes):
            wide = F64 if a.lanes == 2 else F32
            if not a.dtype.is_float:
                bits = next(b for b in (8, 16, 32, 64) if b >= clean_width(a.lanes))
                wide = DTYPES[f"{'s' if a.dtype.kind == 'int' else 'u'}{bits}"]
            a, b = self.convert.cast(a, wide), self.convert.cast(b, wide)
        if a.dtype.is_float:
            if a.dtype.name not in NATIVE:
                a, b = self.convert.cast(a, F32), self.convert.cast(b, F32)
            text = f"fcmp {_FLOAT_COMPARE[op]} {a.text}, {b.name}"
        elif op in ("==", "!="):
            text = f"icmp {'eq' if op == '==' else 'ne'} {a.text}, {b.name}"
        else:
            text = f"icmp {'s' if a.dtype.kind == 'int' else 'u'}{_INT_COMPARE[op]} {a.text}, {b.name}"
        return Val(self.out.let(text), BOOL, a.lanes)

    def logical(self, op: str, a: Val, b: Val | None = None) -> Val:
        """`and`, `or` of two conditions, or `not` of one."""
        if b is None:
            return self._two("xor", a, Val(splat_text("i1", "true", a.lanes), BOOL, a.lanes))
        return self._logic(op, a, b)

    def unary(self, op: str, a: Val) -> Val:
        """`-` or `~`."""
        if op == "~":
            return self._two(
                "xor", a, self.literal(-1 if a.dtype.kind == "int" else 2**a.dtype.bits - 1, a.dtype, a.lanes)
            )
        if not a.dtype.is_float:
            return self._two("sub", self.literal(0, a.dtype, a.lanes), a)
        if a.dtype.name not in NATIVE:
            return self.convert.cast(self.unary(op, self.convert.cast(a, F32)), a.dtype)
        return Val(self.out.let(f"fneg {a.text}"), a.dtype, a.lanes)

    def call(self, function: str, args: tuple[Val, ...]) -> Val:
        """A function of the language; narrow floats compute in f32 and round once more."""
        args = self.together(*args)
        a = args[0]
        if function.startswith("bits_"):
            return self.convert.bits(a, DTYPES[function.removeprefix("bits_")])
        if not a.dtype.is_float:
            if function == "popcount":
                return self.intrinsic("llvm.ctpop", a)
            if a.dtype.kind == "uint":
                return a  # abs
            return self._intrinsic_abs(a)
        if a.dtype.name not in NATIVE:
            if function == "fma":
                return self._fma_narrow(args)
            wide = F64 if function in _ROUNDED else F32
            return self.convert.cast(self.call(function, (self.convert.cast(a, wide),)), a.dtype)
        if function in _ROUNDED and a.dtype == F32:
            # The language's functions are those of f64 rounded once: the interpreter's numbers, not merely near them.
            return self.convert.cast(self.call(function, (self.convert.cast(a, F64),)), F32)
        one = self.literal(1, a.dtype, a.lanes)
        match function:
            case "fma":
                return self.intrinsic("llvm.fma", *args)
            case "rsqrt":
                return self._two("fdiv", one, self.intrinsic("llvm.sqrt", a))
            case "sigmoid":
                grown = self.intrinsic("llvm.exp", self.unary("-", a))
                return self._two("fdiv", one, self._two("fadd", one, grown))
            case "erf":
                return self._each("erf", a)
            case _:
                return self.intrinsic(_MATH[function], a)

    def _intrinsic_abs(self, a: Val) -> Val:
        name = f"llvm.abs.{suffix(scalar(a.dtype), a.lanes)}"
        function = self.out.declarations.need(a.type, name, a.type, "i1")
        return Val(self.out.let(f"call {a.type} {function}({a.text}, i1 false)"), a.dtype, a.lanes)

    def _each(self, symbol: str, a: Val) -> Val:
        """A libm function, lane by lane."""
        element = scalar(a.dtype)
        function = self.out.declarations.need(element, symbol, element)
        if a.lanes == 1:
            return Val(self.out.let(f"call {element} {function}({a.text})"), a.dtype)
        result = "poison"
        for e in range(a.lanes):
            x = self.out.let(f"extractelement {a.text}, i64 {e}")
            y = self.out.let(f"call {element} {function}({element} {x})")
            result = self.out.let(f"insertelement {a.type} {result}, {element} {y}, i64 {e}")
        return Val(result, a.dtype, a.lanes)

    def _fma_narrow(self, args: tuple[Val, ...]) -> Val:
        """`a * b + c` with one rounding: the product is exact in f64 (22 bits), the sum is rounded to odd there
        (TwoSum gives its error), and a further rounding of a value rounded to odd is a single one (Boldo and
        Melquiond 2008)."""
        a, b, c = (self.convert.cast(v, F64) for v in args)
        product = self._two("fmul", a, b)
        total = self._two("fadd", product, c)
        back = self._two("fsub", total, product)
        lost = self._two("fsub", product, self._two("fsub", total, back))
        error = self._two("fadd", lost, self._two("fsub", c, back))
        zero = self.literal(0, F64, a.lanes)
        return self.convert.cast(
            self.convert.to_odd(total, self._signed_error(total, error, zero), zero), args[0].dtype
        )

    def _signed_error(self, total: Val, error: Val, zero: Val) -> Val:
        """The error, positive where the exact value is farther from zero than the sum."""
        negative = self.compare("<", total, zero)
        return self.select(negative, Val(self.out.let(f"fneg {error.text}"), F64, error.lanes), error)
