"""Which adapters make an instruction fit a stage: `Adapters` answers with rewritten programs to match again."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from autosched.tensorize.adapters.proposal import Adapted, Adapter, NoPlace, NotProved, Proposal
from autosched.tensorize.adapters.registry import ADAPTERS, CHOOSING, FILLING, GOVERNED, OVERWRITING
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.intrinsic import Intrinsic


@dataclass
class Adapters:
    """The adapted programs of one stage, by the `adapters`, each made and proved once, for every instruction that asks.
    """

    facts: StageFacts
    adapters: tuple[Adapter, ...] = ADAPTERS
    _made: dict[Hashable, tuple[StageFacts, Adapted] | None] = field(default_factory=dict)

    def fitting(self, intrinsic: Intrinsic) -> Iterator[list[tuple[StageFacts, Adapted]]]:
        """What each adapter that has an answer makes of the stage for the instruction, with facts of the stage to
        match; a later adapter is run only if the iteration goes on."""
        known = self.adapters if intrinsic.accumulates else CHOOSING if intrinsic.chooses else OVERWRITING
        for adapter in GOVERNED if intrinsic.governed else known:
            if made := self._made_by(adapter, intrinsic):
                yield made

    def filling(self, intrinsic: Intrinsic) -> list[tuple[StageFacts, Adapted]]:
        """The same of adapters for an instruction that fits already, by mappings that leave one of its axes empty."""
        return [made for adapter in FILLING for made in self._made_by(adapter, intrinsic)]

    def _made_by(self, adapter: Adapter, intrinsic: Intrinsic) -> list[tuple[StageFacts, Adapted]]:
        return [m for p in adapter(self.facts, intrinsic) if (m := self._once(p)) is not None]

    def _once(self, proposal: Proposal) -> tuple[StageFacts, Adapted] | None:
        """None where the identity cannot be proved or its parts find no place."""
        if proposal.key not in self._made:
            try:
                found = proposal.make()
                after = found.rewrite.after
                facts = StageFacts(after, found.stage, self.facts.timeout_ms)
                facts.choices |= self.facts.choices  # the rewriting writes them as guards
                facts.made = frozenset(after.tensors) - frozenset(self.facts.program.tensors)
                self._made[proposal.key] = facts, found
            except (NoPlace, NotProved):
                self._made[proposal.key] = None
        return self._made[proposal.key]
