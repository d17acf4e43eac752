"""Values of all lanes at once as expressions on GNU vectors (`f32x16`), with the language's exact meaning.

What has no such form (a division of integers, a gather, a library function) raises `NotVector`; the assignment is then
a loop over its lanes. A truth value is a mask: a vector of signed integers, each 0 or -1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from autosched.codegen.c.vector_helpers import LaneHelpers, NotVector
from autosched.codegen.c_like.ctypes import literal, stored_as_bits
from autosched.ir.dtypes import BOOL, DTYPES, DType
from autosched.ir.value import (
    Arith,
    Call,
    Cast,
    Comparison,
    Condition,
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

NATIVE = frozenset(["f32", "f64", *(f"{s}{b}" for s in "su" for b in (8, 16, 32, 64))])
"""Dtypes that vectors hold and compute in as they are."""
F32 = DTYPES["f32"]
_EACH = {"sqrt": "sqrt", "round": "rint", "floor": "floor", "ceil": "ceil", "abs": "fabs"}


class ValueContext(Protocol):
    """How the surroundings of a value print: memory, registers, conditions and formulas."""

    def read(self, read: Read, count: Int | None) -> str:
        """The elements of all lanes, or of those below `count`; NotVector for other reads."""

    def in_memory(self, name: str) -> bool:
        """Whether a buffer is no register."""

    def there(self, read: Read) -> bool:
        """Whether an element that all lanes share is known to lie inside its buffer."""

    def uniform(self, value: Value, count: Int | None) -> str:
        """A value that is the same in all lanes; 0 where `count`, if there is one, is not positive."""

    def mask(self, condition: Bool, bits: int) -> tuple[str, Int | None]:
        """A condition on the lane as a mask of that width; the count where it says `lane < count`."""

    def choice(self, condition: Bool) -> str:
        """A condition without the lane, as C before `?`."""

    def formula(self, function: str) -> str | None:
        """The vector function of a formula; None for a function of the language."""


@dataclass(frozen=True)
class VectorPrinter:
    """`lane` is None inside a formula, where every value has one element for each lane. `masks`: the widths of the
    formula's truth values by name. `named`: constants in vectors of their own."""

    source: ValueContext
    helpers: LaneHelpers
    width: int
    lane: str | None
    masks: dict[str, int]
    named: Mapping[Literal, str] = field(default_factory=dict)

    def value(self, v: Value, count: Int | None = None) -> str:
        """A vector of the value's dtype. Lanes from `count` on touch no memory."""
        if isinstance(v, Literal) or self._same_in_all(v):
            return self._splat(v, count if self._astray(v) else None)
        match v:
            case Read(_, _, dtype):
                self._held(dtype)
                return self.source.read(v, count)
            case Scalar(name, _) if self.lane is None:
                return name
            case Unary(op, operand, dtype):
                return self._unary(op, self._at(operand, count), self._held(dtype))
            case Arith(op, _, _, dtype):
                return self._arith(op, v, self._held(dtype), count)
            case Select(condition, then, other, dtype):
                return self._select(condition, then, other, self._held(dtype), count)
            case Call(function, args, dtype):
                return self._call(function, args, dtype, count)
            case Cast(operand, dtype, saturate):
                return self._cast(operand, dtype, saturate, count)
        raise NotVector

    def stored(self, v: Value, count: Int | None = None) -> str:
        """The vector in the storage type of its dtype."""
        if v.dtype.name != "bf16":
            return self.value(v, count)
        if isinstance(v, Read) and not self._same_in_all(v):
            return self.source.read(v, count)
        if isinstance(v, Cast) and v.operand.dtype == F32:
            return self.helpers.bf16_bits(self.value(v.operand, count))
        raise NotVector

    # Plumbing

    def _same_in_all(self, v: Value) -> bool:
        return self.lane is not None and self.lane not in value_vars(v)

    def _splat(self, v: Value, count: Int | None = None) -> str:
        """A value that is the same in all lanes; with a count, it is read only where there are lanes below that."""
        if isinstance(v, Literal) and v in self.named:
            return self.named[v]
        text = literal(v.value, v.dtype) if isinstance(v, Literal) else self.source.uniform(v, count)
        if isinstance(v, Literal) and text in ("0", "0u", "0.0f", "0.0"):
            return f"({self.helpers.vector(self._held(v.dtype))}){{0}}"
        return self.helpers.splat(self._held(v.dtype), text)

    def _held(self, dtype: DType) -> DType:
        if dtype.name not in NATIVE:
            raise NotVector
        return dtype

    def _at(self, v: Value, count: Int | None) -> str:
        """An operand of an operator, in parentheses unless it is a name or a call."""
        return _closed(self.value(v, count))

    def _touches(self, v: Value) -> bool:
        """Whether the value may read outside its buffer, in a lane or for all of them."""
        return self._astray(v) or self._lanes_touch(v)

    def _lanes_touch(self, v: Value) -> bool:
        """Whether a lane of its own may."""
        return not self._same_in_all(v) and any(self.source.in_memory(r.tensor) for r in reads(v))

    def _astray(self, v: Value) -> bool:
        """Whether an element that all lanes share may lie outside: it is read even where no lane wants it."""
        shared = [r for r in reads(v) if self._same_in_all(r)]
        return any(self.source.in_memory(r.tensor) and not self.source.there(r) for r in shared)

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
        by = v.right.value if isinstance(v.right, Literal) else -1
        if op in ("<<", ">>") and 0 <= by < dtype.bits:
            if op == ">>":
                return f"{left} >> {int(by)}"
            return self._wrapped(dtype, f"{self._unsigned(dtype, left)} << {int(by)}")
        raise NotVector

    def _unsigned(self, dtype: DType, text: str) -> str:
        """Signed numbers as unsigned ones, which wrap."""
        return f"({self.helpers.vector(DTYPES[f'u{dtype.bits}'])}){text}" if dtype.kind == "int" else text

    def _wrapped(self, dtype: DType, text: str) -> str:
        return f"({self.helpers.vector(dtype)})({text})" if dtype.kind == "int" else text

    def _call(self, function: str, args: tuple[Value, ...], dtype: DType, count: Int | None) -> str:
        if function == "lookup":
            return self.helpers.lookup(dtype, args[0].dtype, self.value(args[0], count), args[1:])
        texts = [self.value(a, count) for a in args]
        if (own := self.source.formula(function)) is not None:
            return f"{own}({', '.join(texts)})"
        if function.startswith("bits_"):
            self._held(args[0].dtype)
            return f"({self.helpers.vector(self._held(dtype))}){_closed(texts[0])}"
        if function == "scalb":
            return self.helpers.scalb(self._held(dtype), *texts)
        if dtype.is_float and (function == "fma" or function in _EACH):
            return self.helpers.each(_EACH.get(function, function), self._held(dtype), texts)
        raise NotVector

    # Choices

    def _select(self, condition: Condition, then: Value, other: Value, dtype: DType, count: Int | None) -> str:
        if isinstance(condition, Bool) and self.lane not in free_vars(condition):
            chosen = self.source.choice(condition)
            return f"({chosen} ? {self.value(then, count)} : {self.value(other, count)})"
        if isinstance(condition, Comparison) and condition.op in ("<", ">") and not self._lanes_touch(condition):
            sides = condition.left, condition.right
            for (a, b), sign in ((sides, condition.op), (sides[::-1], "><"[condition.op == ">"])):
                if (then, other) == (a, b):
                    return self.helpers.chosen(sign, dtype, self.value(a, count), self.value(b, count))
        below = None
        if isinstance(condition, Bool):
            mask, below = self.source.mask(condition, dtype.bits)
        else:
            mask = self._mask(condition, dtype.bits, count)
        wanted = below is not None and count in (None, below)
        if self._touches(other) or (self._touches(then) and not wanted):
            raise NotVector
        return self.helpers.select(dtype, mask, self.value(then, below or count), self.value(other, count))

    def _mask(self, condition: Condition, bits: int, count: Int | None) -> str:
        """The condition as a mask of elements of `bits`."""
        if isinstance(condition, Bool):
            return self.source.mask(condition, bits)[0]
        match condition:
            case Comparison(op, left, right, _):
                dtype = self._held(left.dtype)
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
            one, zero = (self._splat(Literal(n, self._held(dtype))) for n in (1, 0))
            return self.helpers.select(dtype, self._mask(operand, dtype.bits, count), one, zero)
        if source.name == "bf16" and dtype == F32 and isinstance(operand, Read):
            return self.helpers.bf16_value(self.source.read(operand, count))
        if stored_as_bits(source) or source.sub_byte:
            raise NotVector
        text = self.value(operand, count)
        if source == self._held(dtype):
            return text
        if source.is_float and not dtype.is_float:
            if not saturate or (dtype.bits > 16 and dtype.name != "s32"):
                raise NotVector
            return self.helpers.rounded(source, dtype, text)
        if saturate and not dtype.is_float:
            text = self.helpers.clamped(source, dtype, text)
        return self.helpers.converted(source, dtype, text)

    def mask_of(self, v: Value, bits: int) -> str:
        """A truth value of a formula as a mask."""
        return self._mask(v, bits, None)


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
