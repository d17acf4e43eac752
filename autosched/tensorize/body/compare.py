"""The body of one step of a program against that of an intrinsic, with accumulators of their own widths."""

from __future__ import annotations

from collections import Counter

from autosched.ir.dtypes import DType
from autosched.ir.printer import print_value
from autosched.ir.value import Arith, Cast, Unary, Value, added, converted, map_value
from autosched.tensorize.body.counterexample import find_difference, leaves, show_leaf
from autosched.tensorize.body.equal import Proof, canonical, holds, prove_equal
from autosched.tensorize.body.functions import same_function
from autosched.tensorize.body.intervals import loses
from autosched.tensorize.match_types import Reason
from autosched.tensorize.reduction.update import Update


def compare_bodies(program: Update, intrinsic: Update, timeout_ms: int, bounded: bool = False) -> Proof | Reason:
    """A proof (or an unknown) that the term of `intrinsic`, its roles filled in, is the program's; else why not.
    `bounded`: the intrinsic promises a bound on its error and no bits, so terms need to be one function of reals."""
    term = intrinsic.term
    wanted, offered = program.target.dtype, intrinsic.target.dtype
    if wanted != offered and intrinsic.combine is None:
        text = f"{show_leaf(program.target)} is {wanted}, the intrinsic writes {offered}"
        return Reason("DTYPE", text, fix=f"declare {program.target.tensor} as {offered}")
    if wanted != offered:
        return _accumulators(program, term, wanted, offered, timeout_ms)
    mine = program.term
    if program.saturate is not None and term.dtype != mine.dtype:
        # What a clamped addition adds counts as a whole number, not modulo the accumulator.
        wide = max(mine.dtype, term.dtype, key=lambda d: d.bits)
        if not (holds(mine.dtype, wide) and holds(term.dtype, wide)):
            return Proof("unknown", "structure")
        mine, term = converted(mine, wide), converted(term, wide)
    if bounded and same_function(mine, term):
        return Proof("proved", "structure")
    if intrinsic.combine == "+" and mine.dtype == term.dtype and same_parts(mine, term):
        return Proof("proved", "structure")
    # A term wider than the accumulator (a clamped addition's) counts modulo the accumulator.
    proof = prove_equal(mine, converted(term, mine.dtype), timeout_ms)
    return proof if proof.status != "differs" else _differs(program, intrinsic, proof)


def same_parts(a: Value, b: Value) -> bool:
    """Whether two float terms are sums of the same parts, in another order: a matter of numerics where they are added
    up."""
    return a.dtype.is_float and len(added(a)) > 1 and _signed_parts(a) == _signed_parts(b)


def _signed_parts(value: Value, minus: bool = False) -> Counter[tuple[bool, Value]]:
    match value:
        case Arith("+" | "-" as op, left, right):
            return _signed_parts(left, minus) + _signed_parts(right, minus != (op == "-"))
        case Unary("-", operand):
            return _signed_parts(operand, not minus)
    found = canonical(value)
    if isinstance(found, Unary) and found.op == "-":
        found, minus = found.operand, not minus
    return Counter([(minus, found)])


def _differs(program: Update, intrinsic: Update, proof: Proof) -> Reason:
    term = intrinsic.term
    if program.negated != intrinsic.negated:
        text = (
            "the program subtracts where the intrinsic adds"
            if program.negated
            else "the program adds where the intrinsic subtracts"
        )
        fix = "negate an operand, or accumulate the negated result (an adapter)"
        return Reason("COMBINE_DIFFERS", text, proof.counterexample, fix)
    text = f"one step of the program adds {print_value(program.term)}, the intrinsic {print_value(term)}"
    if intrinsic.combine is None:
        text = f"the program writes {print_value(program.term)}, the intrinsic {print_value(term)}"
        return Reason("BODY_DIFFERS", text, proof.counterexample)
    return Reason("BODY_DIFFERS", text, proof.counterexample, _nearest_change(program.term, term))


def _nearest_change(program: Value, term: Value) -> str | None:
    mine, theirs = len(set(_names(program))), len(set(_names(term)))
    if mine > theirs:
        return "move what the intrinsic does not take out of the reduction"
    if same_over_reals(program, term) and loses(term) <= loses(program):
        return f"place the casts as in {print_value(term)}"
    return None


def _names(value: Value) -> list[str]:
    return [show_leaf(leaf) for leaf in leaves(value)]


def _accumulators(program: Update, term: Value, wanted: DType, offered: DType, timeout_ms: int) -> Proof | Reason:
    """Accumulators of two types: too narrow is a matter of numerics, anything else of types."""
    target = show_leaf(program.target)
    narrower = wanted.kind == offered.kind and offered.bits < wanted.bits
    if not narrower:
        fix = f"declare {program.target.tensor} as {offered}"
        if offered.bits > wanted.bits:
            fix += f" and convert it to {wanted} afterwards"
        return Reason("DTYPE", f"{target} is {wanted}, the intrinsic accumulates in {offered}", fix=fix)
    text = f"the intrinsic accumulates in {offered}, the program in {wanted}"
    fix = f"declare {program.target.tensor} as {offered}, or add the {offered} sums of few steps up in {wanted}"
    reason = Reason("NUMERICS", text, fix=fix)
    if wanted.is_float:
        return (
            reason
            if same_over_reals(program.term, term)
            else Reason("BODY_DIFFERS", text, find_difference(program.term, Cast(term, wanted)), fix)
        )
    proof = prove_equal(program.term, Cast(term, wanted), timeout_ms)
    if proof.status == "unknown":
        return proof
    return reason if proof.status == "proved" else Reason("BODY_DIFFERS", text, proof.counterexample, fix)


def without_casts(value: Value, dtype: DType) -> Value:
    """`value` as a function of reals: conversions dropped, `dtype` throughout."""

    def strip(v: Value) -> Value:
        match v:
            case Cast(operand, _, _):
                return operand
            case Arith(op, left, right, _):
                return Arith(op, left, right, dtype)
            case Unary(op, operand, _):
                return Unary(op, operand, dtype)
        return v

    return map_value(value, strip)


def same_over_reals(a: Value, b: Value) -> bool:
    """Whether two values are one expression once every conversion is left out."""
    return canonical(without_casts(a, a.dtype)) == canonical(without_casts(b, a.dtype))
