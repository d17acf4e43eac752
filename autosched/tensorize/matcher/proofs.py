"""The proof of one mapping: its obligations in the order of the reason codes, each proved once and remembered.

What depends on the roles alone (types, body, reduction) is kept for the other axis maps, and for other intrinsics of
the same semantics.
"""

from __future__ import annotations

import time
from collections.abc import Mapping as MappingOf
from dataclasses import replace
from math import prod
from types import MappingProxyType
from typing import TypeAlias

from autosched.ir.nodes import Stage
from autosched.ir.value import Condition as Guard
from autosched.ir.value import Literal, Read, reads
from autosched.logic import Bool
from autosched.tensorize.addresses.axes import (
    ASSIGNMENT_LIMIT,
    Assignment,
    Assignments,
    Tile,
    assignments,
    index_axes,
    replicated,
)
from autosched.tensorize.addresses.points import Answer, condition_axes
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.addresses.tile import element_of_coordinates, guard_of_coordinates, is_plain_operand
from autosched.tensorize.body.canonical import tells_zeros_apart
from autosched.tensorize.body.compare import compare_bodies
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.body.equal import SIGN_OF_ZERO, Proof
from autosched.tensorize.body.flushed import flushed_as
from autosched.tensorize.body.neutral import Factors, Neutral, in_program, neutral, of_any, said_finite
from autosched.tensorize.body.not_negative import not_negative, under_magnitudes, without_signs
from autosched.tensorize.conditions.distinct import asked_to_differ
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Certificate, Mapping, Obligation, Reason
from autosched.tensorize.matcher.excluded import STRICT, left_out, outside_factors, still_open
from autosched.tensorize.matcher.known_roles import Covers, KnownRoles
from autosched.tensorize.matcher.one_issue import not_one_issue
from autosched.tensorize.matcher.refused import Refused as Refused
from autosched.tensorize.matcher.refused import Unproved as Unproved
from autosched.tensorize.matcher.roles import FEW, dtype_reason
from autosched.tensorize.matcher.staging import Stager, covering_operands, shared_coordinates
from autosched.tensorize.numerics.contract import Numerics
from autosched.tensorize.reduction.combine import Contract, combination_reason, prove_reduction
from autosched.tensorize.reduction.partial_sums import is_partial
from autosched.tensorize.reduction.update import Update

NOTHING: MappingOf[str, Read] = MappingProxyType({})
Roles: TypeAlias = frozenset[tuple[str, Read]]


class Prover:
    """Proves mappings; remembers body proofs for the time of one `match`."""

    def __init__(self, timeout_ms: int, limit: int = ASSIGNMENT_LIMIT) -> None:
        self.timeout_ms = timeout_ms
        self.limit = limit
        self._bodies: dict[object, Reason | Unproved | tuple[Obligation, tuple[str, ...]]] = {}
        self._neutrals: dict[object, tuple[Neutral, Neutral]] = {}
        self._assignments: dict[object, Assignments] = {}
        self._cases: dict[object, KnownRoles] = {}
        self._contracts: dict[object, Contract | Reason] = {}

    def assignments(self, facts: StageFacts, tile: Tile, roles: MappingOf[str, Read]) -> Assignments:
        """All axis maps of one assignment of roles: the same for tiles whose axes move the same operands."""
        key = facts, tile.spatial, tuple(tile.moves.items()), tuple(roles.items())
        if key not in self._assignments:
            self._assignments[key] = assignments(tile, roles, facts.extents, facts.spatial, self.limit)
        return self._assignments[key]

    def mapping(
        self,
        facts: StageFacts,
        intrinsic: Intrinsic,
        update: Update,
        tile: Tile,
        assignment: Assignment,
        roles: dict[str, Read],
        level: str,
        held: MappingOf[str, Read] = NOTHING,
    ) -> Mapping | Refused:
        """The mapping with its certificate, or why it is none. `held`: what masks and lengths hold that `update` has no
        condition of any more."""
        obligations: list[Obligation] = []
        try:
            case = self._case(facts, update, roles)
            if len(roles) > FEW and case.refuse is not None:
                raise Refused(case.refuse, whatever_axes=True)  # before the addresses of so many are looked at
            self._addresses(case, facts, update, tile, assignment, roles, obligations)
            barred: dict[str, tuple[Guard, ...]] = {}
            covers = {}
            left = left_out(facts, intrinsic, assignment, roles, level)
            for g in (g for g in facts.guards if g not in left):
                covers[g], proofs, unfit = self._covers(case, facts, update, tile, assignment, roles, g)
                obligations += proofs
                barred |= {o: (*barred.get(o, ()), g) for o in unfit}
            program, of_floats = facts.update, facts.update.target.dtype.is_float
            if case.refuse is not None:
                raise Refused(case.refuse, whatever_axes=True)
            applied = case.applied
            numerics = intrinsic.numerics
            flushes = numerics.flushes_factors and applied.combine is None
            own = flushed_as(program.term, applied.term) if flushes else None
            if own is not None:  # the program flushes them itself
                applied, numerics = replace(applied, term=own[0]), replace(numerics, subnormals="kept")
            body, left_open = self._body(facts, applied, numerics.bounded)
            left_open = left_open if own is None else (*left_open, *own[1])
            obligations.append(body)
            if case.inside is None:
                found = [facts.inside(read) for read in dict.fromkeys(roles.values())]
                case.inside = tuple(_granted(within) for within in found if within is not None)
            obligations += case.inside
            padding = _padding(facts, tile, assignment)
            fills, unset = self._neutral(facts, update)
            case.stager = case.stager or Stager(facts, update, fills, unset, tile, roles)
            staging = case.stager.stage(assignment, padding, covers, barred)
            obligations += staging.obligations
            if parted := not_one_issue(facts, intrinsic, _issues(facts, intrinsic, assignment)):
                raise Refused(parted)
            differ = asked_to_differ(facts, intrinsic, assignment, roles)
            if isinstance(differ, Reason):
                raise Refused(differ)
            obligations += differ[0]
            contract = self._reduction(facts, intrinsic, numerics, applied, assignment, level)
            obligations.append(Obligation("reduction", contract.statement, "structure"))
            outside = outside_factors(facts, fills, covers, roles) if of_floats else frozenset()
            met = in_program(outside, case.stager.given) if outside else frozenset()
            finite, shown = still_open(facts.program, facts.zeroed | staging.finite | met)
            if finite and level in STRICT:
                raise Refused(_not_finite(finite, level))
            obligations += shown
            masked = facts.masked and of_floats  # where a mask fails nothing is added, not a zero
            signs = (SIGN_OF_ZERO,) if facts.lifts or staging.sign_of_zero or met or masked else ()
            said = (*contract.assumptions, *left_open, *said_finite(finite), *signs)
            assumptions = tuple(dict.fromkeys(said))
            if SIGN_OF_ZERO in assumptions and contract.level == "bitwise":
                if level == "bitwise":
                    text = f"the answers agree, but {SIGN_OF_ZERO} (zeros stand where the program has nothing)"
                    raise Refused(Reason("NUMERICS", text, fix="accept --numerics reassociated"))
                contract = replace(contract, level="reassociated")
            known = Certificate(
                tuple(obligations), contract.level, assumptions, contract.error_bound, contract.bound, contract.exact
            )
            operands = {**roles, **held, update.target.tensor: program.target}
            alike = {o: tuple(x for x in intrinsic.operand_axes[o] if x is not None) for o in held}
            return Mapping(
                facts.program,
                facts.stage,
                intrinsic,
                assignment.axes,
                assignment.outer,
                {o: operands[o] for o in intrinsic.operands if o in operands},
                {**replicated(tile, assignment, roles), **{o: axes for o, axes in alike.items() if axes}},
                padding,
                known,
                conditions=(*contract.conditions, *differ[1]),
                guards={o: g for o, g in staging.guards.items() if g},
                fills=fills.staged,
                padded=staging.padded,
                neutral=tuple(tuple(sorted(s)) for s in fills.sets),
                left_out=tuple(g for g in facts.guards if isinstance(g, Bool) and g in left),
                finite=tuple(sorted({r.tensor for f in finite for r in reads(f)})),
            )
        except Refused as refused:
            if isinstance(refused.answer, Reason):
                refused.answer = replace(refused.answer, proved=tuple(obligations), tried=assignment.axes)
            return refused

    def _case(self, facts: StageFacts, update: Update, roles: dict[str, Read]) -> KnownRoles:
        """What is known of these roles; one for instructions of one normal form."""
        key = facts, update, tuple(roles.items())
        if key not in self._cases:
            refuse = dtype_reason(update, roles, facts.update) or combination_reason(facts.update, update)
            plain = all(map(is_plain_operand, update.operands))
            self._cases[key] = KnownRoles(update, roles, refuse, plain)
        return self._cases[key]

    def _addresses(
        self,
        case: KnownRoles,
        facts: StageFacts,
        update: Update,
        tile: Tile,
        assignment: Assignment,
        roles: dict[str, Read],
        obligations: list[Obligation],
    ) -> None:
        """Adds that written elements are distinct and operands' elements follow from coordinates; Refused where not,
        with what holds before that added."""
        if case.addresses is not None:
            obligations.extend(case.addresses)
            return
        obligations.append(facts.distinct_writes.obligation)
        obligations.extend(
            _granted(facts.address_is_function(read, facts.free_axes(index_axes(read.index))))
            for read in dict.fromkeys(roles.values())
        )
        obligations.extend(
            _granted(element_of_coordinates(facts, o, roles[o.tensor], assignment, tile)) for o in update.operands
        )
        if case.plain:
            case.addresses = tuple(obligations)

    def _covers(
        self,
        case: KnownRoles,
        facts: StageFacts,
        update: Update,
        tile: Tile,
        assignment: Assignment,
        roles: dict[str, Read],
        guard: Guard,
    ) -> Covers:
        """The operands that see every tile axis of a guard and whose coordinates determine it; () where it stays
        outside, None where the store sees it. With the proofs, and the operands that see it and do not determine it."""
        needed = condition_axes(guard) & assignment.inner
        if not needed:
            return (), [], ()
        if not case.plain:
            return self._covers_of(facts, update, tile, assignment, roles, guard, needed)
        key = guard, needed
        if key not in case.covering:
            case.covering[key] = self._covers_of(facts, update, tile, assignment, roles, guard, needed)
        return case.covering[key]

    def _covers_of(
        self,
        facts: StageFacts,
        update: Update,
        tile: Tile,
        assignment: Assignment,
        roles: dict[str, Read],
        guard: Guard,
        needed: frozenset[str],
    ) -> Covers:
        """As `_covers`, for the axes of the guard that are in the tile."""
        covering, barred, proofs = [], [], []
        patterns = {r.tensor: r for r in update.operands}
        for operand in covering_operands(roles, needed):
            answer = guard_of_coordinates(facts, patterns[operand], guard, assignment, tile)
            if answer is not None and answer.holds is None:
                raise Refused(Unproved(answer.obligation.statement))
            if answer is not None and not answer.holds:
                barred.append(operand)
                continue
            covering.append(operand)
            proofs += [] if answer is None else [answer.obligation]
        if covering:
            return tuple(covering), proofs, tuple(barred)
        if facts.free_axes(condition_axes(guard)) <= facts.spatial:
            return None, [], tuple(barred)
        if barred:
            raise Refused(shared_coordinates(guard, barred))
        names = ", ".join(sorted(needed))
        text = f"the guard {show_leaf(guard)} depends on {names}, and no operand moves with all of these"
        raise Refused(Reason("DEPENDS", text, fix="leave one of these axes outside"))

    def _body(self, facts: StageFacts, applied: Update, bounded: bool) -> tuple[Obligation, tuple[str, ...]]:
        """The obligation, and what its proof leaves open; where signs matter, with what the program assumes of them.
        `bounded` as `compare_bodies` takes it."""
        try:
            return self._same_body(facts, applied, bounded)
        except Refused:
            unsigned = not_negative(facts.program)
            bare = without_signs(applied.term, unsigned) if unsigned else applied.term
            if bare == applied.term or tells_zeros_apart(bare):
                raise
            body, left_open = self._same_body(facts, replace(applied, term=bare), bounded)
            said = f"{body.statement}, as {', '.join(sorted(unsigned & set(under_magnitudes(applied.term))))} >= 0"
            return replace(body, statement=said), tuple(dict.fromkeys((*left_open, SIGN_OF_ZERO)))

    def _same_body(self, facts: StageFacts, applied: Update, bounded: bool) -> tuple[Obligation, tuple[str, ...]]:
        program = facts.update
        mine = program.term, program.target.dtype, program.negated
        key = mine, applied.term, applied.target.dtype, applied.negated, applied.combine is None, bounded
        if key not in self._bodies:
            started = time.perf_counter()
            found = compare_bodies(program, applied, self.timeout_ms, bounded)
            seconds = time.perf_counter() - started
            if isinstance(found, Proof):
                if found.status == "unknown":
                    self._bodies[key] = Unproved("that the scalar code of one step is the same")
                else:
                    said = "one step adds" if applied.combine else "each element is"
                    whole = "function of reals" if bounded else "value for all inputs"
                    text = f"{said} the same {whole}, as {program.term.dtype}"
                    left_open = () if found.assumption is None else (found.assumption,)
                    self._bodies[key] = Obligation("body", text, found.method, seconds), left_open
            else:
                self._bodies[key] = found
        known = self._bodies[key]
        if isinstance(known, tuple):
            return known
        raise Refused(known, whatever_axes=True)

    def _neutral(self, facts: StageFacts, update: Update) -> tuple[Neutral, Neutral]:
        """The fills that add nothing to an element that begins with its initial value, and what they do to any."""
        init = facts.update.init if isinstance(facts.update.init, Literal) else None
        key = update.term, update.combine, update.target, init
        if key not in self._neutrals:
            found = neutral(update, init, self.timeout_ms)
            self._neutrals[key] = found, of_any(found, update, init, self.timeout_ms)
        return self._neutrals[key]

    def _reduction(
        self,
        facts: StageFacts,
        intrinsic: Intrinsic,
        numerics: Numerics,
        update: Update,
        assignment: Assignment,
        level: str,
    ) -> Contract:
        tiled = any(facts.extents[y] > 1 for y in assignment.inner - facts.spatial)
        fused = assignment.axes.get(update.clamp.axis, ()) if update.clamp else ()
        filled = prod(facts.extents[y] for y in fused)
        issues = _issues(facts, intrinsic, assignment)
        key = facts, update, numerics, tiled, level, filled, fused, issues
        if key not in self._contracts:
            partial = is_partial(facts.program, facts.original)
            self._contracts[key] = prove_reduction(
                facts.program,
                facts.update,
                update,
                numerics,
                prod(facts.extents[y] for y in facts.reduced),
                tiled,
                level,
                filled,
                fused,
                partial,
                issues,
                _earlier(facts),
            )
        found = self._contracts[key]
        if isinstance(found, Reason):
            raise Refused(found)
        return found


def _not_finite(finite: Factors, level: str) -> Reason:
    """Why a mapping that relies on finite factors is none at a level that assumes nothing of the kind."""
    needed = " and ".join(s.split(": ", 1)[1] for s in said_finite(finite))
    text = f"only if {needed}, and {level} assumes no such thing"
    return Reason("NUMERICS", text, fix="accept --numerics reassociated")


def _granted(answer: Answer) -> Obligation:
    """What holds; Refused otherwise."""
    if answer.holds is None:
        raise Refused(Unproved(answer.obligation.statement))
    if not answer.holds:
        raise Refused(Reason("DEPENDS", f"not so: {answer.obligation.statement}"))
    return answer.obligation


def _earlier(facts: StageFacts) -> tuple[Stage, ...]:
    """The stages before this one that write its target."""
    before = facts.program.stages[: facts.program.stages.index(facts.original)]
    return tuple(s for s in before if s.assign.tensor == facts.stage.assign.tensor)


def _issues(facts: StageFacts, intrinsic: Intrinsic, assignment: Assignment) -> int:
    """How many issues sum the terms of one element."""
    count = prod(facts.extents[y] for y in facts.reduced if y not in assignment.inner)
    for axis in intrinsic.reduction:
        count *= -(-prod(facts.extents[y] for y in assignment.axes[axis.name]) // axis.extent)
    return count


def _padding(facts: StageFacts, tile: Tile, assignment: Assignment) -> dict[str, tuple[int, int]]:
    found = {}
    for x, size in tile.extents.items():
        extent = 1
        for y in assignment.axes[x]:
            extent *= facts.extents[y]
        found[x] = extent, -(-extent // size) * size
    return found
