"""Value expressions: what a statement computes, every node with its exact dtype.

Addresses, bounds and conditions on axes are `logic` expressions; data-dependent ones are `Value`s. Locals of the source
are inlined, so a value is a closed tree over tensors, run-time scalars and axes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import copysign
from operator import is_
from typing import TypeAlias, TypeGuard

from autosched.ir.dtypes import BOOL, DType
from autosched.logic import Bool, Int, conjuncts
from autosched.logic.remember import Remembering, remembers_hash
from autosched.logic.walk import substitute_bool, substitute_int

UNARY_FUNCTIONS = frozenset(
    ["abs", "exp", "log", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", "round", "floor", "ceil", "popcount"]
)
"""Functions of one argument; `abs popcount` also take integers, the others floats only."""
ROUNDING = frozenset(["round", "floor", "ceil"])
"""Those whose results are whole numbers: where an argument passes one, they jump."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; `value` is a Python int, or a float (`inf` allowed) for float types. 0.0 and -0.0 are two."""

    value: int | float
    dtype: DType

    def __post_init__(self) -> None:
        assert not self.dtype.scale or self.value > 0, f"{self.dtype} has no {self.value}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        same = self.value == other.value and self.dtype == other.dtype
        return same and copysign(1.0, self.value) == copysign(1.0, other.value)

    def __hash__(self) -> int:
        return hash((self.value, self.dtype))


def blank(dtype: DType) -> Literal:
    """What stands where a tensor has no element (`DType.blank`)."""
    return Literal(dtype.blank, dtype)


@remembers_hash
@dataclass(frozen=True, slots=True)
class Read(Remembering):
    """An element of a tensor."""

    tensor: str
    index: tuple[Index, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Scalar:
    """A run-time scalar parameter."""

    name: str
    dtype: DType


@remembers_hash
@dataclass(frozen=True, slots=True)
class FromIndex(Remembering):
    """An integer expression over axes used as a value, as `f32(i)`; wraps or rounds into `dtype`."""

    index: Int
    dtype: DType


@remembers_hash
@dataclass(frozen=True, slots=True)
class Unary(Remembering):
    """`op` is `-` or `~`."""

    op: str
    operand: Value
    dtype: DType


@remembers_hash
@dataclass(frozen=True, slots=True)
class Arith(Remembering):
    """`op` is one of `+ - * / // % << >> & | ^ min max`; both operands have `dtype`."""

    op: str
    left: Value
    right: Value
    dtype: DType


@remembers_hash
@dataclass(frozen=True, slots=True)
class Comparison(Remembering):
    """`op` is one of `< <= == != > >=`; both operands have one dtype."""

    op: str
    left: Value
    right: Value
    dtype: DType = BOOL


@remembers_hash
@dataclass(frozen=True, slots=True)
class Logical(Remembering):
    """`op` is `and`, `or` or `not` over conditions."""

    op: str
    parts: tuple[Condition, ...]
    dtype: DType = BOOL


@remembers_hash
@dataclass(frozen=True, slots=True)
class Select(Remembering):
    """`then if condition else other`; only the chosen side is evaluated (an address outside may stand in the other)."""

    condition: Condition
    then: Value
    other: Value
    dtype: DType


@remembers_hash
@dataclass(frozen=True, slots=True)
class Call(Remembering):
    """A function of `UNARY_FUNCTIONS`, `fma` of three arguments (one rounding), `scalb`, `lookup`, or `bits_` and the
    name of `dtype`: the argument's bits read as that dtype, of the same width. `scalb(x, k)` is x times two to the
    power floor(k), rounded once; `lookup(i, a, b, …)` the literal that the lowest bits of an integer choose."""

    function: str
    args: tuple[Value, ...]
    dtype: DType


@remembers_hash
@dataclass(frozen=True, slots=True)
class Cast(Remembering):
    """Conversion: wraps or rounds to nearest even; with `saturate` clamps to an integer type's range (NaN gives 0)."""

    operand: Value
    dtype: DType
    saturate: bool = False


Value: TypeAlias = Literal | Read | Scalar | FromIndex | Unary | Arith | Comparison | Logical | Select | Call | Cast
Index: TypeAlias = Int | Value
"""One subscript: affine in axes, or data-dependent (a gather)."""
Condition: TypeAlias = Bool | Value
"""A guard: a formula over axes, or a data-dependent truth value."""


def is_value(x: object) -> TypeGuard[Value]:
    """Whether an index or condition is data-dependent (a `Value`, not a `logic` expression)."""
    return not isinstance(x, Int | Bool)


def is_plain(index: tuple[Index, ...]) -> TypeGuard[tuple[Int, ...]]:
    """Whether no subscript is data-dependent."""
    return all(isinstance(i, Int) for i in index)


def converted(value: Value, dtype: DType) -> Value:
    """The value in `dtype`."""
    return value if value.dtype == dtype else Cast(value, dtype)


def map_value(
    value: Value,
    on_value: Callable[[Value], Value] = lambda v: v,
    on_int: Callable[[Int], Int] = lambda e: e,
    on_bool: Callable[[Bool], Bool] = lambda e: e,
) -> Value:
    """Rebuild `value` bottom-up: `on_int`/`on_bool` on its logic leaves, then `on_value` on each rebuilt node. Nodes
    whose parts stay the same objects stay it too."""

    def index(x: Index) -> Index:
        return on_int(x) if isinstance(x, Int) else sub(x)

    def condition(x: Condition) -> Condition:
        return on_bool(x) if isinstance(x, Bool) else sub(x)

    def sub(node: Value) -> Value:
        match node:
            case Literal() | Scalar():
                pass
            case Read(tensor, old, dtype):
                new = tuple([index(i) for i in old])
                node = node if _same(new, old) else Read(tensor, new, dtype)
            case Arith(op, left, right, dtype):
                first, second = sub(left), sub(right)
                node = node if first is left and second is right else Arith(op, first, second, dtype)
            case Cast(operand, dtype, saturate):
                inner = sub(operand)
                node = node if inner is operand else Cast(inner, dtype, saturate)
            case FromIndex(old_index, dtype):
                new_index = on_int(old_index)
                node = node if new_index is old_index else FromIndex(new_index, dtype)
            case Unary(op, operand, dtype):
                inner = sub(operand)
                node = node if inner is operand else Unary(op, inner, dtype)
            case Comparison(op, left, right, dtype):
                first, second = sub(left), sub(right)
                node = node if first is left and second is right else Comparison(op, first, second, dtype)
            case Logical(op, parts, dtype):
                tests = tuple([condition(p) for p in parts])
                node = node if _same(tests, parts) else Logical(op, tests, dtype)
            case Select(c, then, other, dtype):
                chosen = condition(c), sub(then), sub(other)
                node = node if _same(chosen, (c, then, other)) else Select(*chosen, dtype)
            case Call(function, args, dtype):
                values = tuple([sub(a) for a in args])
                node = node if _same(values, args) else Call(function, values, dtype)
        return on_value(node)

    return sub(value)


def substitute(value: Value, to: Mapping[str, Int]) -> Value:
    """`value` with these variables of its subscripts and formulas replaced."""
    return map_value(value, on_int=lambda i: substitute_int(i, to), on_bool=lambda b: substitute_bool(b, to))


def substitute_index(index: Index, to: Mapping[str, Int]) -> Index:
    """The same of a subscript."""
    return substitute_int(index, to) if isinstance(index, Int) else substitute(index, to)


def substitute_condition(condition: Condition, to: Mapping[str, Int]) -> Condition:
    """The same of a guard."""
    return substitute_bool(condition, to) if isinstance(condition, Bool) else substitute(condition, to)


def value_where(value: Value, true: Collection[Bool]) -> Value:
    """The value where these conditions hold: without the choices that they decide."""

    def visit(node: Value) -> Value:
        match node:
            case Select(Bool() as condition, then, other, _):
                if all(part in true for part in conjuncts(condition)):
                    return then
                if all(part in true for part in conjuncts(~condition)):
                    return other
        return node

    return map_value(value, visit)


def _same(new: tuple[object, ...], old: tuple[object, ...]) -> bool:
    return all(map(is_, new, old))


def children(value: Value) -> tuple[Value, ...]:
    """The direct parts that are values: data-dependent subscripts and conditions are, others not."""
    match value:
        case Read(_, index, _):
            return tuple([i for i in index if is_value(i)])
        case Unary() | Cast():
            return (value.operand,)
        case Arith() | Comparison():
            return value.left, value.right
        case Logical(_, parts, _):
            return tuple([p for p in parts if is_value(p)])
        case Select(c, then, other, _):
            return (c, then, other) if is_value(c) else (then, other)
        case Call(_, args, _):
            return args
        case _:
            return ()


def with_children(node: Value, new: Sequence[Value]) -> Value:
    """The node with other operands, in the order of `children`."""
    match node:
        case Unary() | Cast():
            return replace(node, operand=new[0])
        case Arith() | Comparison():
            return replace(node, left=new[0], right=new[1])
        case Logical(_, parts, _):
            left = iter(new)
            return replace(node, parts=tuple(next(left) if is_value(p) else p for p in parts))
        case Select(condition, _, _, _):
            chosen = new[0] if is_value(condition) else condition
            return replace(node, condition=chosen, then=new[-2], other=new[-1])
        case Call():
            return replace(node, args=tuple(new))
        case _:
            return node


def walk(value: Value) -> Iterator[Value]:
    """All value nodes of the tree, parents first (data-dependent subscripts and conditions included)."""
    waiting: list[Value] = [value]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(children(node))


def added(value: Value) -> tuple[Value, ...]:
    """The parts of a sum or difference, signs left out; the value itself where it is none."""
    match value:
        case Arith("+" | "-", left, right):
            return added(left) + added(right)
        case Unary("-", operand) if len(parts := added(operand)) > 1:
            return parts
    return (value,)


def reads(value: Value) -> tuple[Read, ...]:
    """All tensor reads in `value`, in order."""
    return tuple(v for v in walk(value) if isinstance(v, Read))
