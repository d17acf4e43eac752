"""The answer as JSON: schema `autosched/match/1` of design §6."""

from __future__ import annotations

import math
from typing import Any

from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.explanation.certificate import rewrite_json
from autosched.tensorize.explanation.chains import chains_json
from autosched.tensorize.explanation.numerics_text import numerics_json
from autosched.tensorize.match_types import Condition, Mapping, Match, Reason
from autosched.tensorize.reduction.first_step import first_step_json

SCHEMA = "autosched/match/1"


def to_json(match: Match) -> dict[str, Any]:
    """One object for one stage and intrinsic; every value is plain JSON (numbers that JSON lacks are strings)."""
    return {
        "schema": SCHEMA,
        "program": match.program.name,
        "stage": match.stage,
        "intrinsic": match.intrinsic.name,
        "verdict": match.verdict,
        "mapping_count": match.mapping_count,
        "mappings": [_mapping(m) for m in match.ranked],
        "reason": None if match.reason is None else _reason(match.reason),
        "seconds": round(match.seconds, 4),
        **({} if match.reason is None else {"explanation": _explanation(match.reason)}),
        **({"notes": list(match.notes)} if match.notes else {}),
    }


def _mapping(mapping: Mapping) -> dict[str, Any]:
    return {
        "axes": {x: list(fused) for x, fused in mapping.axes.items()},
        "outer": list(mapping.outer),
        "operands": {o: show_leaf(read) for o, read in mapping.operands.items()},
        "replicated": {o: list(axes) for o, axes in mapping.replicated.items()},
        "padding": {x: list(sizes) for x, sizes in mapping.padding.items()},
        "utilisation": round(mapping.utilisation, 6),
        "adapters": list(mapping.adapters),
        **({"rewrite": rewrite_json(mapping)} if mapping.adapters else {}),
        "conditions": [_condition(c) for c in mapping.conditions],
        "numerics": mapping.numerics,
        "assumptions": list(mapping.certificate.assumptions),
        "chains": chains_json(mapping),
        **({"first_step": started} if (started := first_step_json(mapping)) else {}),
        **numerics_json(mapping),
    }


def _condition(condition: Condition) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": condition.kind, "text": condition.text, "tight": condition.tight}
    return {**found, "alternatives": list(condition.alternatives)} if condition.alternatives else found


def _reason(reason: Reason) -> dict[str, Any]:
    found: dict[str, Any] = {"code": reason.code, "message": reason.message}
    if reason.counterexample is not None:
        found["counterexample"] = {k: _plain(v) for k, v in reason.counterexample.items()}
    if reason.fix is not None:
        found["fix"] = reason.fix
    return found


def _explanation(reason: Reason) -> dict[str, Any]:
    """What holds of the mapping that got furthest, and whether the fix was tried and fits."""
    return {
        "tried": {x: list(fused) for x, fused in reason.tried.items()},
        "proved": [{"part": o.part, "statement": o.statement} for o in reason.proved],
        "fix_verified": reason.verified,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
