"""Every cascade of a program: rewritten with its proof, or why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from autosched.ir.printer import print_value
from autosched.ir.program import Program
from autosched.ir.rewrites.algebra.normal import widens
from autosched.ir.rewrites.algebra.text import value_of
from autosched.ir.rewrites.online.counterexample import counterexample
from autosched.ir.rewrites.online.domain import keeps_domain
from autosched.ir.rewrites.online.error import error_of
from autosched.ir.rewrites.online.fused import Pass, fused
from autosched.ir.rewrites.online.masks import masked, words
from autosched.ir.rewrites.online.members import Cascade, cascades_of, without
from autosched.ir.rewrites.online.obligations import Proofs, prove_all
from autosched.ir.rewrites.online.parts import InParts, InTiledParts
from autosched.ir.rewrites.online.states import CarriedState, MemberStates, carried_of, factor_of
from autosched.ir.rewrites.online.tiled import Sunk, Tiled, can_tile, sunk
from autosched.ir.rewrites.refusal import NotRewritten
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.ir.value import Cast, Read, Scalar, Value, is_value, reads, walk
from autosched.logic import Var

BLOCK = 32
"""Iterations of the axis between two looks at the reference, by default."""


@dataclass(frozen=True)
class PassLayout:
    """How a pass is laid out: iterations of a block, parts of the axis that know nothing of each other, and rows that
    share blocks (None: each has its own), where `branches` may cost little (`Tiled.branches`). `one_loop`: blocks
    that a mask cuts are computed as the others, in one loop; without `skips` sums of such blocks are computed whole."""

    block: int
    parts: int
    tile: int | None
    branches: bool
    one_loop: bool
    skips: bool


def online(
    program: Program,
    real: bool = False,
    block: int = BLOCK,
    parts: int = 1,
    tile: int | None = None,
    branches: bool = False,
    one_loop: bool = False,
    skips: bool = True,
) -> Iterator[RewriteVerdict]:
    """The cascades of a program, one certificate each. `real` accepts what rounds differently from the program; the
    others say how the pass is laid out (`PassLayout`)."""
    layout = PassLayout(block, parts, tile, branches, one_loop, skips)
    for found in cascades_of(program):
        if isinstance(found, NotRewritten):
            yield RewriteVerdict("online", "", (found.stage,), reason=found)
            continue
        cascade: Cascade | None = found
        while cascade is not None:
            certificate = _tried(program, cascade, real, layout)
            yield certificate
            cascade = None if certificate.reason is None else without(cascade, certificate.reason.stage)


def _tried(program: Program, cascade: Cascade, real: bool, layout: PassLayout) -> RewriteVerdict:
    """One certificate; roundings are left out only where they stand in the way and `real` accepts that."""
    try:
        try:
            return _certified(program, cascade, False, layout)
        except NotRewritten as refused:
            if refused.code != "CAST":
                raise
            if real:
                return _certified(program, cascade, True, layout)
            refused.level = _level_without_roundings(program, cascade, layout)
            raise
    except NotRewritten as refused:
        axis = ", ".join(a.name for a in cascade.axes)
        stages = tuple(m.stage.name for m in cascade.members)
        return RewriteVerdict("online", axis, stages, reason=_shown(cascade, refused))


def _level_without_roundings(program: Program, cascade: Cascade, layout: PassLayout) -> str | None:
    """The level at which a pass is proved that roundings stand in the way of; None where something else does, too."""
    try:
        return _certified(program, cascade, True, layout).numerics
    except NotRewritten:
        return None


def _certified(program: Program, cascade: Cascade, real: bool, layout: PassLayout) -> RewriteVerdict:
    block, parts, tile = layout.block, layout.parts, layout.tile
    _refuse_other_rows(cascade)
    members = tuple(carried_of(cascade, m, real) for m in cascade.members)
    _refuse_moving_references(cascade, members)
    proofs = prove_all(program, cascade, members, real)
    skipped = masked(cascade, members, whole_blocks=layout.one_loop)
    make: Callable[..., Pass] | None = None if parts == 1 else partial(InParts, parts=parts)
    inside: tuple[Sunk, ...] = ()
    if tile is not None and cascade.rows and can_tile(cascade):
        inside = sunk(program, cascade)
        tiled = Tiled if parts == 1 else partial(InTiledParts, parts=parts)
        make = partial(tiled, tile=tile, stages=inside, branches=layout.branches, skips=layout.skips)
    after = fused(
        program,
        cascade,
        skipped,
        proofs.conditions,
        block,
        make,
        {s.read.tensor: {r.tensor for r in s.stage.reads} for s in inside},
    )
    several = any(len(c.states) > 1 for c in members)
    exact = not real and not several and proofs.bounded and all(keeps_domain(cascade, c) for c in members)
    merged_sums = parts > 1 and any(c.member.op == "+" and c.member.term.dtype.is_float for c in members)
    bitwise = all(c.exact for c in members) and not merged_sums
    return RewriteVerdict(
        "online",
        ", ".join(a.name for a in cascade.axes),
        tuple(m.stage.name for m in cascade.members),
        numerics="bitwise" if bitwise else "rescaled" if exact else "real",
        rescale={c.member.stage.name: _factor(c, s) for c in members for s in c.states if s.watched},
        deferred=_deferred(members),
        merge=True,
        bounded=proofs.bounded if any(s.carried.terms for c in members for s in c.states) else None,
        conditions=tuple(map(print_value, proofs.conditions)),
        obligations=(*proofs.obligations, *skipped.lemmas),
        because=(*(_roundings(cascade) if real else ()), *words(skipped.finite)),
        error=_error(members, proofs) if exact else None,
        finite=skipped.finite,
        after=after,
    )


def _roundings(cascade: Cascade) -> Iterator[str]:
    """What is said of the roundings that the proofs leave out: those of what depends on results of the pass."""
    for member in cascade.members:
        for node in dict.fromkeys(walk(member.term)):
            match node:
                case Cast(operand, dtype, _) if operand.dtype.is_float and not widens(operand.dtype, dtype):
                    if cascade.names & {r.tensor for r in reads(operand)}:
                        rounded = f"{member.stage.name} rounds {print_value(operand)} to {dtype}"
                        yield f"{rounded}: that is taken to be exact, and one pass rounds another number there"


def _refuse_other_rows(cascade: Cascade) -> None:
    """A row's results are known while it is computed; those of other rows are not."""
    rows = {Var(a.name) for a in cascade.rows}
    for member in cascade.members:
        guards = (r for g in member.guards if is_value(g) for r in reads(g))
        for read in (*reads(member.term), *reads(member.init), *guards):
            if read.tensor in cascade.names:
                own = cascade.member(read.tensor).target.index
                if any(a in rows and a != b for a, b in zip(own, read.index, strict=True)):
                    name = member.stage.name
                    text = f"{name} reads {print_value(read)}, a result of another row"
                    raise NotRewritten("DEPENDS", text, name)


def _refuse_moving_references(cascade: Cascade, members: tuple[MemberStates, ...]) -> None:
    """What states are kept relative to has to be known on the way: a result that is its own running value, of the row
    alone."""
    by_name = {c.member.name: c for c in members}
    for carried in members:
        started = cascade.names & {r.tensor for r in reads(carried.member.init)}
        if carried.exact and started:
            text = f"{carried.member.name} starts from {', '.join(sorted(started))}, which is known at the end only"
            raise NotRewritten("UNSUPPORTED", text, carried.member.stage.name)
        for reference in {r for s in carried.states for r in s.watched}:
            other = by_name[reference.tensor]
            name = carried.member.stage.name
            if not other.plain:
                text = f"an exponential of {name} needs {reference.tensor}, which is known at the end only"
                raise NotRewritten("UNSUPPORTED", text, name)
            if other.member.extra:
                text = f"an exponential of {name} needs {reference.tensor} of other rows"
                raise NotRewritten("UNSUPPORTED", text, name)


def _factor(carried: MemberStates, state: CarriedState) -> str:
    """What a state is multiplied by where references move, or what becomes of it."""
    dtype = state.term.dtype
    if state.extreme is not None:
        m = state.extreme.tensor
        return f"{carried.member.name} if {m} == {m}' else {print_value(carried.member.init)}"
    here: dict[Read, Value] = {r: Scalar(r.tensor, dtype) for r in state.references}
    later: dict[Read, Value] = {r: Scalar(r.tensor + "'", dtype) for r in state.references}
    return print_value(factor_of(state, here, later, dtype))


def _deferred(members: tuple[MemberStates, ...]) -> dict[str, str]:
    found = {}
    for carried in members:
        neutral = 1 if carried.member.op == "+" else 0
        texts = [
            print_value(value_of(s.deferred, s.term.dtype)) for s in carried.states if s.deferred.constant != neutral
        ]
        if texts:
            found[carried.member.stage.name] = ", ".join(texts)
    return found


def _error(members: tuple[MemberStates, ...], proofs: Proofs) -> str | None:
    bounds = [b for c in members if not c.exact and (b := error_of(c)) is not None]
    if not bounds:
        return None
    return str(max(bounds, key=lambda b: b.order))


def _shown(cascade: Cascade, refused: NotRewritten) -> NotRewritten:
    """The refusal with a counterexample, or `unknown` where the laws did not do and none was found."""
    member = next((m for m in cascade.members if m.stage.name == refused.stage), None)
    if refused.code not in ("NOT_SEPARABLE", "CAST", "NOT_DISTRIBUTIVE") or member is None or refused.counterexample:
        return refused
    apart = {"CAST": 1e-4}.get(refused.code, 1e-3)
    refused.counterexample = counterexample(cascade, member, apart)
    refused.unknown = refused.counterexample is None and refused.code == "NOT_SEPARABLE"
    return refused


