"""Proofs of what an adapter claims about one term: in z3's bit-vectors, for every input."""

from __future__ import annotations

from typing import Any

import numpy as np

from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.oracle import numerics
from autosched.ir.value import Read, Value, converted, walk
from autosched.logic.questions import asked
from autosched.logic.solver import proving, z3
from autosched.tensorize.adapters.proposal import NotProved
from autosched.tensorize.body.arrays import evaluate
from autosched.tensorize.body.bits import Bits, NoReading
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.body.equal import canonical, holds, prove_equal

_REALS = DTYPES["f64"]
"""Holds every value of the types of up to 32 bits."""


@proving
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
    if _vanishes(left - right) or _vanishes(_opened(left - right)):
        solver = z3.Solver()
        solver.add(left != right)
        asked("adapter", claim, solver, "unsat")
        return "z3, ring normal form"
    proof = prove_equal(before, after, timeout_ms)
    if proof.status != "proved":
        raise NotProved(claim)
    return proof.method


def _vanishes(term: Any) -> bool:
    rest = z3.simplify(term, som=True, push_ite_bv=True)
    return z3.is_bv_value(rest) and bool(rest.as_long() == 0)


def _opened(term: Any) -> Any:
    """The term with a variable for each element that it extends: what is 0 for all numbers is 0 for these. The rewriter
    would join an extended byte and an added 256 to one bit pattern, and no longer see a sum."""
    found: dict[Any, Any] = {}
    seen, waiting = set[int](), [term]
    while waiting:
        node = waiting.pop()
        if node.get_id() in seen:
            continue
        seen.add(node.get_id())
        if z3.is_app(node) and node.decl().kind() in (z3.Z3_OP_ZERO_EXT, z3.Z3_OP_SIGN_EXT):
            found[node] = z3.FreshConst(node.sort())
        else:
            waiting += node.children()
    return z3.substitute(term, *found.items())


def prove_conversion(staged: Value, claim: Value) -> str:
    """That two functions of elements are one number, signed zeros told apart, for every value of these; how it was
    shown is the answer. They may differ in type. Raises NotProved.

    Elements of up to 16 bits together are enumerated, bit pattern by bit pattern. Wider ones are left to containment of
    types: `staged` is `claim` itself, converted to a type that holds its own.
    """
    found = tuple(dict.fromkeys(v for side in (staged, claim) for v in walk(side) if isinstance(v, Read)))
    if sum(r.dtype.bits for r in found) <= 16:
        every = dict(zip(found, np.meshgrid(*(every_value(r.dtype) for r in found), indexing="ij"), strict=True))
        a, b = (numerics.cast(evaluate(v, every), v.dtype, _REALS) for v in (staged, claim))
        if np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a) & (a == 0), np.signbit(b) & (b == 0)):
            return "exhaustion"
    elif holds(claim.dtype, staged.dtype) and canonical(staged) == canonical(converted(claim, staged.dtype)):
        return "structure"
    raise NotProved(f"{show_leaf(staged)} = {show_leaf(claim)}")


def every_value(dtype: DType) -> Any:
    """All values of a type of up to 16 bits, in its container."""
    assert dtype.bits <= 16
    patterns = np.arange(1 << dtype.bits, dtype=np.uint32)
    if dtype.is_integer:
        return numerics.wrap(patterns + np.int64(dtype.limits[0]), dtype)
    return numerics.load(patterns.astype(f"u{dtype.bytes}").view(dtype.numpy), dtype)
