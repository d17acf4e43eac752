"""Certificates as plain data: what a JSON answer and the record of a tuned kernel say of why it is right."""

from __future__ import annotations

from typing import Any

from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.match_types import Mapping


def rewrite_json(mapping: Mapping) -> dict[str, Any]:
    """Of an adapted mapping: the program that it is a mapping of, and each identity with how it was proved."""
    proofs = [o for o in mapping.certificate.obligations if o.part == "adapter"]
    return {
        "program": str(mapping.program),
        "proofs": [{"statement": o.statement, "method": o.method} for o in proofs],
    }


def certificate_json(mapping: Mapping) -> dict[str, Any]:
    """The whole certificate of one mapping: what was done to the stage, proved and assumed."""
    known = mapping.certificate
    return {
        "stage": mapping.stage.name,
        "intrinsic": mapping.intrinsic.name,
        "adapters": list(mapping.adapters),
        "numerics": known.numerics,
        "error_bound": known.error_bound,
        "obligations": [{"part": o.part, "statement": o.statement, "method": o.method} for o in known.obligations],
        "assumptions": list(known.assumptions),
        **({"left_out": left_out(mapping)} if mapping.left_out else {}),
    }


def left_out(mapping: Mapping) -> list[str]:
    """The guards without whose steps the mapping computes, as text."""
    return [show_leaf(guard) for guard in mapping.left_out]


def certificate_lines(found: dict[str, Any]) -> list[str]:
    """What `certificate_json` answered, to read."""
    adapters = f" after {', '.join(found['adapters'])}" if found["adapters"] else ""
    bound = f", error at most {found['error_bound']}" if found["error_bound"] else ""
    return [
        f"{found['stage']} on {found['intrinsic']}{adapters}: {found['numerics']}{bound}",
        *(f"  {o['part']}: {o['statement']} ({o['method']})" for o in found["obligations"]),
        *(f"  left out: steps where {guard} fails" for guard in found.get("left_out", ())),
        *(f"  assumes: {a}" for a in found["assumptions"]),
    ]
