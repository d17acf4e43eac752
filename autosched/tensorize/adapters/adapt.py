"""Which adapters make an instruction fit a stage: `adaptations` answers with rewritten programs to match again."""

from __future__ import annotations

from dataclasses import dataclass, field

from autosched.ir.program import Stage
from autosched.ir.rewrite import Rewrite
from autosched.tensorize.adapters.polynomial import TooLong
from autosched.tensorize.adapters.proof import NotProved
from autosched.tensorize.adapters.rebuild import NoPlace, rebuild
from autosched.tensorize.adapters.restate import Restated, proof_of, restate
from autosched.tensorize.addresses import StageFacts
from autosched.tensorize.intrinsic import Intrinsic


@dataclass(frozen=True)
class Adapted:
    """`stage` of `rewrite.after` is the one to match; `names` are the adapters that led there."""

    rewrite: Rewrite
    stage: Stage
    names: tuple[str, ...]


@dataclass
class Adapters:
    """The adapted programs of one stage, each made and proved once, for every instruction that asks."""

    facts: StageFacts
    _made: dict[object, tuple[StageFacts, Adapted] | None] = field(default_factory=dict)

    def fitting(self, intrinsic: Intrinsic) -> list[tuple[StageFacts, Adapted]]:
        """Every way to restate the stage in the instruction's types that converts the fewest operands, with facts of
        the stage to match."""
        found = []
        for restated in _restated(self.facts, intrinsic):
            key = restated.wide, restated.left.dtype, restated.right.dtype
            if key not in self._made:
                adapted = adapt(self.facts, restated)
                facts = adapted and StageFacts(adapted.rewrite.after, adapted.stage, self.facts.timeout_ms)
                self._made[key] = (facts, adapted) if facts and adapted else None
            made = self._made[key]
            found += [made] if made is not None else []
        return found


def adaptations(facts: StageFacts, intrinsic: Intrinsic) -> list[Adapted]:
    """The adapters that may make the instruction fit the stage, in no particular order."""
    return [adapted for _, adapted in Adapters(facts).fitting(intrinsic)]


def adapt(facts: StageFacts, restated: Restated) -> Adapted | None:
    """The program with the stage restated; None where the identity cannot be proved or its parts find no place."""
    try:
        proof = proof_of(restated, facts.timeout_ms)
        after, core = rebuild(facts.program, facts.original, facts.update, restated)
    except (NoPlace, NotProved):
        return None
    stage = next(s for s in after.stages if s.assign is core)
    return Adapted(Rewrite(" + ".join(restated.names), facts.program, after, proof), stage, restated.names)


def _restated(facts: StageFacts, intrinsic: Intrinsic) -> list[Restated]:
    """The stage's term in the instruction's types, in the orders of them that convert the fewest operands; a form that
    is the program's own needs no adapter."""
    inputs = [o.dtype for o in intrinsic.inputs]
    wide = intrinsic.accumulator.dtype
    update = facts.update
    integers = all(t.is_integer for t in (*inputs, wide, update.term.dtype))
    if len(inputs) != 2 or update.combine != "+" or update.saturate or update.fused or not integers:
        return []
    reduced = frozenset(a.name for a in update.axes_reduced)
    orders = dict.fromkeys(((inputs[0], inputs[1]), (inputs[1], inputs[0])))
    try:
        found = [r for types in orders if (r := restate(update.term, reduced, wide, types)) is not None]
    except TooLong:
        return []
    least = min((r.converted for r in found), default=0)
    return [r for r in found if r.converted == least and r.names]


__all__ = ["Adapted", "Adapters", "adapt", "adaptations"]
