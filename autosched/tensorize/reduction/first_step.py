"""The first step of a mapping: may the instruction's overwriting form (`overwrite:` in YAML) begin the sum?

    C[i, j] = 0          the overwriting form: Σ and 0 + Σ are one value, and the accumulator need not be zeroed
    C[i, j] = bias[j]    the accumulator is loaded with bias[j]; every step accumulates
    (nothing)            the accumulator is loaded with what C holds; the overwriting form would discard it
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from autosched.ir.nodes import is_zero
from autosched.ir.printer import print_value
from autosched.ir.value import Arith, Literal, Scalar
from autosched.logic import Const
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.body.equal import prove_equal
from autosched.tensorize.match_types import Mapping, Obligation

PROOF_MS = 2000
"""What the proof that adding to zero changes nothing may take."""


@dataclass(frozen=True)
class FirstStep:
    """`kind`: `overwrite` (the form may begin the sum), `load` (from an initial value) or `live` (from what the target
    holds). `form` is the instruction's word for overwriting; `proof` says why it computes the same."""

    kind: str
    form: str
    reason: str
    proof: Obligation | None = None

    def __str__(self) -> str:
        return f"the first step may overwrite ({self.form}): {self.reason}" if self.proof else self.reason


def first_step(mapping: Mapping) -> FirstStep | None:
    """How the accumulator starts; None for an instruction without an overwriting form, or a stage that is no sum."""
    form = mapping.intrinsic.overwrite
    assign = mapping.stage.assign
    target = show_leaf(mapping.stage.target)
    if form is None or assign.op not in ("+=", "-=", "="):
        return None
    init = mapping.stage.init
    if init is None:
        text = (
            f"{target} has no initial value in its loops: what it holds counts, and overwriting ({form}) would discard "
            f"it; every step accumulates"
        )
        return FirstStep("live", form, text)
    if not is_zero(init):
        text = f"{target} starts from {print_value(init)}: that is loaded, and every step accumulates"
        return FirstStep("load", form, text)
    empty = [
        a.name
        for a in mapping.stage.reduction
        if not (isinstance(a.lower, Const) and isinstance(a.upper, Const) and a.extent > 0)
    ]
    if empty:
        text = f"{target} starts from 0, but where {' or '.join(empty)} takes no value no step would write it"
        return FirstStep("load", form, text + "; it is zeroed, and every step accumulates")
    dtype = mapping.stage.target.dtype
    total = Scalar("x", dtype)
    if dtype.is_integer:
        found = prove_equal(Arith("+", Literal(0, dtype), total, dtype), total, PROOF_MS)
        if found.status != "proved":
            return FirstStep("load", form, f"not proved within the limit: 0 + x is x in {dtype}")
        proof = Obligation("reduction", f"0 + x is x for every {dtype} x", found.method)
    else:
        proof = Obligation("reduction", f"0 + x is x for every {dtype} x, but for the sign of a zero", "structure")
    return FirstStep("overwrite", form, f"{target} starts from 0, and {proof.statement}", proof)


def first_step_json(mapping: Mapping) -> dict[str, Any] | None:
    """`{kind, form, reason, proof}` as plain data, or None."""
    found = first_step(mapping)
    if found is None:
        return None
    proof = found.proof and {"statement": found.proof.statement, "method": found.proof.method}
    return {"kind": found.kind, "form": found.form, "reason": found.reason, "proof": proof}
