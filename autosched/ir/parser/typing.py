"""The typing rules: what a literal becomes, which operands meet, what a function takes. Nothing promotes silently."""

from __future__ import annotations

import ast
import math

from autosched.ir.dtypes import BOOL, DTYPES, DType
from autosched.ir.oracle.numerics import float_literal, wrap_int
from autosched.ir.parser.scope import Choice, Operand
from autosched.ir.parser.source import Source
from autosched.ir.value import Call, Cast, FromIndex, Literal, Select, Value
from autosched.logic import Bool, Const, Int, Where

INTEGER_ONLY = frozenset(["//", "%", "<<", ">>", "&", "|", "^"])
WORDS = frozenset(["s32", "u32", "f32", "s64", "u64", "f64"])
"""What `scalb` and `lookup` are defined on."""


def describe(operand: Operand) -> str:
    """What an operand is, for messages."""
    match operand:
        case Const(value):
            return f"the literal {value}"
        case Int():
            return f"the index expression {operand}"
        case Bool():
            return "a condition"
        case float():
            return f"the literal {operand}"
        case Choice():
            return "a choice of literals"
        case _:
            return "a condition" if operand.dtype == BOOL else f"a value of dtype {operand.dtype}"


def is_literal(operand: Operand) -> bool:
    """Whether the operand takes its dtype from the context."""
    if isinstance(operand, Where):
        return is_literal(operand.then) and is_literal(operand.other)
    return isinstance(operand, float | Const | Choice)


def is_condition(operand: Operand) -> bool:
    return isinstance(operand, Bool) or (not isinstance(operand, Int | float | Choice) and operand.dtype == BOOL)


def literal(source: Source, node: ast.AST, value: int | float, dtype: DType) -> Literal:
    """A literal of `dtype`; ProgramError where the type cannot hold it."""
    if dtype.is_integer:
        if isinstance(value, float):
            raise source.error(
                node, f"{value} is no literal of integer dtype {dtype}", f"write an integer, or cast: {dtype}(…)"
            )
        low, high = dtype.limits
        if not low <= value <= high:
            raise source.error(
                node, f"{value} does not fit {dtype}", f"{dtype} holds {low} to {high}; a cast wraps: {dtype}({value})"
            )
        return Literal(value, dtype)
    rounded = float_literal(value, dtype)
    if math.isnan(rounded) or (math.isinf(rounded) and not (isinstance(value, float) and math.isinf(value))):
        raise source.error(node, f"{value} does not fit {dtype}")
    return Literal(rounded, dtype)


def coerce(source: Source, node: ast.AST, operand: Operand, dtype: DType, what: str) -> Value:
    """The operand as a value of `dtype`, literals converted; `what` says who asks, for the message."""
    match operand:
        case Const(value):
            return literal(source, node, value, dtype)
        case float():
            return literal(source, node, operand, dtype)
        case Choice(test, then, other) | Where(test, then, other) if is_literal(operand):
            first, second = (coerce(source, node, side, dtype, what) for side in (then, other))
            return Select(test, first, second, dtype)
        case Int():
            raise source.error(
                node, f"{operand} is an index expression; used as a value it needs a cast", f"write {dtype}({operand})"
            )
        case Bool():
            raise source.error(node, f"{what} takes {dtype}, not a condition", f"write {dtype}(1) if {operand} else 0")
    assert not isinstance(operand, Choice)
    if operand.dtype == BOOL:
        raise source.error(node, f"{what} takes {dtype}, not a condition", f"write {dtype}(1) if … else 0")
    if operand.dtype != dtype:
        how = f"its bits: bits_{dtype}(u8(…))" if dtype.scale else f"cast it: {dtype}(…)"
        raise source.error(node, f"{what} takes {dtype}, and this is {operand.dtype}", how)
    return operand


def unify(source: Source, node: ast.AST, what: str, *operands: Operand) -> tuple[Value, ...]:
    """All operands as values of one dtype, which the typed ones fix."""
    typed: list[Value] = []
    for operand in operands:
        if is_condition(operand):
            raise source.error(node, f"{what} takes values, not conditions", "join conditions with and, or, not")
        if not isinstance(operand, Int | Bool | float | Choice):
            typed.append(operand)
    if not typed:
        stray = next((o for o in operands if not is_literal(o)), None)
        if stray is not None:
            raise source.error(node, f"{describe(stray)} used as a value needs a cast", f"write, say, f32({stray})")
        raise source.error(node, f"nothing gives {what} a dtype: every operand is a literal", "cast one, as f32(2)")
    dtype = typed[0].dtype
    for value in typed:
        computes(source, node, what, value.dtype)
        if value.dtype != dtype:
            raise source.error(
                node,
                f"{what} takes operands of one dtype, and these are {' and '.join(str(v.dtype) for v in typed)}",
                f"cast one of them: {dtype}(…) or {value.dtype}(…)",
            )
    return tuple(coerce(source, node, o, dtype, what) for o in operands)


def computes(source: Source, node: ast.AST, what: str, dtype: DType) -> None:
    """ProgramError for a scale, which is converted before anything is done with it."""
    if dtype.scale:
        raise source.error(node, f"{what} does not take {dtype}, which only scales", "convert it first: f32(…)")


def check_operator(source: Source, node: ast.AST, op: str, dtype: DType) -> None:
    """ProgramError where `op` is not defined on `dtype`."""
    if op in INTEGER_ONLY and not dtype.is_integer:
        hint = {"//": "write floor(a / b)", "%": "write a - floor(a / b) * b"}.get(op, "cast to an integer dtype first")
        raise source.error(node, f"{op!r} takes integers, and these are {dtype}", hint)
    if op == "/" and not dtype.is_float:
        raise source.error(node, f"'/' takes floats, and these are {dtype}", "write // for integers, or cast: f32(…)")


def check_function(source: Source, node: ast.AST, name: str, dtype: DType) -> None:
    """ProgramError where the function is not defined on `dtype`."""
    if name == "popcount" and not dtype.is_integer:
        raise source.error(node, f"popcount takes integers, and this is {dtype}")
    if name not in ("popcount", "abs") and not dtype.is_float:
        raise source.error(node, f"{name} takes floats, and this is {dtype}", "cast first: f32(…)")


def check_word(source: Source, node: ast.AST, name: str, dtype: DType, kind: str) -> None:
    """ProgramError unless the dtype is a word of 32 or 64 bits of a kind: `float` or `integer`."""
    if dtype.name not in WORDS or dtype.is_float != (kind == "float"):
        article = "a" if kind == "float" else "an"
        raise source.error(node, f"{name} takes {article} {kind} of 32 or 64 bits, and this is {dtype}")


def convert(source: Source, node: ast.AST, operand: Operand, dtype: DType, saturate: bool) -> Value:
    """A cast. A literal becomes a literal, an index expression a `FromIndex`, a condition 0 or 1."""
    if saturate and not dtype.is_integer:
        raise source.error(node, f"sat_ takes an integer dtype, and {dtype} is none", f"write {dtype}(…)")
    if dtype.scale and (isinstance(operand, Int | Bool | float | Choice) or operand.dtype != dtype):
        raise source.error(node, f"nothing is rounded to {dtype}", f"write its bits: bits_{dtype}(u8(…))")
    match operand:
        case Const(value) if dtype.is_integer:
            low, high = dtype.limits
            return Literal(min(max(value, low), high) if saturate else wrap_int(value, dtype), dtype)
        case Const(value):
            return Literal(float_literal(value, dtype), dtype)
        case float():
            if dtype.is_integer:
                raise source.error(
                    node, f"{operand} is no literal of integer dtype {dtype}", "write an integer, or s32(f32(…))"
                )
            return literal(source, node, operand, dtype)
        case Choice():
            return coerce(source, node, operand, dtype, str(dtype))
        case Int():
            if saturate:
                return Cast(FromIndex(operand, DTYPES["s64"]), dtype, True)
            return FromIndex(operand, dtype)
        case Bool():
            return Select(operand, _one(dtype), _zero(dtype), dtype)
    if operand.dtype == BOOL:
        return Select(operand, _one(dtype), _zero(dtype), dtype)
    return operand if operand.dtype == dtype else Cast(operand, dtype, saturate)


def reinterpret(source: Source, node: ast.AST, operand: Operand, dtype: DType) -> Value:
    """The operand's bits as `dtype`, of the same width; tf32 has no bits of its own, but those of an f32."""
    if isinstance(operand, Int | Bool | float | Choice) or operand.dtype == BOOL:
        raise source.error(node, f"bits_{dtype} takes a value with a dtype, not {describe(operand)}", "cast it first")
    if operand.dtype.padding or dtype.padding or operand.dtype.bits != dtype.bits:
        alike = " ".join(d.name for d in DTYPES.values() if d.bits == dtype.bits and not d.padding and d != dtype)
        hint = f"bits_{dtype} takes {alike}" if alike and not dtype.padding else f"no dtype has the bits of {dtype}"
        raise source.error(node, f"bits_{dtype} of a value of dtype {operand.dtype}", hint)
    if operand.dtype == dtype:
        return operand
    return Call(f"bits_{dtype}", (operand,), dtype)


def _one(dtype: DType) -> Literal:
    return Literal(1.0 if dtype.is_float else wrap_int(1, dtype), dtype)


def _zero(dtype: DType) -> Literal:
    return Literal(0.0 if dtype.is_float else 0, dtype)
