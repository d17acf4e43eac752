"""Plans of a program: which mapping computes each stage, what is fused behind it, and the space that leaves.

Stages that dependences hold together stay as written. A stage with a mapping becomes a tensor part; elementwise stages
right behind it that read nothing but its own element are fused; what is left runs as scalar code.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, islice, product, takewhile

from autosched.errors import UsageError
from autosched.ir.formula import apply_formulas
from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.ir.rewrites.inline import inline_intermediates
from autosched.ir.rewrites.reuse import keep_common
from autosched.ir.value import is_value
from autosched.logic import TRUE
from autosched.machine.target import Target
from autosched.tensorize import match_types
from autosched.tiling.analysis.accesses import all_reads
from autosched.tiling.analysis.dependence import Dependences
from autosched.tiling.analysis.join_loops import join_loops
from autosched.tiling.analysis.nontemporal import nontemporal_store
from autosched.tiling.planner.added_groups import with_group_sums
from autosched.tiling.planner.computed_operands import on_the_way
from autosched.tiling.planner.held_together import HeldStages, held_together
from autosched.tiling.planner.nests import MOST_PLANS, usable_nests, with_scalar
from autosched.tiling.planner.rank import least_cycles
from autosched.tiling.planner.scheme import scheme_of
from autosched.tiling.planner.structure import NEAR, of_nest
from autosched.tiling.planner.tile_loops import Held, MemberPlanner, tile_loops
from autosched.tiling.plans.asked_once import asked_once
from autosched.tiling.plans.epilogue import epilogue_chain, fusable_start
from autosched.tiling.plans.fallback import scalar_fallback
from autosched.tiling.plans.float_policy import FloatPolicy, fuses
from autosched.tiling.plans.fused_loops import fused_loops_parts
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.plan import (
    Fused,
    FusedLoopsPart,
    Part,
    Plan,
    ScalarPart,
    TensorPart,
    TileLoopsPart,
    WarpCooperativePart,
)
from autosched.tiling.plans.scalar_parts import scalar_part
from autosched.tiling.plans.teams import team_parts, waits_for_memory
from autosched.tiling.space.space import Space
from autosched.tiling.steps import StepNames, is_gpu
from autosched.tiling.steps.part_steps import part_steps

MOST_COMBINED = 1 << 12
"""Combinations of unlike nests, one for each stage, that are looked at before all others."""


def make_plans(
    program: Program,
    target: Target,
    mappings: Mapping[str, Sequence[match_types.Mapping]],
    threads: int = 1,
    policy: FloatPolicy = FloatPolicy(),
    members: MemberPlanner | None = None,
    prefix: str = "",
    loops: Collection[str] = (),
    held: HeldStages | None = None,
) -> list[Plan]:
    """The plans, at least one: that of the least cycles, and of the others those that differ in more than the width of
    their instructions (`planner.structure`) first.

    `mappings` holds the candidates of each stage, `policy` what scalar stages may change of a float's bits. A stage
    without a usable mapping runs as scalar code. A mapping with conditions gets a plan, with a check and a fallback,
    if it takes fewer cycles than every mapping without. `members` plans the bodies of tile loops; without it stages
    that dependences hold together stay as written. The outermost loops named in `loops` stay around their statements;
    `held` is what `held_together` says of the program, where that is known.
    Decisions' names begin with `prefix`. Raises UsageError for a tensor that is written at indices from data: no kernel
    can do that.
    """
    _check_writes(program)
    held_stages = held or held_together(program, loops if members else None)
    dependences, literal, prepared = held_stages.dependences, held_stages.parts, program.prepared
    workers = threads > 1 or is_gpu(target)
    kept_in: Sequence[Held] = [literal]
    if members:
        kept_in = tile_loops(program, literal, members, prefix, workers, loops, is_gpu(target))
    choices: list[list[Nest | None]] = []
    stages = [s for s in program.stages if s.name not in literal and s.assign.tensor not in prepared]
    for stage in stages:
        nests = usable_nests(stage, mappings.get(stage.name, ()), dependences, target)
        beside = is_gpu(target) and waits_for_memory(program, stage, dependences, target, policy)
        choices.append([None, *nests] if beside else with_scalar(program, stage, nests, dependences, target))
    plans: list[Plan] = []
    adding: set[Hashable] = set()
    choices = _without_passes(program, stages, choices, literal, policy, _passes_on(target))
    within = is_gpu(target) and prefix
    ordered = _each_once(chain(_of_one_scope(choices), _best_first(choices))) if within else _best_first(choices)
    for chosen, kept in product(islice(ordered, MOST_PLANS + 1), kept_in):
        mapped = {s.name: n for s, n in zip(stages, chosen, strict=True) if n is not None}
        layout = _PlanLayout(program, target, mapped, kept, dependences, threads, policy, prefix, mappings)
        joined = layout.plan(rows=True)
        plans.append(joined)
        # Bodies of a block name their slices themselves.
        computing = () if within else tuple(on_the_way(program, mapped, target, policy.formulas))
        ways = () if within else (mapped, *computing)
        grouped = [(n, with_group_sums(program, n, dependences, literal, target)) for n in ways]
        for way, added in grouped:  # the choice for a stage whose work another nest takes over makes no other plan
            if added is not None and (key := _without_adding(way, added)) not in adding:
                adding.add(key)
                plans.append(replace(layout, nests=added).plan(rows=True))
        plans += [replace(layout, nests=n).plan(rows=True) for n in computing]
        if len(plans) >= MOST_PLANS:
            break  # those that follow are cut off below
        if not mapped and any(_joins_stages(p) for p in joined.parts):
            plans.append(layout.plan(rows=False))
    if any(not p.tensor_parts for p in plans) and not is_gpu(target):
        inlined = inline_intermediates(program)
        for rewrite in (inlined,) if inlined else (join_loops(program), keep_common(program)):
            if rewrite is not None:
                others = make_plans(rewrite.after, target, {}, threads, policy, prefix=prefix)
                if any(not t.nest.intrinsic.accumulates for p in plans for t in p.tensor_parts):
                    plans = plans[: max(1, MOST_PLANS - len(others))]
                plans += [replace(plan, name=f"{plan.name} [{rewrite.name}]") for plan in others]
    return _unique(plans)[:MOST_PLANS]


def _without_adding(nests: Mapping[str, Nest], added: Mapping[str, Nest]) -> Hashable:
    """What the nests with sums of groups are made of."""
    made = {n for n, nest in added.items() if nest.groups is not None}
    kept = ((n, nest) for n, nest in nests.items() if n not in made)
    return tuple((n, id(nest.mapping), tuple(c.title for c in nest.computed.values())) for n, nest in kept)


def _without_passes(
    program: Program,
    stages: Sequence[Stage],
    choices: Sequence[list[Nest | None]],
    elsewhere: Collection[str],
    policy: FloatPolicy,
    through: bool = False,
) -> list[list[Nest | None]]:
    """The choices without instructions that overwrite their target for stages that may follow on each finished sum of
    another: that saves a pass over memory, which no instruction is worth."""
    summing: dict[str, Nest] = {}
    for stage, choice in zip(stages, choices, strict=True):
        first = next((n for n in choice if n is not None and n.intrinsic.accumulates), None)
        summing |= {} if first is None else {stage.name: first}
    behind = _behind(program, summing, elsewhere, policy, through)
    for stage, choice in zip(stages, choices, strict=True) if through else ():
        if stage.name not in behind and stage.name not in summing and choice[0] is not None:
            summing[stage.name] = choice[0]  # it comes first of those that follow on each other
            behind = _behind(program, summing, elsewhere, policy, through)
    return [
        [n for n in choice if n is None or n.intrinsic.accumulates] or [None] if stage.name in behind else choice
        for stage, choice in zip(stages, choices, strict=True)
    ]


def _joins_stages(part: Part) -> bool:
    return isinstance(part, FusedLoopsPart) or (isinstance(part, WarpCooperativePart) and len(part.members) > 1)


def _best_first(choices: Sequence[Sequence[Nest | None]]) -> Iterator[tuple[Nest | None, ...]]:
    """All combinations of one choice for each stage, those of early (good) choices first; and before others those of
    nests that differ in more than the width of their instructions, as far as their cycles are near the least."""
    least = [min((least_cycles(n) for n in choice if n is not None), default=0.0) for choice in choices]

    def near(combined: tuple[Nest | None, ...]) -> bool:
        cycles = (m if n is None else least_cycles(n) for n, m in zip(combined, least, strict=True))
        return sum(cycles) <= NEAR * sum(least)  # scalar code counts as the best nest beside it

    # As vector code, stages on instructions that overwrite may share loops: that is looked at next.
    best = tuple(c[0] for c in choices)
    shared = tuple(next((n for n in c if n is None or n.intrinsic.accumulates), c[0]) for c in choices)
    first = (best, shared) if tuple(map(id, shared)) != tuple(map(id, best)) else ()
    unlike = islice(_combined(choices, [_different(c) for c in choices]), MOST_COMBINED)
    every = _combined(choices, [range(len(c)) for c in choices])
    yield from _each_once(chain(first, filter(near, unlike), every))


def _of_one_scope(choices: Sequence[Sequence[Nest | None]]) -> Iterator[tuple[Nest | None, ...]]:
    """Combinations of nests on instructions of one scope, for each scope but threads: such nests may hand on what they
    compute in registers. Of a stage the best nest of each way round comes into question."""
    scopes = dict.fromkeys(n.intrinsic.scope for choice in choices for n in choice if n is not None)
    for scope in (s for s in scopes if s != "thread"):
        own = [_ways_round([n for n in choice if n is not None and n.intrinsic.scope == scope]) for choice in choices]
        if sum(map(bool, own)) > 1:
            yield from product(*(nests or choice[:1] for nests, choice in zip(own, choices, strict=True)))


def _ways_round(nests: Sequence[Nest]) -> list[Nest]:
    """The first of the nests that have the same axes on the same lanes, for up to two such ways."""
    found: dict[Hashable, Nest] = {}
    for nest in nests:
        lanes = ((a.intrinsic_axis, tuple(m for m, _, n in a.members if n > 1)) for a in nest.lanes)
        found.setdefault(frozenset(lanes), nest)
    return [*found.values()][:2]


def _each_once(combined: Iterable[tuple[Nest | None, ...]]) -> Iterator[tuple[Nest | None, ...]]:
    seen: set[tuple[int, ...]] = set()
    for chosen in combined:
        key = tuple(map(id, chosen))
        if key not in seen:
            seen.add(key)
            yield chosen


def _different(choice: Sequence[Nest | None]) -> list[int]:
    """The places of the nests of a stage that are unlike all before them."""
    first: dict[Hashable, int] = {}
    for k, nest in enumerate(choice):
        first.setdefault(of_nest(nest), k)
    return list(first.values())


def _combined(
    choices: Sequence[Sequence[Nest | None]], places: Sequence[Sequence[int]]
) -> Iterator[tuple[Nest | None, ...]]:
    """Combinations of one nest a stage, by the sum of their places; lazy, since there are many."""
    for total in range(sum(max(p) for p in places) + 1):
        for place in _of_sum(places, total):
            yield tuple(c[k] for c, k in zip(choices, place, strict=True))


def _of_sum(places: Sequence[Sequence[int]], total: int) -> Iterator[tuple[int, ...]]:
    """The combinations of one place each that sum up to `total`, in the order of the first that differs."""
    if not places:
        if total == 0:
            yield ()
        return
    first, *rest = places
    most = sum(max(p) for p in rest)
    for place in first:
        if place <= total <= place + most:
            yield from ((place, *others) for others in _of_sum(rest, total - place))


def _check_writes(program: Program) -> None:
    for stage in program.stages:
        if any(is_value(i) for i in stage.assign.index):
            raise UsageError(
                f"{stage.assign.tensor} is written at indices from data (a scatter), and no kernel can do that",
                hint="reads at indices from data (gathers) are fine; only the interpreter runs scatters",
                location=stage.assign.location,
            )


@dataclass(frozen=True)
class _PlanLayout:
    """One choice of a nest (or none) for each stage of a program."""

    program: Program
    target: Target
    nests: dict[str, Nest]
    literal: Held
    dependences: Dependences
    threads: int
    policy: FloatPolicy
    prefix: str = ""
    mappings: Mapping[str, Sequence[match_types.Mapping]] = field(default_factory=dict)

    def plan(self, rows: bool) -> Plan:
        """Its parts in order; with `rows`, scalar stages that can share loops do."""
        parts = self.joined(self.parts()) if rows else self.parts()
        if is_gpu(self.target):
            parts = self.teams(parts, rows)
        titled = [p for p in parts if isinstance(p, TensorPart | FusedLoopsPart | WarpCooperativePart | TileLoopsPart)]
        title = "; ".join(p.title for p in titled) or "scalar"
        space = Space(title, part_steps(parts, self.program, self.target, self.threads))
        return Plan(title, self.program, self.target, tuple(parts), space, formulas=self.policy.formulas)

    def parts(self) -> list[Part]:
        program, target = self.program, self.target
        prepared = program.prepared
        computed = {s for nest in self.nests.values() for s in nest.never_stored}
        fused = _fused(program, self.nests, {*self.literal, *computed}, self.policy, _passes_on(target))
        if scheme_of(target) == "spatial":
            fused = {name: tuple(map(self.finishing, group)) for name, group in fused.items()}
        behind = {f.stage.name for group in fused.values() for f in group}
        starts = self.starts({*self.literal, *computed, *behind}, fused)
        joined = behind | {f.stage.name for f in starts.values()}
        settled = {s.name for s in program.stages if s.assign.tensor in prepared} | joined | computed
        many = len([s for s in program.stages if s.name not in settled and s.name not in self.literal]) > 1
        parts: list[Part] = []
        for stage in program.stages:
            if stage.name in joined | computed:
                continue
            names = StepNames(f"{self.prefix}{stage.name}." if many or self.prefix else "")
            if stage.name in self.literal:
                if not any(p is self.literal[stage.name] for p in parts):
                    parts.append(self.literal[stage.name])
            elif stage.assign.tensor in prepared:
                serial = not is_gpu(target)
                own = StepNames(f"{self.prefix}{stage.name}.")
                once = scalar_part(program, stage, own, self.dependences, serial=serial)
                once = replace(once, prepared=True, across=None, rows=None, blocked=None)
                parts.append(replace(once, scheme="gpu") if is_gpu(target) else replace(once, parallel=False))
            elif stage.name in self.nests:
                keep = _kept(program, stage, fused[stage.name])
                scheme = scheme_of(target)
                start = starts.get(stage.name)
                tensor = TensorPart(self.nests[stage.name], names, fused[stage.name], keep, scheme, start=start)
                if tensor.nest.mapping.conditions:
                    stages = tensor.computed_stages
                    fallback = scalar_fallback(program, stages, self.dependences, self.threads, self.policy)
                    tensor = replace(tensor, fallback=fallback)
                parts.append(tensor)
            else:
                parts.append(self.scalar(stage, names))
        return parts

    def finishing(self, fused: Fused) -> Fused:
        """A stage on finished sums with the instruction of the accelerator that computes it there, where one does: the
        fastest for an element."""
        proved = [
            m
            for m in self.mappings.get(fused.stage.name, ())
            if not m.intrinsic.accumulates and not m.conditions and m.intrinsic.isa == self.target.isa
            if not m.intrinsic.held  # nothing loads a state on the way out
        ]
        speed = self.target.issues
        best = min(proved, key=lambda m: 1 / speed(m.intrinsic) / m.intrinsic.accumulator.elements, default=None)
        return replace(fused, proved=best)

    def starts(self, elsewhere: Collection[str], behind: Mapping[str, tuple[Fused, ...]]) -> dict[str, Fused]:
        """For tensorized stages of a CPU, the last stage in front that makes the values which their sums begin with,
        where it is not computed `elsewhere`; `behind` are the stages fused with each."""
        if scheme_of(self.target) != "cpu":
            return {}
        stages, found = self.program.stages, dict[str, Fused]()
        for k, stage in enumerate(stages):
            if stage.name not in self.nests or self.nests[stage.name].written != TRUE:
                continue
            if not self.nests[stage.name].intrinsic.accumulates:
                continue  # it begins with nothing
            first = next((n for n in reversed(range(k)) if stages[n].assign.tensor == stage.assign.tensor), None)
            if first is None or stages[first].name in self.nests or stages[first].name in elsewhere:
                continue
            fused = [f.stage for f in behind[stage.name]]
            axes = fusable_start(stages[first], stage, stages[first + 1 : k], fused)
            if axes is not None:
                found[stage.name] = Fused(_with_formulas(stages[first], self.policy), axes)
        return found

    def scalar(self, stage: Stage, names: StepNames) -> ScalarPart:
        if is_gpu(self.target):
            exact = FloatPolicy(reassociate=False)
            part = scalar_part(self.program, stage, names, self.dependences, exact, serial=False)
            # A thread asks for each element: lanes of a vector would compute for all where one is to be computed.
            vector = None if asked_once(stage) else part.vector
            return replace(part, scheme="gpu", vector=vector, across=None, rows=None, blocked=None, by_rows=self.policy)
        part = scalar_part(self.program, stage, names, self.dependences, self.policy, fuses(self.target))
        store = nontemporal_store(self.program, (stage,), (), self.target) if part.vector else None
        return replace(part, nontemporal=store)

    def teams(self, parts: list[Part], join: bool) -> list[Part]:
        """The parts with runs of scalar ones as the work of teams, where teams can do it."""
        result: list[Part] = []
        for scalar, run in groupby(parts, lambda p: isinstance(p, ScalarPart) and not p.prepared):
            if scalar:
                stages = [p for p in run if isinstance(p, ScalarPart)]
                result += team_parts(self.program, stages, self.dependences, self.policy, join)
            else:
                result += run
        return result

    def joined(self, parts: list[Part]) -> list[Part]:
        """The parts with each run of scalar ones joined where they can share loops."""
        result: list[Part] = []
        run: list[ScalarPart] = []
        for part in parts:
            if isinstance(part, ScalarPart) and not part.prepared:
                run.append(part)
            else:
                result += [*fused_loops_parts(self.program, run, self.target), part]
                run = []
        return [*result, *fused_loops_parts(self.program, run, self.target)]


def _behind(
    program: Program, nests: dict[str, Nest], elsewhere: Collection[str], policy: FloatPolicy, through: bool
) -> set[str]:
    """The stages that may follow on what these nests finish."""
    groups = _fused(program, nests, elsewhere, policy, through)
    return {f.stage.name for group in groups.values() for f in group}


def _passes_on(target: Target) -> bool:
    """Whether what follows on finished sums may follow on each other's results: on a chip all of it is instructions."""
    return scheme_of(target) == "spatial" and not target.host


def _fused(
    program: Program,
    nests: dict[str, Nest],
    elsewhere: Collection[str],
    policy: FloatPolicy,
    through: bool = False,
) -> dict[str, tuple[Fused, ...]]:
    """For each tensorized stage, the run of stages right behind it that may use its result in registers, up to one that
    is computed `elsewhere`. Functions with a formula are computed by it there: vectors are at hand."""
    stages = program.stages
    by_name = {s.name: _with_formulas(s, policy) for s in stages}
    fused: dict[str, tuple[Fused, ...]] = {}
    for k, stage in enumerate(stages):
        if stage.name in nests:
            if not nests[stage.name].intrinsic.accumulates and nests[stage.name].guard != TRUE:
                fused[stage.name] = ()  # an element that a guard leaves as it was is not at hand
                continue
            behind = list(takewhile(lambda s: s.name not in nests and s.name not in elsewhere, stages[k + 1 :]))
            chain = epilogue_chain(stage, behind, through)
            groups = nests[stage.name].groups
            own = {} if groups is None else groups.axes
            # What other blocks still read, and sums that each stage takes anew.
            taken = set() if groups is None else {r.tensor for r in program.stage(groups.stage).reads}
            if nests[stage.name].intrinsic.matrices is not None or through:
                taken.add(stage.assign.tensor)
            others = (by_name[e.consumer].assign.tensor not in taken for e in chain)
            chain = tuple(e for e, _ in zip(chain, takewhile(bool, others), strict=False))
            fused[stage.name] = tuple(Fused(by_name[e.consumer], {c: own.get(p, p) for p, c in e.axes}) for e in chain)
    return fused


def _with_formulas(stage: Stage, policy: FloatPolicy) -> Stage:
    return replace(stage, assign=replace(stage.assign, value=apply_formulas(stage.assign.value, policy.formulas)))


def _kept(program: Program, stage: Stage, fused: tuple[Fused, ...]) -> bool:
    """Whether the accumulated tensor must reach memory: an output, used by a stage that is not fused, or by none."""
    tensor = stage.assign.tensor
    if not program.tensors[tensor].intermediate or all(f.stage.assign.tensor == tensor for f in fused):
        return True
    behind = {f.stage.name for f in fused}
    others = (s for s in program.stages if s.name not in behind | {stage.name})
    return any(r.tensor == tensor for s in others for r in all_reads(s))


def _unique(plans: list[Plan]) -> list[Plan]:
    """Plans with distinct names: a second mapping of the same axes (other operand roles) gets a number."""
    seen: dict[str, int] = {}
    result = []
    for plan in plans:
        seen[plan.name] = seen.get(plan.name, 0) + 1
        n = seen[plan.name]
        result.append(plan if n == 1 else replace(plan, name=f"{plan.name} ({n})"))
    return result
