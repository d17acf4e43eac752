"""The proof of one mapping: its obligations in the order of the reason codes, each proved once and remembered.

    FormProver(prover, facts, intrinsic, …).mapping(assignment, roles)

What roles alone decide is found once for all axis maps. Of operands that plain axes index (`a[i, k]`) so is all that is
equal for axis maps which see guards, pad and sum alike: their certificate is one object.
"""

from __future__ import annotations

from collections.abc import Hashable
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import NamedTuple

from autosched.ir.dtypes import DType
from autosched.ir.value import Condition as Guard
from autosched.ir.value import Read, reads
from autosched.logic import Bool
from autosched.tensorize.addresses.axes import Assignment, Assignments, Tile, assignments, index_axes, replicated
from autosched.tensorize.addresses.points import condition_axes
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.addresses.tile import is_plain_operand
from autosched.tensorize.body.equal import SIGN_OF_ZERO
from autosched.tensorize.body.flushed import flushed_as
from autosched.tensorize.body.neutral import Neutral, in_program, said_finite
from autosched.tensorize.conditions.distinct import asked_to_differ
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Certificate, Condition, Mapping, Obligation, Reason, rank
from autosched.tensorize.matcher.excluded import STRICT, is_border, left_out, not_finite, outside_factors, still_open
from autosched.tensorize.matcher.known_roles import KnownRoles
from autosched.tensorize.matcher.one_issue import not_one_issue
from autosched.tensorize.matcher.proofs import Prover, granted
from autosched.tensorize.matcher.refused import Refused
from autosched.tensorize.matcher.roles import FEW
from autosched.tensorize.matcher.staging import Stager, Staging
from autosched.tensorize.numerics.contract import Numerics
from autosched.tensorize.reduction.update import Update

NOTHING: MappingOf[str, Read] = MappingProxyType({})


class MapShape(NamedTuple):
    """All that a proof asks of an axis map whose operands are plain: which axes of each guard are in the tile
    (`seen`), of each reduction axis whether tiles reach past its greatest end and whether that is its only one, and
    what is summed where."""

    seen: tuple[frozenset[str], ...]
    padded: tuple[bool, ...]
    exact: tuple[bool, ...]
    tiled: bool
    fused: tuple[str, ...]
    issues: int | None


@dataclass(frozen=True, slots=True)
class Proved:
    """What mappings of one shape have in common."""

    certificate: Certificate
    conditions: tuple[Condition, ...]
    staging: Staging
    guards: dict[str, tuple[Guard, ...]]
    left_out: tuple[Bool, ...]
    finite: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """Why axis maps of one shape are no mappings, with what was proved before."""

    refused: Refused
    proved: tuple[Obligation, ...]


@dataclass
class RoleProofs:
    """What one assignment of roles decides; `answers` of axis maps by their shapes."""

    case: KnownRoles
    roles: dict[str, Read]
    answers: dict[Hashable, Proved | Failed] = field(default_factory=dict)
    borders: dict[Guard, bool] = field(default_factory=dict)
    operands: tuple[dict[str, Read], dict[str, tuple[str, ...]]] | None = None

    @cached_property
    def moved(self) -> dict[str, frozenset[str]]:
        """The program axes that move each operand."""
        return {o: index_axes(read.index) for o, read in self.roles.items()}


class FormProver:
    """Proves the mappings of one stage on one form of an instruction. `held`: what masks and lengths hold that `update`
    has no condition of any more."""

    def __init__(
        self,
        prover: Prover,
        facts: StageFacts,
        intrinsic: Intrinsic,
        update: Update,
        tile: Tile,
        level: str,
        held: MappingOf[str, Read] = NOTHING,
    ) -> None:
        self.prover = prover
        self.facts = facts
        self.intrinsic = intrinsic
        self.update = update
        self.tile = tile
        self.level = level
        self.held = held
        self._roles: dict[Hashable, RoleProofs] = {}
        self._maps = prover.maps_of(facts, tile)
        self._guard_axes = tuple(condition_axes(g) for g in facts.guards)
        self._reduced = tuple(x for x in tile.extents if x not in tile.spatial)
        self._distinct = any(o.distinct for o in intrinsic.operands.values())
        self._steps = tuple((a.name, a.extent) for a in intrinsic.reduction)

    def of(self, roles: dict[str, Read]) -> RoleProofs:
        """What is known of these roles."""
        key = tuple(roles.items())
        if key not in self._roles:
            self._roles[key] = RoleProofs(self.prover.case(self.facts, self.update, roles), roles)
        return self._roles[key]

    def adds_nothing(self, roles: dict[str, Read], reached: tuple[int, int] | None) -> bool:
        """Whether these roles can only be refused, and for no reason that goes further than one of the rank `reached`:
        types or combination refuse them, and no question about their addresses is open."""
        if reached is None:
            return False
        wrong = sum([read.dtype != self._wanted[o] for o, read in roles.items()])
        own = rank("DTYPE", wrong) if wrong else self._combination
        if own is None or own > reached:
            return False
        if len(roles) > FEW:
            return True
        return self._plain and all(self.facts.moved_alone(read).holds is not None for read in roles.values())

    @cached_property
    def _plain(self) -> bool:
        return all(map(is_plain_operand, self.update.operands))

    @cached_property
    def _wanted(self) -> dict[str, DType]:
        return {r.tensor: r.dtype for r in self.update.operands}

    @cached_property
    def _combination(self) -> tuple[int, int] | None:
        """The rank of the reason why the two combine in different ways."""
        found = self.prover.combination(self.facts, self.update)
        return None if found is None else found.rank

    def assignments(self, roles: dict[str, Read]) -> Assignments:
        """All axis maps of one assignment of roles."""
        key = tuple(roles.items())
        if key not in self._maps:
            self._maps[key] = assignments(self.tile, roles, self.facts.extents, self.facts.spatial, self.prover.limit)
        return self._maps[key]

    def replicated(self, assignment: Assignment, roles: dict[str, Read]) -> dict[str, tuple[str, ...]]:
        """Operand to the filled tile axes that it could move with, and does not here."""
        return replicated(self.tile, assignment, self.of(roles).moved)

    def mapping(self, assignment: Assignment, roles: dict[str, Read]) -> Mapping | Refused:
        """The mapping with its certificate, or why it is none."""
        known, padding = self.of(roles), self._padding(assignment)
        key: Hashable = None
        if known.case.plain and not self._distinct:
            key = self._shape(assignment, padding)
        answer = known.answers.get(key) if key is not None else None
        if answer is None:
            answer = self._answer(known, assignment, padding)
            if key is not None:
                known.answers[key] = answer
        if isinstance(answer, Proved):
            return self._made(known, answer, assignment, padding)
        refused = answer.refused
        if isinstance(refused.answer, Reason):
            found = replace(refused.answer, proved=answer.proved, tried=assignment.axes)
            return Refused(found, refused.whatever_axes)
        return refused

    def _shape(self, assignment: Assignment, padding: MappingOf[str, tuple[int, int]]) -> MapShape:
        facts, inner = self.facts, assignment.inner
        return MapShape(
            tuple([axes & inner for axes in self._guard_axes]),
            tuple([padding[x][0] != padding[x][1] for x in self._reduced]),
            tuple([facts.exact.issuperset(assignment.axes[x]) for x in self._reduced]),
            self._tiled(assignment),
            self._clamped_together(assignment),
            self._issues(assignment) if self._counts_issues else None,
        )

    @cached_property
    def _counts_issues(self) -> bool:
        """Whether a proof asks how many issues sum one element."""
        return self.intrinsic.from_zero or self._bound_counts_issues

    @cached_property
    def _bound_counts_issues(self) -> bool:
        return self.facts.update.target.dtype.is_float and self.intrinsic.numerics.counts_issues

    def _answer(
        self, known: RoleProofs, assignment: Assignment, padding: MappingOf[str, tuple[int, int]]
    ) -> Proved | Failed:
        obligations: list[Obligation] = []
        try:
            return self._proved(known, assignment, padding, obligations)
        except Refused as refused:
            return Failed(Refused(refused.answer, refused.whatever_axes), tuple(obligations))

    def _proved(
        self,
        known: RoleProofs,
        assignment: Assignment,
        padding: MappingOf[str, tuple[int, int]],
        obligations: list[Obligation],
    ) -> Proved:
        """What mappings of this shape have in common; Refused where there are none, with what holds before that in
        `obligations`."""
        facts, intrinsic, update, tile, level = self.facts, self.intrinsic, self.update, self.tile, self.level
        prover, case, roles = self.prover, known.case, known.roles
        if len(roles) > FEW and case.refuse is not None:
            raise Refused(case.refuse, whatever_axes=True)  # before the addresses of so many are looked at
        prover.addresses(case, facts, update, tile, assignment, roles, obligations)
        barred: dict[str, tuple[Guard, ...]] = {}
        covers = {}
        left = left_out(facts, intrinsic, assignment, level, lambda g: self._is_border(known, g))
        for g in (g for g in facts.guards if g not in left):
            covers[g], proofs, unfit = prover.covers(case, facts, update, tile, assignment, roles, g)
            obligations += proofs
            barred |= {o: (*barred.get(o, ()), g) for o in unfit}
        of_floats = facts.update.target.dtype.is_float
        if case.refuse is not None:
            raise Refused(case.refuse, whatever_axes=True)
        applied, numerics, own = self._applied(case)
        body, left_open = prover.body(facts, applied, numerics.bounded)
        left_open = (*left_open, *own)
        obligations.append(body)
        if case.inside is None:
            found = [facts.inside(read) for read in dict.fromkeys(roles.values())]
            case.inside = tuple(granted(within) for within in found if within is not None)
        obligations += case.inside
        fills, unset = self._fills
        case.stager = case.stager or Stager(facts, update, fills, unset, tile, roles)
        stager = case.stager
        staging = stager.stage(assignment, padding, covers, barred)
        obligations += staging.obligations
        issues = self._issues(assignment) if self._counts_issues else 1
        if parted := not_one_issue(facts, intrinsic, issues):
            raise Refused(parted)
        differ = asked_to_differ(facts, intrinsic, assignment, roles)
        if isinstance(differ, Reason):
            raise Refused(differ)
        obligations += differ[0]
        counted = issues if self._bound_counts_issues else None
        tiled, fused = self._tiled(assignment), self._clamped_together(assignment)
        contract = prover.reduction(facts, applied, numerics, level, tiled, fused, counted)
        obligations.append(Obligation("reduction", contract.statement, "structure"))
        outside = outside_factors(facts, fills, covers, roles) if of_floats else frozenset()
        met = in_program(outside, stager.given) if outside else frozenset()
        finite, shown = still_open(facts.program, facts.zeroed | staging.finite | met)
        if finite and level in STRICT:
            raise Refused(not_finite(finite, level))
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
        certificate = Certificate(
            tuple(obligations), contract.level, assumptions, contract.error_bound, contract.bound, contract.exact
        )
        return Proved(
            certificate,
            (*contract.conditions, *differ[1]),
            staging,
            {o: g for o, g in staging.guards.items() if g},
            tuple(g for g in facts.guards if isinstance(g, Bool) and g in left),
            tuple(sorted({r.tensor for f in finite for r in reads(f)})),
        )

    def _made(
        self,
        known: RoleProofs,
        proved: Proved,
        assignment: Assignment,
        padding: dict[str, tuple[int, int]],
    ) -> Mapping:
        operands, held = self._operands(known)
        copies = replicated(self.tile, assignment, known.moved)
        return Mapping(
            self.facts.program,
            self.facts.stage,
            self.intrinsic,
            assignment.axes,
            assignment.outer,
            operands,
            {**copies, **held} if held else copies,
            padding,
            proved.certificate,
            conditions=proved.conditions,
            guards=proved.guards,
            fills=self._fills[0].staged,
            padded=proved.staging.padded,
            neutral=self._least_sets,
            left_out=proved.left_out,
            finite=proved.finite,
        )

    def _operands(self, known: RoleProofs) -> tuple[dict[str, Read], dict[str, tuple[str, ...]]]:
        """What operands hold, and along which axes those are the same that masks and lengths hold."""
        if known.operands is None:
            intrinsic = self.intrinsic
            operands = {**known.roles, **self.held, self.update.target.tensor: self.facts.update.target}
            alike = {o: tuple(x for x in intrinsic.operand_axes[o] if x is not None) for o in self.held}
            ordered = {o: operands[o] for o in intrinsic.operands if o in operands}
            known.operands = ordered, {o: axes for o, axes in alike.items() if axes}
        return known.operands

    def _applied(self, case: KnownRoles) -> tuple[Update, Numerics, tuple[str, ...]]:
        """The instruction's normal form on the program's elements and how it computes, with what this leaves open:
        where the program flushes its elements itself, that is part of what is compared."""
        applied, numerics = case.applied, self.intrinsic.numerics
        flushes = numerics.flushes_factors and applied.combine is None
        own = flushed_as(self.facts.update.term, applied.term) if flushes else None
        if own is None:
            return applied, numerics, ()
        return replace(applied, term=own[0]), replace(numerics, subnormals="kept"), own[1]

    def _is_border(self, known: RoleProofs, guard: Guard) -> bool:
        if guard not in known.borders:
            known.borders[guard] = is_border(self.facts, known.roles, guard)
        return known.borders[guard]

    @cached_property
    def _fills(self) -> tuple[Neutral, Neutral]:
        return self.prover.neutral(self.facts, self.update)

    @cached_property
    def _least_sets(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(sorted(s)) for s in self._fills[0].sets)

    def _tiled(self, assignment: Assignment) -> bool:
        """Whether one issue sums several terms."""
        extents, spatial = self.facts.extents, self.facts.spatial
        return any(extents[y] > 1 for y in assignment.inner if y not in spatial)

    def _clamped_together(self, assignment: Assignment) -> tuple[str, ...]:
        """The program axes on the axis along which the instruction clamps in groups."""
        clamp = self.update.clamp
        return assignment.axes.get(clamp.axis, ()) if clamp else ()

    def _issues(self, assignment: Assignment) -> int:
        """How many issues sum the terms of one element."""
        extents, inner = self.facts.extents, assignment.inner
        count = prod(extents[y] for y in self.facts.reduced if y not in inner)
        for x, size in self._steps:
            count *= -(-prod(extents[y] for y in assignment.axes[x]) // size)
        return count

    def _padding(self, assignment: Assignment) -> dict[str, tuple[int, int]]:
        """Tile axis to its extent in the program, and that rounded up to tiles."""
        extents, found = self.facts.extents, {}
        for x, size in self.tile.extents.items():
            extent = 1
            for y in assignment.axes[x]:
                extent *= extents[y]
            found[x] = extent, -(-extent // size) * size
        return found
