"""Proofs of what an adapter claims about one term: in z3's bit-vectors, for every input."""

from __future__ import annotations

import z3

from autosched.ir.value import Value
from autosched.tensorize.body import prove_equal
from autosched.tensorize.body_bits import Bits, NoReading
from autosched.tensorize.counterexample import show_leaf
from autosched.tensorize.smt import asked


class NotProved(Exception):
    """An identity that does not hold, or that the solver could not decide in time; the argument is the identity."""


def prove(before: Value, after: Value, timeout_ms: int) -> str:
    """That two integer values agree on all inputs, bit for bit; answers how it was shown. Raises NotProved.

    The sum-of-monomials form of z3's bit-vector rewriter decides ring identities at once, where bit-blasting products
    of 32-bit variables would not end; what it leaves is decided as bodies are:
    by exhaustion of 16 bits, or by the solver.
    """
    claim = f"{show_leaf(before)} = {show_leaf(after)}"
    reading = Bits()
    try:
        left, right = reading.value(before), reading.value(after)
    except NoReading as error:
        raise NotProved(claim) from error
    if left.size() != right.size():
        raise NotProved(claim)
    rest = z3.simplify(left - right, som=True, push_ite_bv=True)
    if z3.is_bv_value(rest) and rest.as_long() == 0:
        solver = z3.Solver()
        solver.add(left != right)
        asked("adapter", claim, solver, "unsat")
        return "z3, ring normal form"
    proof = prove_equal(before, after, timeout_ms)
    if proof.status != "proved":
        raise NotProved(claim)
    return proof.method
