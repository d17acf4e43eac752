"""`RewriteVerdict`: a rewrite that applies, with its proof; or one that was tried, with the reason why it does not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from autosched.ir.program import Program
from autosched.ir.rewrites.proof import Lemma
from autosched.ir.rewrites.refusal import NotRewritten

SCHEMA = "autosched/rewrite/1"


@dataclass(frozen=True)
class RewriteVerdict:
    """`numerics` is the weakest level that has to be accepted; `rescale` are the factors of carried states, by stage;
    `because` are arguments about the program's structure; `error` bounds the distance to the program
    in exact arithmetic; `finite` are tensors whose elements that a mask leaves out are taken to be finite; `relies`
    says what callers must see to; `after` is the program that results."""

    name: str
    axis: str
    stages: tuple[str, ...]
    numerics: str | None = None
    rescale: dict[str, str] = field(default_factory=dict)
    deferred: dict[str, str] = field(default_factory=dict)
    merge: bool = False
    bounded: bool | None = None
    conditions: tuple[str, ...] = ()
    obligations: tuple[Lemma, ...] = ()
    because: tuple[str, ...] = ()
    error: str | None = None
    finite: tuple[str, ...] = ()
    relies: tuple[str, ...] = ()
    reason: NotRewritten | None = None
    after: Program | None = None

    @property
    def verdict(self) -> str:
        """`proved`, `no` or `unknown`."""
        if self.reason is None:
            return "proved"
        return "unknown" if self.reason.unknown else "no"

    def as_json(self) -> dict[str, Any]:
        """One of `rewrites` in the schema `autosched/rewrite/1`."""
        reason = self.reason
        why: dict[str, Any] | None = None
        if reason is not None:
            why = {"code": reason.code, "stage": reason.stage, "message": reason.message}
            if reason.level is not None:
                why["numerics"] = reason.level
            if reason.counterexample is not None:
                why["counterexample"] = reason.counterexample
        return {
            "name": self.name,
            "verdict": self.verdict,
            "axis": self.axis,
            "stages": list(self.stages),
            "rescale": self.rescale,
            "deferred": self.deferred,
            "merge": self.merge,
            "bounded": self.bounded,
            "numerics": self.numerics,
            "conditions": list(self.conditions),
            "error": self.error,
            "obligations": [
                {"name": o.name, "text": o.claim, "given": list(o.given), "by": o.by, "seconds": round(o.seconds, 4)}
                for o in self.obligations
            ]
            + [{"name": "structure", "text": t, "given": [], "by": "structure", "seconds": 0.0} for t in self.because],
            "reason": why,
            "after": None if self.after is None else str(self.after),
        }
