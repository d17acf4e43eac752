"""The body of one step of a program against that of an intrinsic, with accumulators of their own widths."""

from __future__ import annotations

from autosched.ir.dtypes import DType
from autosched.ir.value import Cast, Read, Value, map_value
from autosched.tensorize.body import Proof, canonical, prove_equal
from autosched.tensorize.counterexample import find_difference, show_leaf
from autosched.tensorize.match_types import Reason
from autosched.tensorize.reduction_update import Update


def compare_bodies(program: Update, intrinsic: Update, term: Value, timeout_ms: int) -> Proof | Reason:
    """A proof (or an unknown) that `term`, the intrinsic's with its roles filled in, is the program's; else the reason."""
    wanted, offered = program.target.dtype, intrinsic.target.dtype
    if wanted != offered:
        return _accumulators(program, term, wanted, offered, timeout_ms)
    # A term wider than the accumulator (a clamped addition's) counts modulo the accumulator.
    proof = prove_equal(program.term, term if term.dtype == wanted else Cast(term, wanted), timeout_ms)
    return proof if proof.status != "differs" else _differs(program, intrinsic, term, proof)


def _differs(program: Update, intrinsic: Update, term: Value, proof: Proof) -> Reason:
    if program.negated != intrinsic.negated:
        text = "the program subtracts where the intrinsic adds" if program.negated else "the program adds where the intrinsic subtracts"
        fix = "negate an operand, or accumulate the negated result (an adapter)"
        return Reason("COMBINE_DIFFERS", text, proof.counterexample, fix)
    text = f"one step of the program adds {show(program.term)}, the intrinsic {show(term)}"
    return Reason("BODY_DIFFERS", text, proof.counterexample, _nearest_change(program.term, term))


def _nearest_change(program: Value, term: Value) -> str | None:
    mine, theirs = len(set(_names(program))), len(set(_names(term)))
    if mine > theirs:
        return "move what the intrinsic does not take out of the reduction"
    if canonical(without_casts(program)) == canonical(without_casts(term)):
        return f"place the casts as in {show(term)}"
    return None


def _names(value: Value) -> list[str]:
    from autosched.tensorize.counterexample import leaves

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
        same = canonical(without_casts(program.term)) == canonical(without_casts(term))
        return reason if same else Reason("BODY_DIFFERS", text, find_difference(program.term, Cast(term, wanted)), fix)
    proof = prove_equal(program.term, Cast(term, wanted), timeout_ms)
    if proof.status == "unknown":
        return proof
    return reason if proof.status == "proved" else Reason("BODY_DIFFERS", text, proof.counterexample, fix)


def without_casts(value: Value) -> Value:
    """`value` as a function of reals: conversions dropped, one dtype throughout."""
    dtype = value.dtype

    def strip(v: Value) -> Value:
        if isinstance(v, Cast):
            return v.operand
        return v if isinstance(v, Read) or not hasattr(v, "left") else type(v)(v.op, v.left, v.right, dtype)  # type: ignore[union-attr, call-arg]

    return map_value(value, strip)


def show(value: Value) -> str:
    """A value as text."""
    from autosched.ir.printer import print_value

    return print_value(value)
