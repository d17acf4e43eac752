"""From a program to its plans: simplify it, match it, make the plans of all its variants, keep the best."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from autosched.ir.program import Program
from autosched.ir.rewrites.online.members import Cascade, cascades_of
from autosched.ir.rewrites.rewrite import simplify
from autosched.ir.rewrites.unit_dimensions import drop_unit_dimensions
from autosched.ir.rewrites.versions import separate_versions
from autosched.machine.target import Target
from autosched.numerics_levels import DEFAULT_NUMERICS, of_mappings
from autosched.tensorize.adapters.summands import is_summands
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Match
from autosched.tensorize.matcher.match import default_stages, match
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.programs.function import formulas_of
from autosched.tiling.planner.block_body import block_intrinsics, of_block, with_chains
from autosched.tiling.planner.families import (
    NO_BODY,
    NO_NEST,
    NOT_ASKED,
    SLICES,
    asked_for,
    family_of,
    family_of_names,
    with_each_family,
    with_one_of,
    with_plain,
)
from autosched.tiling.planner.held_together import held_together
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.planner.nests import MOST_PLANS, WITHIN
from autosched.tiling.planner.rank import memory_cycles, mostly_by_lanes, plan_cycles
from autosched.tiling.planner.rejections import unplanned
from autosched.tiling.planner.scheme import scheme_of
from autosched.tiling.planner.structure import different_first, structure_of
from autosched.tiling.planner.tile_loops import MemberPlanner
from autosched.tiling.planner.unset import refuse_unset
from autosched.tiling.planner.without_host import refuse_host_work
from autosched.tiling.plans.float_policy import FloatPolicy, fuses
from autosched.tiling.plans.plan import Plan, TileLoopsPart
from autosched.tiling.plans.units import KINDS, NO_UNITS, AcceleratorUnits
from autosched.tiling.steps import is_gpu
from autosched.tiling.variants.adapted import adapted_programs
from autosched.tiling.variants.block_diagonal import block_diagonal_programs
from autosched.tiling.variants.chosen_slices import chosen_programs
from autosched.tiling.variants.conditional import candidates_of, compatible
from autosched.tiling.variants.deferred import BLOCK_TILES, CORE_TILES, deferred_programs
from autosched.tiling.variants.grouped_rows import grouped_programs
from autosched.tiling.variants.in_parts import in_parts_programs
from autosched.tiling.variants.one_hot import one_hot_programs
from autosched.tiling.variants.one_pass import BLOCK_SIZES, SIZES, one_pass_programs
from autosched.tiling.variants.split_reduction import split_programs
from autosched.tiling.variants.stepped import patterns_of, stepped_programs
from autosched.tiling.variants.tiled_stages import tiled_programs
from autosched.tiling.variants.transposed_operands import transposed_programs

MOST_IN_LOOPS = 3
"""Plans of a variant with tile loops, the best first: others differ in stages outside of these, and are not to crowd
out the program as it is written. Beside them so many that name expressions of the whole program."""


@dataclass(frozen=True)
class Planned:
    """`matches`: of the program as given. `plans`: those to search, fewest cycles first. `every`: all plans, since a
    kernel's fallback may be a schedule of one that is not searched. `left_out`: families of plans that were considered,
    each with the reason why none of it is searched."""

    matches: tuple[Match, ...]
    plans: tuple[Plan, ...]
    every: tuple[Plan, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)


def plan_program(
    program: Program,
    target: Target,
    catalogue: Catalogue,
    intrinsics: Sequence[Intrinsic],
    *,
    numerics: str = DEFAULT_NUMERICS,
    conditions: str = "guard",
    threads: int = 1,
    prefix: str = "",
    families: Collection[str] = (),
) -> Planned:
    """Match the program and its variants with `intrinsics`, and make their plans. `catalogue` supplies functions and
    copies; `conditions` is one of `variants.conditional.MODES`; decisions' names begin with `prefix`; plans of other
    `families` are not searched, where some are named. Raises UsageError for a tensor that is written at indices from
    data."""
    units = units_of(target, catalogue)
    refuse_unset(intrinsics, target, units)
    simple, _ = simplify(program)
    inside = None if scheme_of(target) == "spatial" else member_planner(target, catalogue, intrinsics, numerics)
    held = held_together(simple, () if inside else None)
    # Of a body only its plans are looked at, and what loops hold together has none of its own.
    free = [s.name for s in default_stages(simple) if s.name not in held.parts] if prefix else None
    matches = match(simple, intrinsics, numerics=numerics, stages=free)
    policy = float_policy_of(program, target, catalogue, numerics)
    found: list[Plan] = []
    left_out: dict[str, str] = {}
    sizes = BLOCK_SIZES if is_gpu(target) else SIZES
    within = is_gpu(target) and bool(prefix)  # a body is the work of one block
    grids = not within
    typed = is_gpu(target)
    passing = _with_rows(program, simple) if typed else program
    for variant in chain(
        adapted_programs(
            simple, matches, intrinsics, numerics, conditions, beside=within, typed=typed, ones=not target.host
        ),
        split_programs(simple, intrinsics, numerics, policy, threads) if grids else (),
        transposed_programs(simple, matches, numerics) if is_gpu(target) and grids else (),
        block_diagonal_programs(simple, matches, numerics) if is_gpu(target) and grids else (),
        grouped_programs(simple, intrinsics, numerics, conditions, typed) if (typed or not inside) and grids else (),
        deferred_programs(program, intrinsics, numerics, conditions, typed, BLOCK_TILES if typed else CORE_TILES)
        if inside and grids
        else (),
        one_pass_programs(passing, intrinsics, numerics, sizes, is_gpu(target)) if inside else (),
        in_parts_programs(passing, target, intrinsics, numerics, threads) if inside and not prefix else (),
        chosen_programs(simple, intrinsics, numerics) if inside and grids else (),
        one_hot_programs(simple, intrinsics, numerics, conditions, typed) if inside and not prefix else (),
        tiled_programs(simple, target, intrinsics, numerics) if inside and not prefix else (),
        stepped_programs(simple, target, matches, intrinsics, numerics, conditions) if inside is None else (),
    ):
        usable = variant.certified(candidates_of(variant.matches, conditions))
        known = held if variant.program is simple and not variant.loops else None
        plans = make_plans(variant.program, target, usable, threads, policy, inside, prefix, variant.loops, known)
        if variant.loops:  # what their loops hold is worth it where it has plans of its own
            family = family_of_names(r.name for r in variant.rewrites)
            plans = [p for p in plans if _worth_its_loops(p, family)][:MOST_IN_LOOPS]
            if not plans:
                left_out[family] = NO_NEST if family == SLICES else NO_BODY
        found += [variant.named(p) for p in plans if set(variant.stages) <= p.stages_on_intrinsics]
    cycles = {id(p): plan_cycles(p, lanes_store=typed and grids) for p in found}
    every = compatible(program, sorted(found, key=lambda p: cycles[id(p)]))
    if units is not NO_UNITS:
        every = _with_units(every, units, cycles)
        own = [i for i in intrinsics if i.isa == target.isa]
        stuck = partial(unplanned, matches, (), target, conditions, [i.name for i in own])
        every = refuse_host_work(every, target, patterns_of(own, target), program, stuck, known=bool(own))
    asked = [p for p in every if asked_for(p, families)]
    asked = _few_stored(asked, prefix) if is_gpu(target) else asked
    near = [p for p in asked if cycles[id(p)] <= WITHIN * cycles[id(asked[0])]]
    if not any(map(_only_sums, near)):  # vector code of bytes takes fewer cycles than it is ranked by
        near += [p for p in asked if _only_sums(p)][:1]
    if len(asked) > MOST_PLANS and not prefix:  # of a body the first plan is taken
        turn = different_first(near, structure_of, lambda p: cycles[id(p)])
        chosen = with_each_family(with_chains(turn[:MOST_PLANS], asked), asked, cycles)
        best = [p for p in asked if any(p is c for c in chosen)]
    else:
        best = asked[:MOST_PLANS]
    best = best if prefix else with_plain(best, asked, MOST_PLANS)
    if not prefix:  # of a body they stay in a cache
        best = with_one_of(best, [p for p in asked if not _stores_summands(p)], MOST_PLANS)
    if is_gpu(target) and not prefix:
        fast = [p for p in asked if cycles[id(p)] <= memory_cycles(program, target) and mostly_by_lanes(p)]
        best = with_one_of(best, fast, MOST_PLANS)
    left_out |= _passed_over(best, asked, cycles) if asked else {}
    left_out |= {family_of(p): NOT_ASKED for p in every if not asked_for(p, families)}
    return Planned(tuple(matches), tuple(best), tuple(every), left_out)


def _with_rows(program: Program, simple: Program) -> Program:
    """The program without dimensions of one element, so that the last rows of a pass are some that tiles can share; as
    it is, where no rows are left then."""
    made = drop_unit_dimensions(simple)
    if made is None:
        return program
    found = cascades_of(separate_versions(made.after).program)
    return made.after if any(isinstance(c, Cascade) and c.rows for c in found) else program


def _with_units(plans: Sequence[Plan], units: AcceleratorUnits, cycles: dict[int, float]) -> list[Plan]:
    """The plans with an accelerator's units. `cycles` takes the new ones."""
    placed = [p.on_units(units) for p in plans]
    cycles |= {id(new): cycles[id(old)] for new, old in zip(placed, plans, strict=True)}
    return placed


def _few_stored(plans: Sequence[Plan], prefix: str) -> list[Plan]:
    """The plans without most of those that store expressions of the whole program as operands, where others compute
    these in tile loops: what storing all of them costs is not in the cycles that plans are ranked by."""
    if prefix or not any(p.in_tile_loops for p in plans):
        return list(plans)
    plain = [p for p in plans if not p.in_tile_loops and len(p.parts) > 1]  # of one part nothing is stored between
    named = [p for p in plain if any(a.startswith("factor ") for m in p.mappings for a in m.adapters)]
    late = {id(p) for p in named[MOST_IN_LOOPS:]}
    return [p for p in plans if id(p) not in late]


def _only_sums(plan: Plan) -> bool:
    """Whether none of its instructions overwrites its target."""
    return all(t.nest.intrinsic.accumulates for t in plan.tensor_parts)


def _stores_summands(plan: Plan) -> bool:
    """Whether summands of all of a factor are stored: what memory costs is not in the cycles that plans are ranked by.
    A batch of products that share nothing took 1.5 times as long with them as converted on the way (8 x 512x64x512)."""
    return any(is_summands(a) for t in plan.own_tensor_parts for a in t.nest.mapping.adapters)


def _worth_its_loops(plan: Plan, family: str) -> bool:
    """Whether its loops are laid out as tile loops; of slices that data choose, around a nest: vectors gather without
    such loops."""
    held = [p for p in plan.parts if isinstance(p, TileLoopsPart)]
    return any(p.member.tensor_parts for p in held) if family == SLICES else bool(held)


def _passed_over(best: Sequence[Plan], every: Sequence[Plan], cycles: Mapping[int, float]) -> dict[str, str]:
    """Families of which plans were made and none is among the best, with the reason."""
    chosen, said = {family_of(p) for p in best}, dict[str, str]()
    for plan in every:  # the fewest cycles first
        family, times = family_of(plan), cycles[id(plan)] / max(cycles[id(every[0])], 1.0)
        if family not in chosen and family not in said:
            far = f"its plans take {times:.3g} times the cycles of the best plan; up to {WITHIN:g} times are searched"
            many = f"{MOST_PLANS} plans of other kinds take fewer cycles, and no more are searched"
            said[family] = far if times > WITHIN else many
    return said


def member_planner(
    target: Target, catalogue: Catalogue, intrinsics: Sequence[Intrinsic], numerics: str
) -> MemberPlanner:
    """Plans bodies of tile loops: these take no data that break a condition, one thread runs them, and they are not
    rewritten again."""
    level = of_mappings(numerics)

    def plan(body: Program, prefix: str) -> tuple[Plan, ...]:
        sums = {s.assign.value.dtype for s in body.stages if s.reduction}
        # Others take time to refuse.
        fitting = [
            i for i in intrinsics if i.kind == "compute" and i.accumulates and i.stage.assign.value.dtype in sums
        ]
        if is_gpu(target):
            body, fitting = of_block(body), block_intrinsics(fitting)
        found = plan_program(body, target, catalogue, fitting, numerics=level, conditions="refuse", prefix=prefix)
        return found.plans

    return plan


def units_of(target: Target, catalogue: Catalogue) -> AcceleratorUnits:
    """What the catalogue describes of an accelerator beside its array."""
    if scheme_of(target) != "spatial":
        return NO_UNITS
    found = (catalogue.of_isa(target.isa, features=target.features, kind=kind) for kind in KINDS)
    return AcceleratorUnits.of(chain.from_iterable(found), target)


def float_policy_of(program: Program, target: Target, catalogue: Catalogue, numerics: str) -> FloatPolicy:
    """What scalar stages may change of a float's bits: nothing at `bitwise`, else sums in any order, and the functions
    that the catalogue describes for this target; only at `real` those that round their arguments."""
    if numerics == "bitwise":
        return FloatPolicy(reassociate=False)
    if not fuses(target) or not any(s.calls for s in program.stages):
        return FloatPolicy()  # the program calls no function that could be replaced: build none
    isas = target.isa, "portable"  # a target's own first
    known = (i for isa in isas for i in catalogue.of_isa(isa, features=target.features, kind="function"))
    return FloatPolicy(formulas=formulas_of(known, anew=numerics == "real"))
