"""What every adapter answers with: proposals, each a program that may fit the instruction, made when it is asked for.

    widened(facts, intrinsic)  ->  [Proposal(key=("widen", (("A", s16),)), make=…)]

An adapter is one function of a stage's facts and an instruction. `key` names the program that `make` would make, so
that instructions which lead to one program share it, and its proofs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from autosched.ir.nodes import Assign, Stage
from autosched.ir.program import Program
from autosched.ir.rewrites.rewrite import Rewrite
from autosched.ir.value import Value
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Obligation


class NoPlace(Exception):
    """The stage stands where its neighbours leave no room for the statements that an adapter adds."""


class NotProved(Exception):
    """An identity that does not hold, or that the solver could not decide in time; the argument is the identity."""


@dataclass(frozen=True)
class Adapted:
    """`stage` of `rewrite.after` is the one to match; `names` are the adapters that led there, and `obligations` (of
    the part `adapter`) what was proved of them."""

    rewrite: Rewrite
    stage: Stage
    names: tuple[str, ...]
    obligations: tuple[Obligation, ...] = ()
    reorders: bool = False
    """Whether floats are summed in another order than the program's."""
    zeroed: frozenset[Value] = frozenset()
    """Factors that meet a zero where the program adds nothing, and must be finite for that; the sign of a zero may
    differ there."""

    def zeroing(self, factors: Iterable[Value]) -> Adapted:
        """The same with factors that meet such a zero."""
        return replace(self, zeroed=self.zeroed | frozenset(factors))


@dataclass(frozen=True)
class Proposal:
    """`make` may raise NoPlace or NotProved: then there is no such program."""

    key: Hashable
    make: Callable[[], Adapted]


Adapter: TypeAlias = Callable[[StageFacts, Intrinsic], Sequence[Proposal]]


def adapted(
    before: Program, after: Program, core: Assign, names: tuple[str, ...], lemmas: Sequence[Obligation]
) -> Adapted:
    """The answer of an adapter: `core` is the assignment of `after` that the instruction computes now."""
    stage = next(s for s in after.stages if s.assign is core)
    proof = tuple(f"{o.statement} ({o.method})" for o in lemmas)
    return Adapted(Rewrite(" + ".join(names), before, after, proof), stage, names, tuple(lemmas))


def followed(before: Program, first: Adapted, second: Adapted) -> Adapted:
    """One rewriting after another, as one."""
    proof = (*first.rewrite.proof, *second.rewrite.proof)
    name = f"{first.rewrite.name} + {second.rewrite.name}"
    rewrite = replace(second.rewrite, name=name, before=before, proof=proof)
    names, proved = (*first.names, *second.names), (*first.obligations, *second.obligations)
    zeroed = first.zeroed | second.zeroed
    return Adapted(rewrite, second.stage, names, proved, first.reorders or second.reorders, zeroed)


def lemma(statement: str, method: str) -> Obligation:
    """One proved statement of an adapter; `method`: `z3`, `exhaustion`, `structure`."""
    return Obligation("adapter", statement, method)
