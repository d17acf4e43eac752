"""Values of all lanes at once as expressions on GNU vectors (`f32x16`), with the language's exact meaning.

What has no such form (a division of integers, a gather, a library function) raises `NotVector`; the assignment is then
a loop over its lanes. A truth value is a mask: a vector of signed integers, each 0 or -1. As in scalar code, floats of
16 bits and fewer are computed with as f32 and rounded after each operation, and integers below a byte lie in one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from autosched.codegen.c.vector_context import ValueContext
from autosched.codegen.c.vector_helpers import LaneHelpers, NotVector
from autosched.codegen.c_like.ctypes import literal, stored_as_bits
from autosched.ir.dtypes import BOOL, DTYPES, DType
from autosched.ir.value import (
    Arith,
    Call,
    Cast,
    Comparison,
    Condition,
    FromIndex,
    Literal,
    Logical,
    Read,
    Scalar,
    Select,
    Unary,
    Value,
    reads,
)
from autosched.ir.variables import value_vars
from autosched.logic import Bool, Int, free_vars

F32, U8, S8, U32, S32 = (DTYPES[name] for name in ("f32", "u8", "s8", "u32", "s32"))
_EACH = {"sqrt": "sqrt", "round": "rint", "floor": "floor", "ceil": "ceil", "abs": "fabs"}
_EXACT = ("abs", "round", "floor", "ceil")
"""Functions whose results no dtype rounds."""


_CLOSED = ("min", "max", "&", "|", "^", ">>")
"""Operators whose results are values of the dtype as they are."""


def held(dtype: DType) -> DType:
    """The dtype of the vectors that hold values of `dtype`. NotVector where there are none."""
    if dtype.small_float:
        return F32
    if dtype.sub_byte:
        return U8 if dtype.kind == "uint" else S8
    if dtype == BOOL:
        raise NotVector
    return dtype


@dataclass(frozen=True)
class VectorPrinter:
    """`lane` is None inside a formula, where every value has one element for each lane. `masks`: the widths of the
    formula's truth values by name. `named`: constants in vectors of their own. `wanted`: on one side of a choice, the
    mask of lanes that choose it, and the bits of its elements: others touch no memory outside of buffers."""

    source: ValueContext
    helpers: LaneHelpers
    width: int
    lane: str | None
    masks: dict[str, int]
    named: Mapping[Literal, str] = field(default_factory=dict)
    wanted: tuple[str, int] | None = None

    def value(self, v: Value, count: Int | None = None) -> str:
        """A vector of what holds the value's dtype. Lanes from `count` on touch no memory."""
        if isinstance(v, Literal) or self._same_in_all(v):
            return self._splat(v, count if self._astray(v) else None)
        match v:
            case Read(_, _, dtype):
                return self._of_storage(dtype, self._read(v, count))
            case Scalar(name, _) if self.lane is None:
                return name
            case FromIndex(index, dtype):
                return self._from_index(index, dtype)
            case Unary(op, operand, dtype):
                text = self._unary(op, self._at(operand, count), held(dtype))
                return text if dtype.is_float else self._within(dtype, text)
            case Arith(op, _, _, dtype):
                text = self._arith(op, v, held(dtype), count)
                return text if op in _CLOSED else self._within(dtype, text)
            case Select(condition, then, other, dtype):
                return self._select(condition, then, other, held(dtype), count)
            case Call(function, args, dtype):
                return self._call(function, args, dtype, count)
            case Cast(operand, dtype, saturate):
                return self._cast(operand, dtype, saturate, count)
        raise NotVector

    def stored(self, v: Value, count: Int | None = None) -> str:
        """The vector in the storage type of its dtype."""
        dtype = v.dtype
        if dtype.sub_byte and dtype.bits > 1 and not dtype.is_float:
            return f"{self._at(v, count)} & {_ones(dtype)}"
        if not stored_as_bits(dtype):
            return self.value(v, count)
        if isinstance(v, Read) and not self._same_in_all(v):
            return self._read(v, count)
        bare = v.operand if isinstance(v, Cast) and v.operand.dtype == F32 else v
        return self._narrowed(dtype, self.value(bare, count))

    # Plumbing

    def _same_in_all(self, v: Value) -> bool:
        return self.lane is not None and self.lane not in value_vars(v)

    def _splat(self, v: Value, count: Int | None = None) -> str:
        """A value that is the same in all lanes; with a count, it is read only where there are lanes below that."""
        if isinstance(v, Literal) and v in self.named:
            return self.named[v]
        text = literal(v.value, v.dtype) if isinstance(v, Literal) else self.source.uniform(v, count)
        if isinstance(v, Literal) and text in ("0", "0u", "0.0f", "0.0"):
            return f"({self.helpers.vector(held(v.dtype))}){{0}}"
        return self.helpers.splat(held(v.dtype), text)

    def _of_storage(self, dtype: DType, text: str) -> str:
        """Elements as they are stored as values."""
        if dtype.name == "bf16":
            return self.helpers.bf16_value(text)
        if stored_as_bits(dtype):
            return self._of_bits(dtype, text if dtype.bits == 16 else self.helpers.converted(U8, U32, text))
        return self._within(dtype, text) if dtype.sub_byte else text

    def _of_bits(self, dtype: DType, bits: str) -> str:
        return f"{self.source.widening(dtype)}({bits})"

    def _narrowed(self, dtype: DType, text: str) -> str:
        """f32 as a small float is stored, rounded."""
        if dtype.name == "bf16":
            return self.helpers.bf16_bits(text)
        bits = f"{self.source.narrowing(dtype)}({text})"
        return bits if dtype.bits == 16 else self.helpers.converted(U32, U8, bits)

    def _within(self, dtype: DType, text: str) -> str:
        """What an operation leaves in the vector that holds the dtype, as one of its values."""
        if stored_as_bits(dtype) and dtype.bits <= 8:
            return self._of_bits(dtype, f"{self.source.narrowing(dtype)}({text})")
        if stored_as_bits(dtype):
            return self._of_storage(dtype, self._narrowed(dtype, text))
        if dtype.small_float:
            raise NotVector
        if dtype.sub_byte:
            low = f"{_closed(text)} & {_ones(dtype)}"
            sign = 1 << (dtype.bits - 1)
            return low if dtype.kind == "uint" else f"(({low}) ^ {sign}) - {sign}"
        return text

    def _words(self, v: Value, count: Int | None) -> str:
        """The bits of a value of at most 16, as u32: what is cut from words stays words."""
        match v:
            case _ if self._same_in_all(v):
                pass
            case Cast(operand, dtype, False) if dtype.kind == "uint" and operand.dtype.is_integer:
                if operand.dtype.bits == 32:
                    return f"{_closed(self._unsigned(operand.dtype, self._at(operand, count)))} & {_ones(dtype)}u"
                if operand.dtype.kind == "uint" and dtype.bits < operand.dtype.bits <= 16:
                    return f"{_closed(self._words(operand, count))} & {_ones(dtype)}u"
            case Call(function, (operand,), _) if function.startswith("bits_") and operand.dtype.kind == "uint":
                return self._words(operand, count)
        return self.helpers.converted(DTYPES[f"u{8 * v.dtype.bytes}"], U32, self._bits(v, count))

    def _bits(self, v: Value, count: Int | None) -> str:
        """A value as it is stored, as unsigned integers."""
        text, unsigned = self.stored(v, count), DTYPES[f"u{8 * v.dtype.bytes}"]
        if v.dtype.kind == "uint" or stored_as_bits(v.dtype):
            return text
        return f"({self.helpers.vector(unsigned)}){_closed(text)}"

    def _from_index(self, index: Int, dtype: DType) -> str:
        """A formula over axes as a value; floats take one rounding."""
        own = held(dtype)
        if not own.is_float:
            return self._within(dtype, self.source.from_index(index, own))
        most = 1 << (24 if dtype.small_float else 31)
        if not self.source.within(index + most, 2 * most):
            raise NotVector
        return self._within(dtype, self.helpers.converted(S32, own, self.source.from_index(index, S32)))

    def _at(self, v: Value, count: Int | None) -> str:
        """An operand of an operator, in parentheses unless it is a name or a call."""
        return _closed(self.value(v, count))

    def _read(self, v: Read, count: Int | None) -> str:
        """The elements of all lanes as they are stored."""
        if self.wanted is None or not self._outside(v):
            return self.source.read(v, count)
        return self.source.read_where(v, self.helpers.resized(*self.wanted, 8 * v.dtype.bytes), count)

    def _touches(self, v: Value) -> bool:
        """Whether the value may read outside its buffer, in a lane or for all of them."""
        return self._astray(v) or self._lanes_touch(v)

    def _lanes_touch(self, v: Value) -> bool:
        """Whether a lane of its own may."""
        return any(not self._same_in_all(r) and self._outside(r) for r in reads(v))

    def _outside(self, r: Read) -> bool:
        return self.source.in_memory(r.tensor) and not self.source.there(r)

    def _astray(self, v: Value) -> bool:
        """Whether an element that all lanes share may lie outside: it is read even where no lane wants it."""
        return any(self._same_in_all(r) and self._outside(r) for r in reads(v))

    # Arithmetic

    def _unary(self, op: str, text: str, dtype: DType) -> str:
        if dtype.is_float or op == "~" or dtype.kind == "uint":
            return f"{op}{text}"
        return self._wrapped(dtype, f"-{self._unsigned(dtype, text)}")

    def _arith(self, op: str, v: Arith, dtype: DType, count: Int | None) -> str:
        left, right = self._at(v.left, count), self._at(v.right, count)
        if op in ("min", "max"):
            sign = "<" if op == "min" else ">"
            for a, b, number in ((left, right, v.left), (right, left, v.right)):
                if dtype.is_float and isinstance(number, Literal) and number.value == number.value:
                    return self.helpers.chosen(sign, dtype, a, b)  # where the other is NaN, the answer is the other
            return self.helpers.extreme(op, dtype, left, right)
        if op in ("&", "|", "^") or (dtype.is_float and op in ("+", "-", "*", "/")):
            return f"{left} {op} {right}"
        if op in ("+", "-", "*") and not dtype.is_float:
            return self._wrapped(dtype, f"{self._unsigned(dtype, left)} {op} {self._unsigned(dtype, right)}")
        if op in ("<<", ">>") and (by := self._amount(v.right, v.dtype)) is not None:
            if op == ">>" and (dtype.kind == "uint" or self._same_in_all(v.right)):
                return f"{left} >> {by}"
            if op == ">>":
                return f"{left} >> ({self.helpers.vector(dtype)}){by}"
            return self._wrapped(dtype, f"{self._unsigned(dtype, left)} << {by}")
        raise NotVector

    def _amount(self, v: Value, dtype: DType) -> str | None:
        """What lanes are shifted by, where that is known to be less than their width."""
        if isinstance(v, Literal):
            return str(int(v.value)) if 0 <= v.value < dtype.bits else None
        if not isinstance(v, FromIndex) or not self.source.within(v.index, dtype.bits):
            return None
        if self._same_in_all(v):
            return _closed(self.source.uniform(v, None))
        return _closed(self._unsigned(held(dtype), _closed(self.source.from_index(v.index, held(dtype)))))

    def _unsigned(self, dtype: DType, text: str) -> str:
        """Signed numbers as unsigned ones, which wrap."""
        return f"({self.helpers.vector(DTYPES[f'u{dtype.bits}'])}){text}" if dtype.kind == "int" else text

    def _wrapped(self, dtype: DType, text: str) -> str:
        return f"({self.helpers.vector(dtype)})({text})" if dtype.kind == "int" else text

    def _call(self, function: str, args: tuple[Value, ...], dtype: DType, count: Int | None) -> str:
        if function.startswith("bits_"):
            return self._reinterpreted(args[0], dtype, count)
        if function == "lookup":
            return self.helpers.lookup(dtype, args[0].dtype, self.value(args[0], count), args[1:])
        texts = [self.value(a, count) for a in args]
        if (own := self.source.formula(function)) is not None:
            return f"{own}({', '.join(texts)})"
        if function == "scalb" and not dtype.small_float:
            return self.helpers.scalb(dtype, *texts)
        if function == "fma" and not dtype.small_float:
            return self.helpers.each(function, dtype, texts)
        if dtype.is_float and function in _EACH:
            text = self.helpers.each(_EACH[function], held(dtype), texts)
            return text if function in _EXACT else self._within(dtype, text)
        raise NotVector

    def _reinterpreted(self, v: Value, dtype: DType, count: Int | None) -> str:
        """The bits of `v` as another dtype of the same width."""
        if stored_as_bits(dtype) and dtype.bits <= 8:
            return self._of_bits(dtype, self._words(v, count))
        bits = self._bits(v, count)
        if stored_as_bits(dtype):
            return self._of_storage(dtype, bits)
        return self._within(dtype, f"({self.helpers.vector(held(dtype))}){_closed(bits)}")

    # Choices

    def _select(self, condition: Condition, then: Value, other: Value, dtype: DType, count: Int | None) -> str:
        if isinstance(condition, Bool) and self.lane not in free_vars(condition):
            chosen = self.source.choice(condition)
            return f"({chosen} ? {self.value(then, count)} : {self.value(other, count)})"
        if isinstance(condition, Comparison) and condition.op in ("<", ">"):
            sides = condition.left, condition.right
            for (a, b), sign in ((sides, condition.op), (sides[::-1], "><"[condition.op == ">"])):
                if (then, other) == (a, b):
                    return self.helpers.chosen(sign, dtype, self.value(a, count), self.value(b, count))
        shared = not isinstance(condition, Bool) and self._same_in_all(condition)
        if not isinstance(condition, Bool) and shared and (self._touches(then) or self._touches(other)):
            chosen = self.source.uniform(condition, count if self._astray(condition) else None)
            return f"(({chosen}) ? {self.value(then, count)} : {self.value(other, count)})"
        below = None
        if isinstance(condition, Bool):
            mask, below = self.source.mask(condition, dtype.bits)
        else:
            mask = self._mask(condition, dtype.bits, count)
        if below is not None and count in (None, below):
            chosen = self.value(then, below)
        else:
            chosen = self._under(mask, dtype.bits, then, count)
        return self.helpers.select(dtype, mask, chosen, self._under(f"~{_closed(mask)}", dtype.bits, other, count))

    def _under(self, mask: str, bits: int, v: Value, count: Int | None) -> str:
        """One side of a choice, which lanes of the mask take."""
        outside = [r for r in reads(v) if self._outside(r)]
        if not outside:
            return self.value(v, count)
        if any(self._same_in_all(r) or not self.source.maskable(r) for r in outside):
            raise NotVector
        if self.wanted is not None:
            mask = f"{_closed(mask)} & {_closed(self.helpers.resized(*self.wanted, bits))}"
        return replace(self, wanted=(mask, bits)).value(v, count)

    def _mask(self, condition: Condition, bits: int, count: Int | None) -> str:
        """The condition as a mask of elements of `bits`."""
        if isinstance(condition, Bool):
            return self.source.mask(condition, bits)[0]
        match condition:
            case Comparison(op, left, right, _):
                dtype = held(left.dtype)
                text = f"{self._at(left, count)} {op} {self._at(right, count)}"
                return self.helpers.resized(text, dtype.bits, bits)
            case Logical("not", (part,), _):
                return f"~{_closed(self._mask(part, bits, count))}"
            case Logical(op, parts, _) if not any(self._touches(p) for p in parts[1:] if not isinstance(p, Bool)):
                sign = " & " if op == "and" else " | "
                return sign.join(_closed(self._mask(p, bits, count)) for p in parts)
            case Scalar(name, _) if name in self.masks:
                return self.helpers.resized(name, self.masks[name], bits)
        raise NotVector

    # Conversions

    def _cast(self, operand: Value, dtype: DType, saturate: bool, count: Int | None) -> str:
        source = operand.dtype
        if source == BOOL:
            one, zero = (self._splat(Literal(n, held(dtype))) for n in (1, 0))
            return self.helpers.select(held(dtype), self._mask(operand, held(dtype).bits, count), one, zero)
        if source == dtype:
            return self.value(operand, count)
        of, into = held(source), held(dtype)
        if source.kind == "uint" and source.bits <= 16 and into.bits == 32 and not self._same_in_all(operand):
            of, text = U32, self._words(operand, count)
            if dtype.is_float:
                of, text = S32, f"({self.helpers.vector(S32)})({text})"
        else:
            text = self.value(operand, count)
        if source.is_float and not dtype.is_float:
            if not saturate or (dtype.bits > 16 and dtype.name != "s32"):
                raise NotVector
            return self.helpers.rounded(of, dtype, into, text)
        if dtype.small_float and (of.bits == 64 or (source.bits == 32 and not source.is_float)):
            raise NotVector  # to f32 and again would be two roundings
        if saturate and not dtype.is_float:
            text = self.helpers.clamped(source, of, dtype, text)
        text = text if of == into else self.helpers.converted(of, into, text)
        return text if _has_all(dtype, source) else self._within(dtype, text)

    def mask_of(self, v: Value, bits: int) -> str:
        """A truth value of a formula as a mask."""
        return self._mask(v, bits, None)


def _has_all(dtype: DType, source: DType) -> bool:
    """Whether a float type has all values of another."""
    if not source.is_float or dtype.special != "ieee" or source.mantissa > dtype.mantissa:
        return False
    (least, greatest), (low, high) = source.exponents, dtype.exponents
    return low <= least and greatest <= high


def _ones(dtype: DType) -> int:
    return (1 << dtype.bits) - 1


def _closed(text: str) -> str:
    """`text` as an operand: in parentheses unless it is one name or one call."""
    depth = 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if depth == 0 and c == " ":
            return f"({text})"
    return f"({text})" if text.startswith(("-", "~", "(")) and not _one_group(text) else text


def _one_group(text: str) -> bool:
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return i == len(text) - 1
    return False
