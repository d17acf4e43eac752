"""The proof of one mapping: its obligations in the order of the reason codes, each proved once and remembered.

What depends on the roles alone (types, body, reduction) is kept for the other axis maps, and for other intrinsics of
the same semantics.
"""

from __future__ import annotations

import time
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from autosched.ir.value import Condition as Guard
from autosched.ir.value import Read, Value, map_value
from autosched.tensorize.addresses import StageFacts, condition_axes
from autosched.tensorize.addresses_tile import element_of_coordinates
from autosched.tensorize.axes import (
    ASSIGNMENT_LIMIT,
    Assignment,
    Assignments,
    Tile,
    assignments,
    index_axes,
    replicated,
)
from autosched.tensorize.body import SIGN_OF_ZERO, Proof
from autosched.tensorize.body_compare import compare_bodies
from autosched.tensorize.body_zero import zero_adds_nothing
from autosched.tensorize.counterexample import show_leaf
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Certificate, Mapping, Obligation, Reason
from autosched.tensorize.matcher_roles import dtype_reason
from autosched.tensorize.reduction import Contract, combination_reason, prove_reduction
from autosched.tensorize.reduction_update import Update

Roles: TypeAlias = frozenset[tuple[str, Read]]


@dataclass(frozen=True)
class Unproved:
    """An obligation that met a solver's limit."""

    statement: str


class Refused(Exception):
    """Ends the proof of one mapping; `answer` is why. `whatever_axes`: it refuses the roles under every axis map."""

    __match_args__ = ("answer",)

    def __init__(self, answer: Reason | Unproved, whatever_axes: bool = False) -> None:
        super().__init__()
        self.answer = answer
        self.whatever_axes = whatever_axes


class Prover:
    """Proves mappings; remembers body proofs for the time of one `match`."""

    def __init__(self, timeout_ms: int, limit: int = ASSIGNMENT_LIMIT) -> None:
        self.timeout_ms = timeout_ms
        self.limit = limit
        self._bodies: dict[object, Reason | Unproved | tuple[Obligation, tuple[str, ...]]] = {}
        self._zeros: dict[tuple[Value, frozenset[Read], str | None], Proof | tuple[str, ...]] = {}

    def assignments(self, facts: StageFacts, tile: Tile, roles: MappingOf[str, Read]) -> Assignments:
        """All axis maps of one assignment of roles."""
        return assignments(tile, roles, facts.extents, facts.spatial, self.limit)

    def mapping(
        self,
        facts: StageFacts,
        intrinsic: Intrinsic,
        update: Update,
        tile: Tile,
        assignment: Assignment,
        roles: dict[str, Read],
        level: str,
    ) -> Mapping | Refused:
        """The mapping with its certificate, or why it is none."""
        try:
            return self._mapping(facts, intrinsic, update, tile, assignment, roles, level)
        except Refused as refused:
            return refused

    def _mapping(
        self,
        facts: StageFacts,
        intrinsic: Intrinsic,
        update: Update,
        tile: Tile,
        assignment: Assignment,
        roles: dict[str, Read],
        level: str,
    ) -> Mapping:
        obligations = [facts.distinct_writes.obligation]
        obligations += [self._address(facts, read) for read in dict.fromkeys(roles.values())]
        for operand in update.operands:
            obligations.append(self._held(facts, operand, roles[operand.tensor], assignment, tile))
        covers = {g: self._covers(facts, assignment, roles, g) for g in facts.guards}
        program = facts.update
        applied = with_roles(update, roles)
        for refuse in (dtype_reason(update, roles), combination_reason(program, update)):
            if refuse is not None:
                raise Refused(refuse, whatever_axes=True)
        body, left_open = self._body(facts, applied)
        obligations.append(body)
        padding = _padding(facts, tile, assignment)
        staged, more, assumed = self._zeros_of(facts, tile, assignment, roles, padding, covers)
        obligations += more
        contract = self._reduction(facts, intrinsic, applied, assignment, level)
        obligations.append(Obligation("reduction", contract.statement, "structure"))
        assumptions = tuple(dict.fromkeys((*contract.assumptions, *left_open, *facts.lifted, *assumed)))
        if SIGN_OF_ZERO in assumptions and contract.level == "bitwise":
            if level == "bitwise":
                text = f"the answers agree, but {SIGN_OF_ZERO} (zeros stand where the program has nothing)"
                raise Refused(Reason("NUMERICS", text, fix="accept --numerics reassociated"))
            contract = replace(contract, level="reassociated")
        known = Certificate(tuple(obligations), contract.level, assumptions, contract.error_bound)
        operands = {**roles, update.target.tensor: program.target}
        return Mapping(
            facts.program,
            facts.stage,
            intrinsic,
            assignment.axes,
            assignment.outer,
            {o: operands[o] for o in intrinsic.operands if o in operands},
            replicated(tile, assignment, roles),
            padding,
            known,
            conditions=contract.conditions,
            guards={o: g for o, g in staged.items() if g},
        )

    def _address(self, facts: StageFacts, read: Read) -> Obligation:
        answer = facts.address_is_function(read, facts.free_axes(index_axes(read.index)))
        if answer.holds is None:
            raise Refused(Unproved(answer.obligation.statement))
        if not answer.holds:
            raise Refused(Reason("DEPENDS", f"not so: {answer.obligation.statement}"))
        return answer.obligation

    def _held(self, facts: StageFacts, operand: Read, read: Read, assignment: Assignment, tile: Tile) -> Obligation:
        answer = element_of_coordinates(facts, operand, read, assignment, tile)
        if answer.holds is None:
            raise Refused(Unproved(answer.obligation.statement))
        if not answer.holds:
            raise Refused(Reason("DEPENDS", f"not so: {answer.obligation.statement}"))
        return answer.obligation

    def _covers(
        self, facts: StageFacts, assignment: Assignment, roles: dict[str, Read], guard: Guard
    ) -> tuple[str, ...] | None:
        """The operands that see every tile axis of a guard; () where it stays outside, None where the store sees it."""
        needed = condition_axes(guard) & assignment.inner
        if not needed:
            return ()
        covering = tuple(o for o, read in roles.items() if needed <= index_axes(read.index))
        if covering:
            return covering
        if facts.free_axes(condition_axes(guard)) <= facts.spatial:
            return None
        names = ", ".join(sorted(needed))
        text = f"the guard {show_leaf(guard)} depends on {names}, and no operand moves with all of these"
        raise Refused(Reason("DEPENDS", text, fix="leave one of these axes outside"))

    def _body(self, facts: StageFacts, applied: Update) -> tuple[Obligation, tuple[str, ...]]:
        """The obligation, and what its proof leaves open."""
        program = facts.update
        key = program.term, program.target.dtype, program.negated, applied.term, applied.target.dtype, applied.negated
        if key not in self._bodies:
            started = time.perf_counter()
            found = compare_bodies(program, applied, self.timeout_ms)
            seconds = time.perf_counter() - started
            if isinstance(found, Proof):
                if found.status == "unknown":
                    self._bodies[key] = Unproved("that the scalar code of one step is the same")
                else:
                    text = f"one step adds the same value for all inputs, as {program.term.dtype}"
                    left_open = () if found.assumption is None else (found.assumption,)
                    self._bodies[key] = Obligation("body", text, found.method, seconds), left_open
            else:
                self._bodies[key] = found
        known = self._bodies[key]
        if isinstance(known, tuple):
            return known
        raise Refused(known, whatever_axes=True)

    def _zeros_of(
        self,
        facts: StageFacts,
        tile: Tile,
        assignment: Assignment,
        roles: dict[str, Read],
        padding: dict[str, tuple[int, int]],
        covers: MappingOf[Guard, tuple[str, ...] | None],
    ) -> tuple[dict[str, tuple[Guard, ...]], list[Obligation], tuple[str, ...]]:
        """Padding and guards are staged as zeros: they must add nothing."""
        staged: dict[str, tuple[Guard, ...]] = dict.fromkeys(roles, ())
        obligations: list[Obligation] = []
        assumptions: dict[str, None] = {}
        wanted: list[tuple[str, list[tuple[str, ...]], Guard | None]] = []
        for x in tile.extents:
            if x not in tile.spatial and _may_pad(facts, assignment, x, padding):
                # Only operands that move with the axis can be zero in its padding and not elsewhere.
                moved = tuple(o for o in roles if o in tile.moves[x])
                wanted.append((f"padding {x} with zeros adds nothing", [moved], None))
        for condition, covering in covers.items():
            if covering:
                text = f"where {show_leaf(condition)} fails, zeros staged for it add nothing"
                wanted.append((text, [*((o,) for o in covering), covering], condition))
        for text, choices, guard in wanted:
            chosen, found = self._choose(facts, roles, choices)
            if isinstance(found, Proof):
                if found.status == "unknown":
                    raise Refused(Unproved(text))
                fix = "choose sizes that fill whole tiles" if guard is None else "leave the guarded axes outside"
                raise Refused(Reason("BODY_DIFFERS", f"not so: {text}", found.counterexample, fix))
            where = "" if guard is None else f" (in {', '.join(chosen)})"
            obligations.append(Obligation("body", text + where, "structure"))
            assumptions |= dict.fromkeys(found)
            if guard is not None:
                for o in chosen:
                    staged[o] = (*staged[o], guard)
        return staged, obligations, tuple(assumptions)

    def _choose(
        self, facts: StageFacts, roles: dict[str, Read], choices: list[tuple[str, ...]]
    ) -> tuple[tuple[str, ...], Proof | tuple[str, ...]]:
        """The first choice of operands whose zeros add nothing, else the last one's proof that they do."""
        chosen: tuple[str, ...] = ()
        found: Proof | tuple[str, ...] = ()
        for chosen in dict.fromkeys(choices):
            found = self._zero(facts, frozenset(roles[o] for o in chosen))
            if not isinstance(found, Proof):
                break
        return chosen, found

    def _zero(self, facts: StageFacts, reads: frozenset[Read]) -> Proof | tuple[str, ...]:
        key = facts.update.term, reads, facts.update.combine
        if key not in self._zeros:
            self._zeros[key] = zero_adds_nothing(facts.update, reads, self.timeout_ms)
        return self._zeros[key]

    def _reduction(
        self, facts: StageFacts, intrinsic: Intrinsic, update: Update, assignment: Assignment, level: str
    ) -> Contract:
        terms = 1
        for axis in facts.update.axes_reduced:
            terms *= facts.extents[axis.name]
        tiled = any(facts.extents[y] > 1 for y in assignment.inner - facts.spatial)
        fused = assignment.axes.get(update.clamp.axis, ()) if update.clamp else ()
        filled = prod(facts.extents[y] for y in fused)
        found = prove_reduction(
            facts.program, facts.update, update, intrinsic.numerics, terms, tiled, level, filled, fused
        )
        if isinstance(found, Reason):
            raise Refused(found)
        return found


def with_roles(update: Update, roles: MappingOf[str, Read]) -> Update:
    """An intrinsic's normal form with the program's elements for its operands."""
    term = map_value(update.term, lambda v: roles.get(v.tensor, v) if isinstance(v, Read) else v)
    return replace(update, term=term)


def _padding(facts: StageFacts, tile: Tile, assignment: Assignment) -> dict[str, tuple[int, int]]:
    found = {}
    for x, size in tile.extents.items():
        extent = 1
        for y in assignment.axes[x]:
            extent *= facts.extents[y]
        found[x] = extent, -(-extent // size) * size
    return found


def _may_pad(facts: StageFacts, assignment: Assignment, axis: str, padding: dict[str, tuple[int, int]]) -> bool:
    extent, rounded = padding[axis]
    return extent != rounded or not set(assignment.axes[axis]) <= facts.exact
