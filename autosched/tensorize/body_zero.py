"""Zero padding: does a term whose operands are zero add nothing?"""

from __future__ import annotations

from autosched.ir.value import Arith, Call, Cast, Literal, Read, Unary, Value, map_value
from autosched.tensorize.body import SIGN_OF_ZERO, Proof, prove_equal
from autosched.tensorize.counterexample import leaves, show_leaf
from autosched.tensorize.reduction_update import Update


def zero_adds_nothing(update: Update, reads: frozenset[Read], timeout_ms: int) -> Proof | tuple[str, ...]:
    """The assumptions under which `update`'s term with `reads` zero is neutral, or the proof that it is not."""
    if update.combine is None:
        return ()  # nothing is accumulated, and padded elements are not stored
    term = map_value(update.term, lambda v: Literal(0, v.dtype) if v in reads else v)
    if update.combine != "+":
        return Proof("differs", "structure")
    finite: set[str] = set()
    if _is_zero(term, finite):
        if update.term.dtype.is_float:
            return (
                *(f"{name} is finite where it meets a zero" for name in sorted(finite)),
                SIGN_OF_ZERO,
            )
        return ()
    proof = prove_equal(term, Literal(0, term.dtype), timeout_ms)
    return () if proof.status == "proved" else proof


def is_zero_by_structure(value: Value) -> bool:
    """Whether `value` is zero whatever its (finite) inputs are."""
    return _is_zero(value, set())


def _is_zero(value: Value, finite: set[str]) -> bool:
    """Whether `value` is zero by structure; what must be finite for that goes into `finite`."""
    match value:
        case Literal(number, _):
            return number == 0
        case Cast(operand, _, _) | Unary("-", operand, _) | Call("abs", (operand,), _):
            return _is_zero(operand, finite)
        case Arith("+" | "-", left, right, _):
            return _is_zero(left, finite) and _is_zero(right, finite)
        case Arith("*", left, right, _):
            for one, other in ((left, right), (right, left)):
                if _is_zero(one, finite):
                    if value.dtype.is_float and not _is_zero(other, set()):
                        finite |= {show_leaf(leaf) for leaf in leaves(other)}
                    return True
    return False
