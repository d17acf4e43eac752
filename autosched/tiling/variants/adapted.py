"""The programs that tuning lays out: the one given, and what adapters make of it where no instruction fits as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product

from autosched.ir.dtypes import DType
from autosched.ir.program import Program
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.ir.value import Value, is_value
from autosched.tensorize import match_types
from autosched.tensorize.adapters.factored import both_sides, factored, factorings, sides
from autosched.tensorize.adapters.gathered import gathered
from autosched.tensorize.adapters.ones import ONES
from autosched.tensorize.adapters.operand_types import multiplies_matrices, side_types
from autosched.tensorize.adapters.proposal import NoPlace
from autosched.tensorize.adapters.summands import in_summands, what_is_lost
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.equal import holds
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Match
from autosched.tensorize.matcher.excluded import STRICT
from autosched.tensorize.matcher.match import default_stages, match, what_zeros_meet
from autosched.tensorize.reduction.update import NotAnUpdate
from autosched.tiling.plans.plan import Plan
from autosched.tiling.variants.conditional import usable_as

MOST_VARIANTS = 8
"""Adapted programs looked at: two for each stage that needs one, in all combinations of stages."""


@dataclass(frozen=True)
class Variant:
    """A program that computes what the one given does, with its matches. `adapters` led there; `stages` are those that
    they made fit an instruction, each with a mapping that says how that was proved. `assumptions` are theirs, some of
    them that elements of the tensors `finite` are. `rewrites` are steps other than adapters that led there. The
    outermost loops named in `loops` stay around their statements."""

    program: Program
    matches: tuple[Match, ...]
    adapters: tuple[str, ...] = ()
    stages: Mapping[str, match_types.Mapping] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    finite: tuple[str, ...] = ()
    rewrites: tuple[RewriteVerdict, ...] = ()
    loops: frozenset[str] = frozenset()

    def certified(self, found: Mapping[str, Sequence[match_types.Mapping]]) -> dict[str, list[match_types.Mapping]]:
        """Mappings of the program's stages, those of adapted stages with the adapters and what was proved of them."""
        return {
            stage: [self._certified(m) for m in mappings] if stage in self.stages else list(mappings)
            for stage, mappings in found.items()
        }

    def _certified(self, mapping: match_types.Mapping) -> match_types.Mapping:
        adapted = mapping.adapted_as(self.stages[mapping.stage.name])
        return adapted.assuming(self.assumptions, self.finite) if self.assumptions else adapted

    def named(self, plan: Plan) -> Plan:
        """The plan under a name that says which adapters and rewrites it needs."""
        if not self.adapters and not self.rewrites:
            return plan
        steps = ", ".join((*self.adapters, *(r.name for r in self.rewrites)))
        return replace(plan, name=f"{plan.name} [{steps}]", rewrites=self.rewrites)


def adapted_programs(
    program: Program,
    matches: Sequence[Match],
    intrinsics: Sequence[Intrinsic],
    numerics: str,
    mode: str = "guard",
    beside: bool = False,
    typed: bool = False,
    ones: bool = False,
) -> Iterator[Variant]:
    """The program itself, then each way to adapt the stages that no instruction of the machine's own fits.

    Portable instructions stand in for such a stage already, so they are adapted only where none does. `mode` says what
    becomes of mappings with conditions (see `tiling.variants.conditional`): one that is only checked leaves a stage in
    need. Operands that are expressions become intermediates where nothing else helps; `beside`: also where something
    does. `typed`: also in types of instructions that multiply matrices, where none of these fits; else as summands of
    such types, where an instruction's registers hold matrices. `ones`: a plain sum
    may be a sum of products with one, which is no gain where vectors add.
    """
    todo = [Variant(program, tuple(matches))]
    seen = {str(program)}
    while todo:
        here = todo.pop(0)
        yield here
        further = (_in_types if typed else _in_summands)(here, mode, intrinsics, numerics)
        for adapted in chain(further, _next(here, mode, intrinsics, numerics, beside, ones)):
            text = str(adapted.program)
            if text not in seen and len(seen) <= MOST_VARIANTS:
                seen.add(text)
                found: list[Match] = []
                for stage in _worth(program, here, adapted):
                    asked = _fitting(stage, here, adapted, intrinsics)
                    still = () if asked else [m for m in here.matches if m.stage == stage]  # it still fits nothing
                    found += match(adapted.program, asked, numerics, [stage]) if asked else still
                todo.append(replace(adapted, matches=tuple(found)))


def _fitting(stage: str, before: Variant, now: Variant, intrinsics: Sequence[Intrinsic]) -> list[Intrinsic]:
    """The instructions worth asking again: those that fitted the stage before the last step, with adapters or without,
    and all where it is new."""
    mappings = [m for found in before.matches for m in found.mappings if stage in (found.stage, m.stage.name)]
    if stage in now.stages:
        mappings = [m for m in mappings if m.program is now.program or not m.adapters]
    fitted = {m.intrinsic.name for m in mappings}
    if stage in now.stages:
        return [i for i in intrinsics if i.name in fitted] or list(intrinsics)  # none: never asked as it is now
    known = any(stage == found.stage for found in before.matches)
    return [i for i in intrinsics if i.name in fitted] if known else list(intrinsics)


def _by_data(mapping: match_types.Mapping) -> bool:
    return any(is_value(i) for read in mapping.operands.values() for i in read.index)


def _worth(program: Program, before: Variant, adapted: Variant) -> list[str]:
    """The stages that do the work, and those that were asked about before: elementwise ones, too. Sums that an adapter
    added are small beside them and run as scalar code, but for those over as many axes as an adapted stage has:
    products that were split off it."""
    own = {s.name for s in default_stages(adapted.program)}
    asked = {found.stage for found in before.matches}
    deep = min((len(m.stage.axes) for m in adapted.stages.values()), default=0)
    return [
        s.name
        for s in adapted.program.stages
        if s.name in adapted.stages
        or s.name in asked - own
        or (s.name in own and (s.assign.tensor in program.tensors or len(s.axes) >= deep))
    ]


def _next(
    here: Variant, mode: str, intrinsics: Sequence[Intrinsic], numerics: str, beside: bool, ones: bool
) -> Iterator[Variant]:
    """One more stage adapted, for the first stage that needs it (the others follow from there). `intrinsics` are those
    that are asked about a stage whose expressions are intermediates."""
    by_stage: dict[str, list[Match]] = {}
    for found in here.matches:
        by_stage.setdefault(found.stage, []).append(found)
    for found_of_stage in by_stage.values():
        summed = [m for found in found_of_stage for m in found.mappings if ones or ONES not in m.adapters]
        known = [usable_as(m, mode) for m in summed]
        mappings = [m for m in known if m is not None]
        plain = [m for m in mappings if not m.adapters and not m.conditions]
        native = [m for m in mappings if m.adapters and not m.intrinsic.portable]
        moved = next((m for m in plain if _by_data(m)), None)
        in_order = moved and gathered(StageFacts(here.program, here.program.stage(found_of_stage[0].stage)))
        if moved:  # where data mean one of a few elements, an instruction that selects reads them all
            yield from _adapted(here, [m for m in native if not _by_data(m)])
        if moved and in_order:  # plans hold no address that data says: the elements are copied in order first
            names = (*here.adapters, *in_order.names)
            how = replace(moved, program=in_order.rewrite.after).adapted(in_order.names, in_order.obligations)
            yield Variant(in_order.rewrite.after, (), names, {**here.stages, in_order.stage.name: how})
            return
        if any(not m.intrinsic.portable for m in plain):
            # What takes in the stages before this one saves their passes over memory; and a condition on data has no
            # plan on an instruction but in its mask.
            whole = [m for m in native if len(m.program.stages) < len(here.program.stages)]
            asked = all(_asks_data(m) for m in plain if not m.intrinsic.portable)
            yield from _adapted(here, [*whole, *(m for m in native if asked and not _asks_data(m))])
            continue
        chosen = native or ([] if plain else [m for m in mappings if m.adapters])
        yield from _adapted(here, chosen)
        if chosen and not beside:
            return
        stage = found_of_stage[0].stage
        needed = (beside or not plain) and stage not in here.stages and intrinsics
        apart = _factored(here, stage, intrinsics, numerics) if needed else None
        if apart is not None:
            yield apart
        if chosen or apart is not None:
            return


def _asks_data(mapping: match_types.Mapping) -> bool:
    """Whether a condition on data stands around the stage that no operand of the instruction holds."""
    return any(is_value(g) for g in mapping.stage.guards)


def computed_beforehand(
    program: Program, stage: str, matches: Sequence[Match], intrinsics: Sequence[Intrinsic], numerics: str
) -> Variant | None:
    """The program with what the stage multiplies computed first, with the answers of instructions on what is left;
    None where none fits then."""
    return None if program.symbolic else _factored(Variant(program, tuple(matches)), stage, intrinsics, numerics)


def _adapted(here: Variant, mappings: Sequence[match_types.Mapping]) -> Iterator[Variant]:
    """The program as the adapters of each mapping restate it."""
    for mapping in {id(m.program): m for m in mappings}.values():
        names = (*here.adapters, *mapping.adapters)
        yield Variant(mapping.program, (), names, {**here.stages, mapping.stage.name: mapping})


def _in_types(here: Variant, mode: str, intrinsics: Sequence[Intrinsic], numerics: str) -> Iterator[Variant]:
    """One more stage on an instruction that multiplies matrices, in whose types its operands are held, for the first
    stage that none fits otherwise."""
    for stage in dict.fromkeys(found.stage for found in here.matches):
        known = [usable_as(m, mode) for f in here.matches if f.stage == stage for m in f.mappings]
        if stage in here.stages or any(m is not None and multiplies_matrices(m.intrinsic) for m in known):
            continue
        held = list(held_in_types(here, stage, intrinsics, numerics))
        yield from held
        if held:
            return


def held_in_types(
    here: Variant, stage: str, intrinsics: Sequence[Intrinsic], numerics: str
) -> Iterator[Variant]:
    """The program with a product's operands held in types of instructions that multiply matrices, which fit it then:
    exactly, or, at `real`, rounded to them."""
    fitting = [i for i in intrinsics if i.accumulates and not i.portable and multiplies_matrices(i)]
    facts = StageFacts(here.program, here.program.stage(stage))
    both, computed, written = both_sides(facts), sides(facts), facts.original.assign.value
    for way in side_types(both, written.dtype, computed, fitting, numerics == "real"):
        types = dict(way.types)
        parts = [s for s in dict.fromkeys(both) if s in computed or s in types]
        try:
            made = factored(facts, written, parts, types)
        except (NoPlace, NotAnUpdate):
            continue
        asked = [i for i in fitting if {*types.values()} <= {o.dtype for o in i.inputs}]
        found = match(made.rewrite.after, asked, numerics, [made.stage.name])
        mappings = [m for answer in found for m in answer.mappings if not m.conditions and not _by_data(m)]
        if mappings:
            plain = [m for m in mappings if not m.adapters] or mappings
            how = plain[0].adapted(made.names, (*made.obligations, *way.lemmas))
            how = how.rounding(tuple(types[s] for s in way.rounded))
            yield Variant(how.program, (), (*here.adapters, *how.adapters), {**here.stages, how.stage.name: how})


def _in_summands(here: Variant, mode: str, intrinsics: Sequence[Intrinsic], numerics: str) -> Iterator[Variant]:
    """One more stage on an instruction whose registers hold matrices, with a factor as summands of its type, for the
    first stage that no such instruction fits otherwise."""
    fitting = [i for i in intrinsics if i.matrices is not None and multiplies_matrices(i)]
    if not fitting or numerics in STRICT:
        return
    for stage in dict.fromkeys(found.stage for found in here.matches):
        known = [usable_as(m, mode) for f in here.matches if f.stage == stage for m in f.mappings]
        if stage in here.stages or any(m is not None and m.intrinsic.matrices is not None for m in known):
            continue
        facts = StageFacts(here.program, here.program.stage(stage))
        variants = [v for side, other, into in _few_digits(facts, fitting)
                    for v in _as_summands(here, facts, side, other, into, fitting, numerics)]  # fmt: skip
        yield from variants
        if variants:
            return


def _few_digits(facts: StageFacts, intrinsics: Sequence[Intrinsic]) -> list[tuple[Value, Value, DType]]:
    """Each factor of a product that has more digits than an instruction takes, with the other one, which has not, and
    the type that the instruction takes for it."""
    found: dict[tuple[Value, Value, DType], None] = {}
    sides = both_sides(facts)
    for i in intrinsics if sides else ():
        if i.accumulator.dtype != facts.original.assign.value.dtype:
            continue
        for (side, other), types in product((sides, sides[::-1]), {tuple(o.dtype for o in i.inputs)}):
            for into, its in dict.fromkeys((types, types[::-1])):
                if holds(other.dtype, its) and not holds(side.dtype, into):
                    found[side, other, into] = None
    return list(found)


def _as_summands(
    here: Variant,
    facts: StageFacts,
    side: Value,
    other: Value,
    into: DType,
    fitting: Sequence[Intrinsic],
    numerics: str,
) -> Iterator[Variant]:
    """The stage with one factor as summands of a type, where an instruction takes it so."""
    try:
        made = in_summands(facts, side, other, into)
    except (NoPlace, NotAnUpdate):
        return
    asked = [i for i in fitting if into in {o.dtype for o in i.inputs}]
    found = match(made.rewrite.after, asked, numerics, [made.stage.name])
    mappings = [m for answer in found for m in answer.mappings if not m.conditions and not _by_data(m)]
    if mappings:
        plain = [m for m in mappings if not m.adapters] or mappings
        met = (what_is_lost(side, into),), *what_zeros_meet(made.rewrite.after, made.zeroed)
        how = plain[0].adapted(made.names, made.obligations).meeting(met)
        yield Variant(how.program, (), (*here.adapters, *how.adapters), {**here.stages, how.stage.name: how})


def _factored(here: Variant, stage: str, intrinsics: Sequence[Intrinsic], numerics: str) -> Variant | None:
    """The program with the expressions among the stage's operands in intermediates of their own, where an instruction
    fits what is left: the stage as it is written, since a float's factors in another order round differently."""
    summing = [i for i in intrinsics if i.accumulates]
    if not summing or stage not in {s.name for s in default_stages(here.program)}:
        return None  # an elementwise stage in parts reads and writes more than it did
    facts = StageFacts(here.program, here.program.stage(stage))
    value = facts.original.assign.value
    try:
        parts = next((p for written, p in factorings(facts) if written == value), ()) or sides(facts)
        made = factored(facts, value, parts) if parts else None
    except (NoPlace, NotAnUpdate):
        return None
    if made is None:
        return None
    found = match(made.rewrite.after, summing, numerics, [made.stage.name])
    fitting = [m for answer in found for m in answer.mappings if not m.conditions and not _by_data(m)]
    native = [m for m in fitting if not m.intrinsic.portable] or fitting
    if not native:
        return None
    plain = [m for m in native if not m.adapters] or native
    how = plain[0].adapted(made.names, made.obligations)
    return Variant(how.program, tuple(found), (*here.adapters, *how.adapters), {**here.stages, how.stage.name: how})
