"""Proof 2, the body: do two scalar expressions compute the same function of their inputs, bit for bit?

`canonical` decides most cases without a solver: it applies rules that hold for every input. What is left of integers is
decided by exhaustion (two 8-bit inputs) or in bit-vectors; what is left of floats is refuted by running, equal but for
the sign of a zero, or honestly unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from autosched.ir.value import Arith, Value, walk
from autosched.tensorize.body.bits import check_equal
from autosched.tensorize.body.canonical import canonical as canonical
from autosched.tensorize.body.canonical import tells_zeros_apart
from autosched.tensorize.body.counterexample import domain_bits, find_difference, find_difference_exhaustively
from autosched.tensorize.body.exact import holds as holds
from autosched.tensorize.body.exact import product_fits

SIGN_OF_ZERO = "the sign of a zero may differ"


@dataclass(frozen=True)
class Proof:
    """`status` is `proved`, `differs` (with a counterexample where one was found) or `unknown`. `assumption`: what the
    proof leaves open, as the sign of a zero."""

    status: str
    method: str
    counterexample: dict[str, Any] | None = None
    assumption: str | None = None


def prove_equal(program: Value, intrinsic: Value, timeout_ms: int) -> Proof:
    """Whether two values of one dtype are the same function of the reads and scalars that they share."""
    if canonical(program) == canonical(intrinsic):
        return Proof("proved", "structure")
    integers = all(v.dtype.is_integer or v.dtype.kind == "bool" for side in (program, intrinsic) for v in walk(side))
    if integers and domain_bits(program, intrinsic) <= 16:
        found = find_difference_exhaustively(program, intrinsic)
        return Proof("differs" if found else "proved", "exhaustion", found)
    found = find_difference(program, intrinsic)
    if found is not None:
        return Proof("differs", "running", found)
    if not integers:
        loosely = not (tells_zeros_apart(program) or tells_zeros_apart(intrinsic))
        if loosely and canonical(program, True) == canonical(intrinsic, True):
            return Proof("proved", "structure", assumption=SIGN_OF_ZERO)
        return Proof("unknown", "structure")
    status, found = check_equal(program, intrinsic, timeout_ms)
    return Proof(status, "z3", found)


def exact_product(term: Value) -> bool:
    """Whether `term` is a product of widened floats that no input can make inexact, overflow or underflow.

    Then a fused multiply-add rounds exactly as a multiplication followed by an addition does.
    """
    match canonical(term):
        case Arith("*", a, b, dtype):
            return product_fits(a, b, dtype)
    return False
