"""Value expressions as C expressions of their compute type, with the language's exact meaning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, assert_never

from autosched.codegen import workarounds
from autosched.codegen.c_like.ctypes import compute_type, literal, stored_as_bits
from autosched.codegen.c_like.helpers import is_helper
from autosched.codegen.c_like.indices import INDEX_TYPE, IndexPrinter
from autosched.ir.dtypes import DType
from autosched.ir.value import (
    Arith,
    Call,
    Cast,
    Comparison,
    Condition,
    FromIndex,
    Index,
    Literal,
    Logical,
    Read,
    Scalar,
    Select,
    Unary,
    Value,
)
from autosched.logic import Bool, Int

# C's precedences, loosest first: ?: || && | ^ & == < << + * unary.
_LEVEL = {"|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7, "<<": 8, ">>": 8}
_LEVEL |= {"+": 9, "-": 9, "*": 10, "/": 10}
_TERNARY, _OR, _AND, _UNARY, _PRIMARY = 0, 1, 2, 11, 12
Text = tuple[str, int]
"""An expression and the precedence of its outermost operator."""


@dataclass(frozen=True)
class CLikeValuePrinter:
    """`read` spells a tensor element (as stored), `scalar` a run-time scalar, `use` is told of each helper called;
    `formula` spells a function of the kernel's own, None for one of the language's."""

    index_type: ClassVar[str] = INDEX_TYPE
    """That data are cast to where they are a subscript."""

    index: IndexPrinter
    read: Callable[[Read], str]
    scalar: Callable[[str], str]
    use: Callable[[str], None]
    formula: Callable[[str], str | None] = lambda name: None

    def value(self, value: Value) -> str:
        """The expression; its C type is the dtype's compute type, or `int` by promotion with the same value."""
        return self._value(value)[0]

    def stored(self, value: Value) -> str:
        """The expression in its dtype's storage type, ready to be assigned to an element."""
        dtype = value.dtype
        if stored_as_bits(dtype):
            if isinstance(value, Read):
                return self.read(value)  # the bits as they are
            text, _, rounded = self._unrounded(value)
            return self._call(f"bits_{dtype.name}", text if rounded else self.value(value))
        if dtype.sub_byte and dtype.bits > 1:
            return f"({compute_type(dtype)})({self._at(value, _UNARY)} & {2**dtype.bits - 1})"
        return self.value(value)

    def loaded(self, element: str, dtype: DType) -> str:
        """A stored element as a value."""
        if stored_as_bits(dtype):
            return self._call(f"load_{dtype.name}", element)
        if dtype.sub_byte:
            return self._call(f"wrap_{dtype.name}", f"(uint8_t){element}")
        return element

    def condition(self, condition: Condition) -> str:
        """A guard, as the condition of an `if`."""
        return self._condition(condition, _TERNARY)

    def subscript(self, index: Index) -> str:
        """A subscript as an index expression; a data-dependent one is cast."""
        if isinstance(index, Int):
            return self.index.number(index)
        return f"({self.index_type}){self._at(index, _UNARY)}"

    def _call(self, name: str, *args: str) -> str:
        if is_helper(name):
            self.use(name)
        return f"{name}({', '.join(args)})"

    def _at(self, value: Value, level: int) -> str:
        text, own = self._value(value)
        return f"({text})" if own < level else text

    def _value(self, value: Value) -> Text:
        text, level, needs_rounding = self._unrounded(value)
        if needs_rounding:
            return self._call(f"round_{value.dtype.name}", text), _PRIMARY
        return text, level

    def _unrounded(self, value: Value) -> tuple[str, int, bool]:
        """The expression, its precedence, and whether a small float still has to be rounded."""
        small = value.dtype.small_float
        match value:
            case Literal(number, dtype):
                text = literal(number, dtype)
                return text, _UNARY if text.startswith("-") else _PRIMARY, False
            case Read(_, _, dtype):
                return self.loaded(self.read(value), dtype), _PRIMARY, False
            case Scalar(name, dtype):
                return self.loaded(self.scalar(name), dtype), _PRIMARY, False
            case FromIndex(index, dtype):
                return (*self._from_index(index, dtype), small)
            case Unary(op, operand, dtype):
                return (*self._unary(op, operand, dtype), False)
            case Arith(op, left, right, dtype):
                if dtype.is_float:
                    return (*self._float_arith(op, left, right, dtype), small and op not in ("min", "max"))
                return (*self._int_arith(op, left, right, dtype), False)
            case Comparison(op, left, right, _):
                if (known := _decided(op, left, right)) is not None:
                    return str(int(known)), _PRIMARY, False
                level = _LEVEL[op]
                return f"{self._at(left, level + 1)} {op} {self._at(right, level + 1)}", level, False
            case Logical():
                text, level = self._logical(value)
                return text, level, False
            case Select(condition, then, other, _):
                # A branch may be promoted or not, so that both have the value but perhaps not the type: harmless.
                chosen = self._condition(condition, _OR)
                return f"{chosen} ? {self._at(then, _OR)} : {self._at(other, _TERNARY)}", _TERNARY, False
            case Call(function, args, dtype):
                return self._function(function, args, dtype)
            case Cast(operand, dtype, saturate):
                return self._cast(operand, dtype, saturate)
            case _:
                assert_never(value)

    def _condition(self, condition: Condition, level: int) -> str:
        if isinstance(condition, Bool):
            text = self.index.condition(condition)
            return f"({text})" if level > _TERNARY and (" " in text) else text
        return self._at(condition, level)

    def _logical(self, value: Logical) -> Text:
        if value.op == "not":
            return f"!({self._condition(value.parts[0], _TERNARY)})", _UNARY
        symbol, level = ("&&", _AND) if value.op == "and" else ("||", _OR)
        # Parts that are themselves conjunctions get parentheses in a disjunction: compilers warn without them.
        return f" {symbol} ".join(self._condition(p, _AND + 1) for p in value.parts), level

    def _from_index(self, index: Int, dtype: DType) -> Text:
        text = self.index.number(index)
        if dtype.small_float:
            return self._call("odd_float", self._call("odd_s64", text)), _PRIMARY
        if dtype.sub_byte:
            return self._call(f"wrap_{dtype.name}", f"(uint32_t)({text})"), _PRIMARY
        return f"({compute_type(dtype)})({text})", _UNARY

    def _unary(self, op: str, operand: Value, dtype: DType) -> Text:
        if dtype.is_float:
            return f"-{self._at(operand, _PRIMARY)}", _UNARY
        if op == "-":
            return self._call(f"neg_{dtype.name}", self.value(operand)), _PRIMARY
        if dtype.sub_byte:
            return self._call(f"wrap_{dtype.name}", f"~(uint32_t){self._at(operand, _UNARY)}"), _PRIMARY
        if _promoted(dtype):
            return self._call(f"inv_{dtype.name}", self.value(operand)), _PRIMARY
        return f"({compute_type(dtype)})~{self._at(operand, _UNARY)}", _UNARY

    def _float_arith(self, op: str, left: Value, right: Value, dtype: DType) -> Text:
        if op in ("min", "max"):
            wide = "f64" if dtype.name == "f64" else "f32"
            return self._call(f"{op}_{wide}", self.value(left), self.value(right)), _PRIMARY
        level = _LEVEL[op]
        return f"{self._at(left, level)} {op} {self._at(right, level + 1)}", level

    def _int_arith(self, op: str, left: Value, right: Value, dtype: DType) -> Text:
        if op == "^" and _promoted(dtype):
            return self._call(f"xor_{dtype.name}", self.value(left), self.value(right)), _PRIMARY
        if op in ("&", "|", "^"):
            # Both operands in parentheses unless primary or of the same operator: compilers warn on `a & b | c`.
            sides = [self._at(side, _UNARY) for side in (left, right)]
            return f"{sides[0]} {op} {sides[1]}", _LEVEL[op]
        if op in ("+", "-", "*") and dtype.kind == "uint" and dtype.bits >= 32:
            level = _LEVEL[op]
            return f"{self._at(left, level)} {op} {self._at(right, level + 1)}", level
        names = {"+": "add", "-": "sub", "*": "mul", "//": "div", "%": "mod", "<<": "shl", ">>": "shr"}
        return self._call(f"{names.get(op, op)}_{dtype.name}", self.value(left), self.value(right)), _PRIMARY

    def _function(self, function: str, args: tuple[Value, ...], dtype: DType) -> tuple[str, int, bool]:
        texts = [self.value(a) for a in args]
        if (own := self.formula(function)) is not None:
            return f"{own}({', '.join(texts)})", _PRIMARY, False
        small, wide = dtype.small_float, "f64" if dtype.name == "f64" else "f32"
        if function == "scalb":
            return self._call(f"scalb_{dtype.name}", *texts), _PRIMARY, False
        if function == "lookup":
            return chosen(self._at(args[0], 5), texts[1:]), _PRIMARY, False
        if function.startswith("bits_"):
            source = args[0].dtype
            return self._call(f"{function}_of_{source}", *texts), _PRIMARY, False
        if function == "abs" and dtype.kind == "uint":
            return f"({texts[0]})", _PRIMARY, False
        if not dtype.is_float:
            return self._call(f"{function}_{dtype.name}", *texts), _PRIMARY, False
        if function == "fma" and small:
            return self._call(f"fma_{dtype.name}", *texts), _PRIMARY, False
        if function in ("exp", "log", "tanh", "erf", "rsqrt", "sigmoid"):
            # In double and rounded once, as the language says: the same bits on nearly every input.
            text = self._call(f"{function}_f64" if function in ("rsqrt", "sigmoid") else function, *texts)
            if small:
                return self._call("odd_float", text), _PRIMARY, True
            return (text, _PRIMARY, False) if wide == "f64" else (f"(float){text}", _UNARY, False)
        name = {"abs": "fabs", "round": "rint"}.get(function, function)
        exact = function in ("abs", "round", "floor", "ceil")
        return f"{name}{'' if wide == 'f64' else 'f'}({', '.join(texts)})", _PRIMARY, small and not exact

    def _cast(self, operand: Value, dtype: DType, saturate: bool) -> tuple[str, int, bool]:
        source = operand.dtype
        if source == dtype:
            text, level = self._value(operand)
            return text, level, False
        if source.is_float and dtype.is_float:
            return self._float_to_float(operand, dtype)
        if source.is_float:
            name = f"{'satrint' if saturate else 'rint'}_{dtype.name}"
            return self._call(name, self.value(operand)), _PRIMARY, False
        if dtype.is_float:
            small = dtype.small_float
            if small and source.bits == 64:
                text = self._call("odd_float", self._call(f"odd_{source.name}", self.value(operand)))
                return text, _PRIMARY, True
            if small and source.bits == 32:
                return self._call("odd_float", self.value(operand)), _PRIMARY, True
            return f"({compute_type(dtype)}){self._at(operand, _UNARY)}", _UNARY, small
        if saturate and not (dtype.limits[0] <= source.limits[0] and source.limits[1] <= dtype.limits[1]):
            return self._call(f"sat_{dtype.name}_of_{source.name}", self.value(operand)), _PRIMARY, False
        if dtype.sub_byte:
            return self._call(f"wrap_{dtype.name}", f"(uint32_t){self._at(operand, _UNARY)}"), _PRIMARY, False
        return f"({compute_type(dtype)}){self._at(operand, _UNARY)}", _UNARY, False

    def _float_to_float(self, operand: Value, dtype: DType) -> tuple[str, int, bool]:
        small = dtype.small_float
        if small and operand.dtype.name == "f64":
            return self._call("odd_float", self.value(operand)), _PRIMARY, True
        if not small and operand.dtype.name != "f64" and dtype.name != "f64":
            text, level = self._value(operand)  # every small float is an f32 already
            return text, level, False
        if small:
            return self.value(operand), _TERNARY, True
        return f"({compute_type(dtype)}){self._at(operand, _UNARY)}", _UNARY, False


def chosen(place: str, numbers: list[str]) -> str:
    """The one of 2, 4, 8, … `numbers` that the lowest bits of `place`, an operand of `&`, choose: no table."""
    if len(numbers) == 1:
        return numbers[0]
    half = len(numbers) // 2
    return f"({place} & {half} ? {chosen(place, numbers[half:])} : {chosen(place, numbers[:half])})"


def all_bits_zero(value: Value) -> bool:
    """Whether it is the constant 0, and not -0.0."""
    return isinstance(value, Literal) and value.value == 0 and "-" not in str(value.value)


@workarounds.FLIPPED_APART
def _promoted(dtype: DType) -> bool:
    """Whether C widens the type to a signed int before it complements a value: printed code then has the complement in
    a function of its own."""
    return dtype.kind == "uint" and dtype.bits in (8, 16)


@workarounds.KNOWN_LIMITS
def _decided(op: str, left: Value, right: Value) -> bool | None:
    """The answer of a comparison with a limit of the integer type; None where it varies."""
    if isinstance(left, Literal) and not isinstance(right, Literal):
        mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
        return _decided(mirrored, right, left)
    if not left.dtype.is_integer or not isinstance(right, Literal):
        return None
    low, high = left.dtype.limits
    known = {("<", low): False, (">=", low): True, (">", high): False, ("<=", high): True}
    return known.get((op, int(right.value)))
