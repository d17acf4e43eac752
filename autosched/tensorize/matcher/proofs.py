"""The parts of a mapping's proof, each proved once and remembered; `form_prover` puts them together.

What depends on the roles alone (types, body, reduction) is kept for the other axis maps, and for other intrinsics of
the same semantics.
"""

from __future__ import annotations

import time
from dataclasses import replace
from math import prod

from autosched.ir.nodes import Stage
from autosched.ir.value import Condition as Guard
from autosched.ir.value import Literal, Read
from autosched.tensorize.addresses.axes import (
    ASSIGNMENT_LIMIT,
    Assignment,
    Assignments,
    Tile,
)
from autosched.tensorize.addresses.points import Answer, condition_axes
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.addresses.tile import element_of_coordinates, guard_of_coordinates, is_plain_operand
from autosched.tensorize.body.canonical import tells_zeros_apart
from autosched.tensorize.body.compare import compare_bodies
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.body.equal import SIGN_OF_ZERO, Proof
from autosched.tensorize.body.neutral import Neutral, neutral, of_any
from autosched.tensorize.body.not_negative import not_negative, under_magnitudes, without_signs
from autosched.tensorize.match_types import Obligation, Reason
from autosched.tensorize.matcher.known_roles import Covers, KnownRoles
from autosched.tensorize.matcher.refused import Refused as Refused
from autosched.tensorize.matcher.refused import Unproved as Unproved
from autosched.tensorize.matcher.staging import covering_operands, shared_coordinates
from autosched.tensorize.numerics.contract import Numerics
from autosched.tensorize.reduction.combine import Contract, combination_reason, prove_reduction
from autosched.tensorize.reduction.partial_sums import is_partial
from autosched.tensorize.reduction.update import Update


class Prover:
    """Proves mappings; remembers body proofs for the time of one `match`."""

    def __init__(self, timeout_ms: int, limit: int = ASSIGNMENT_LIMIT) -> None:
        self.timeout_ms = timeout_ms
        self.limit = limit
        self._bodies: dict[object, Reason | Unproved | tuple[Obligation, tuple[str, ...]]] = {}
        self._neutrals: dict[object, tuple[Neutral, Neutral]] = {}
        self._maps: dict[object, dict[object, Assignments]] = {}
        self._cases: dict[object, KnownRoles] = {}
        self._combinations: dict[tuple[Update, Update], Reason | None] = {}
        self._contracts: dict[object, Contract | Reason] = {}

    def maps_of(self, facts: StageFacts, tile: Tile) -> dict[object, Assignments]:
        """The axis maps that are known, by roles: the same for tiles whose axes move the same operands."""
        return self._maps.setdefault((facts, tile.spatial, tuple(tile.moves.items())), {})

    def case(self, facts: StageFacts, update: Update, roles: dict[str, Read]) -> KnownRoles:
        """What is known of these roles; one for instructions of one normal form."""
        key = facts, update, tuple(roles.items())
        if key not in self._cases:
            plain = all(map(is_plain_operand, update.operands))
            self._cases[key] = KnownRoles(facts.update, update, roles, self.combination(facts, update), plain)
        return self._cases[key]

    def combination(self, facts: StageFacts, update: Update) -> Reason | None:
        """Why the stage and the instruction combine in different ways."""
        both = facts.update, update
        if both not in self._combinations:
            self._combinations[both] = combination_reason(*both)
        return self._combinations[both]

    def addresses(
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
        obligations.extend(granted(facts.moved_alone(read)) for read in dict.fromkeys(roles.values()))
        obligations.extend(
            granted(element_of_coordinates(facts, o, roles[o.tensor], assignment, tile)) for o in update.operands
        )
        if case.plain:
            case.addresses = tuple(obligations)

    def covers(
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

    def body(self, facts: StageFacts, applied: Update, bounded: bool) -> tuple[Obligation, tuple[str, ...]]:
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

    def neutral(self, facts: StageFacts, update: Update) -> tuple[Neutral, Neutral]:
        """The fills that add nothing to an element that begins with its initial value, and what they do to any."""
        init = facts.update.init if isinstance(facts.update.init, Literal) else None
        key = update.term, update.combine, update.target, init
        if key not in self._neutrals:
            found = neutral(update, init, self.timeout_ms)
            self._neutrals[key] = found, of_any(found, update, init, self.timeout_ms)
        return self._neutrals[key]

    def reduction(
        self,
        facts: StageFacts,
        applied: Update,
        numerics: Numerics,
        level: str,
        tiled: bool,
        fused: tuple[str, ...],
        issues: int | None,
    ) -> Contract:
        """The contract of the sum (`prove_reduction` says of what); Refused where there is none."""
        key = facts, applied, numerics, tiled, level, fused, issues
        if key not in self._contracts:
            partial = is_partial(facts.program, facts.original)
            self._contracts[key] = prove_reduction(
                facts.program,
                facts.update,
                applied,
                numerics,
                prod(facts.extents[y] for y in facts.reduced),
                tiled,
                level,
                prod(facts.extents[y] for y in fused),
                fused,
                partial,
                issues,
                _earlier(facts),
            )
        found = self._contracts[key]
        if isinstance(found, Reason):
            raise Refused(found)
        return found


def granted(answer: Answer) -> Obligation:
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
