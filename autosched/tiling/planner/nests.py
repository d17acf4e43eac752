"""The nests of a stage that are worth laying out, of all that its mappings allow, and why others are not."""

from __future__ import annotations

from bisect import insort
from collections.abc import Hashable, Sequence

from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.ir.value import Read
from autosched.logic import TRUE, Var, free_vars
from autosched.machine.target import Target
from autosched.tensorize import match_types
from autosched.tiling.analysis.dependence import Dependences
from autosched.tiling.planner.rank import SCALAR_MARGIN, issue_cycles, least_cycles, rankings, scalar_cycles
from autosched.tiling.planner.scheme import scheme_of
from autosched.tiling.plans.fallback import checkable
from autosched.tiling.plans.nest import Nest, make_nest
from autosched.tiling.plans.scalar_parts import scalar_part
from autosched.tiling.plans.windowed_operands import group_of, not_chosen, unmet
from autosched.tiling.steps import StepNames, is_gpu
from autosched.tiling.steps.common.register_tile import one_tile_fits
from autosched.tiling.steps.cpu.pack import PANEL_GROWTH, fillable

SCOPES = ("thread", "warp", "warpgroup", "core")
MOST_PLANS = 12
"""Plans of a program, and nests of a stage, that are laid out: more share the trials of a study too thinly, and each
costs about a second before the first trial."""
MOST_CHECKED = 4
"""Mappings of a stage that are laid out with checks: they must not crowd out those that need none."""
WITHIN = 4.0
"""A mapping that takes this many times the best mapping's cycles at least (`least_cycles`) is not laid out."""


def usable_nests(
    stage: Stage, mappings: Sequence[match_types.Mapping], dependences: Dependences, target: Target
) -> list[Nest]:
    """The nests of a stage's mappings that are laid out, those of fewest cycles first."""
    found = dependences.stage(stage.name)
    if found.of_kind("serial"):
        return []
    nests = _worth_placing(mappings, target)
    least = {id(n): least_cycles(n) for n in nests}
    nests.sort(key=lambda n: least[id(n)])
    free = [n for n in nests if not n.mapping.conditions]
    best = least[id(free[0])] if free else float("inf")
    asking = [n for n in nests if n.mapping.conditions and least[id(n)] < best]

    def near(group: list[Nest]) -> list[Nest]:
        return _distinct([n for n in group if least[id(n)] <= WITHIN * least[id(group[0])]])

    chosen = [*near(free), *near(asking)[:MOST_CHECKED]]
    orders = [sorted(chosen, key=lambda n: least_cycles(n, ranking)) for ranking in rankings(target)]
    first = {id(n): n for turn in zip(*orders, strict=True) for n in turn}  # of each ranking in turn
    return sorted([*first.values()][:MOST_PLANS], key=lambda n: least[id(n)])


def _worth_placing(mappings: Sequence[match_types.Mapping], target: Target) -> list[Nest]:
    """The nests of these mappings, in their order, but for those that issuing alone makes too slow to be laid out by
    every ranking, and those that tie with one before them."""
    nests = [_nest_of(m) for m in mappings]
    placed: dict[int, Nest | str] = {}
    found: dict[int, Nest] = {}
    for ranking in rankings(target):
        issue = [0.0 if n is None else issue_cycles(n, ranking) for n in nests]
        ties: set[Hashable] = set()
        least: list[float] = []  # of those without conditions, in order
        for k in sorted(range(len(mappings)), key=issue.__getitem__):
            full = len(least) >= MOST_PLANS and issue[k] > least[MOST_PLANS - 1]
            if least and (issue[k] > WITHIN * least[0] or full):
                break
            bare = nests[k]
            tie = None if bare is None else (_shape(bare), tuple(c.text for c in bare.mapping.conditions))
            if bare is None or tie in ties:
                continue
            nest = placed[k] = placed.get(k) or nest_or_reason(mappings[k], target, bare)
            if isinstance(nest, Nest):
                found[k] = nest
                ties.add(tie)
                if not nest.mapping.conditions:
                    insort(least, least_cycles(nest, ranking))
    return [found[k] for k in sorted(found)]


def _nest_of(mapping: match_types.Mapping) -> Nest | None:
    """Its nest, wherever guards are held; None where it has none."""
    try:
        return make_nest(mapping)
    except (ValueError, LookupError):
        return None


def nest_or_reason(mapping: match_types.Mapping, target: Target, made: Nest | None = None) -> Nest | str:
    """The nest of a mapping on a target (`made`, where that has been made), or why there is none."""
    if mapping.intrinsic.scope not in SCOPES:
        return f"there are no kernels yet for instructions of a {mapping.intrinsic.scope}"
    if mapping.conditions and (said := unchecked(mapping, target)):
        return said
    try:
        nest = made or make_nest(mapping)
        _ = nest.placed_guards  # raises where a guard cannot be held
    except (ValueError, LookupError) as error:
        return f"no nest holds it: {error}"
    if not nest.intrinsic.accumulates and nest.intrinsic.matrices is not None:
        return "instructions that overwrite their target have no kernels in registers that hold matrices"
    assign = nest.stage.assign
    if target.host and not nest.intrinsic.accumulates and assign.op == "=" and isinstance(assign.value, Read):
        # Where there is a host. The greater of an element and itself copies, too.
        return "the stage copies: loads and stores do that alone"
    if said := _not_lanes(nest, target):
        return said
    if nest.intrinsic.held and scheme_of(target) != "spatial":
        return f"its {nest.intrinsic.held[0].name} is in a state: only kernels of chips with scratchpads load one"
    if scheme_of(target) != "cpu":
        if nest.stepped != TRUE:
            return "steps are left out of the lanes of a CPU's vectors only"
        if mapping.fills and is_gpu(target):
            return "fragments are filled with zeros only"
        if is_gpu(target) and (one := [o.name for o in nest.intrinsic.inputs if not nest.operand_axes(o.name)]):
            return f"all of {one[0]} is one element, which lanes of warps read by themselves"
        if nest.intrinsic.accumulator.opaque is not None and _drops_elements(nest):
            return "nobody knows which lane holds which of the sums, some of which a guard drops"
        return nest
    if nest.intrinsic.matrices is not None:
        if nest.accumulate_mask != TRUE:
            return "sums that a guard drops, in registers that are not read lane by lane"
        if said := _not_loaded(nest):
            return said
    return nest if one_tile_fits(nest, target) else "one tile needs more registers than the target has"


def _not_lanes(nest: Nest, target: Target) -> str:
    """Why elements of a register have no places in the program; nothing where they have."""
    if said := unmet(nest.intrinsic):
        return said
    windows = nest.intrinsic.windows
    if nest.intrinsic.parts and scheme_of(target) != "gpu":
        return f"elements of {next(iter(nest.intrinsic.parts))} that data select: only fragments on GPUs are filled so"
    sums = [o for o, index in windows.items() if not all(isinstance(p, Var) or group_of(p) for p in index)]
    if (sums and scheme_of(target) == "gpu") or (windows and nest.intrinsic.matrices is not None):
        said = next(iter(sums or windows))
        return f"{said} is windowed: only lanes of a CPU's vectors and scratchpads are filled so"
    return next((said for o in windows if (said := not_chosen(nest, o))), "")


def _not_loaded(nest: Nest) -> str:
    """Why registers that hold matrices cannot be filled; nothing where they can."""
    copied = [o.name for o in nest.intrinsic.inputs if not fillable(nest, o.name)]
    return f"a panel of {copied[0]} would hold each element more than {PANEL_GROWTH} times" if copied else ""


def _drops_elements(nest: Nest) -> bool:
    """Whether a guard drops some of the sums of one call."""
    inside = {member for a in nest.spatial if a.intrinsic_axis for member, _, _ in a.members}
    return bool(free_vars(nest.accumulate_mask) & inside)


def unchecked(mapping: match_types.Mapping, target: Target) -> str | None:
    """Why a mapping's conditions cannot be checked at run time; None where they can."""
    if not checkable(mapping.program, mapping):
        return f"no kernel can check {' and '.join(c.text for c in mapping.conditions)}"
    return "only CPU kernels have checks" if scheme_of(target) != "cpu" else None


def _distinct(nests: list[Nest]) -> list[Nest]:
    """Nests without those that another intrinsic equals in shape, operands and timing: their kernels would tie.

    By the stated timing, since two measurements of one speed differ in their last digits.
    """
    seen = set()
    kept = []
    for nest in nests:
        if (shape := _shape(nest)) not in seen:
            seen.add(shape)
            kept.append(nest)
    return kept


def _shape(nest: Nest) -> Hashable:
    """What two nests have in common whose kernels would tie."""
    operands = tuple((o.dtype.name, o.shape) for o in nest.intrinsic.operands.values())
    axes = tuple((tuple(m for m, _, n in a.members if n > 1), a.unit) for a in nest.axes if a.extent > 1)
    roles = tuple(str(r.index) + r.tensor for r in nest.mapping.operands.values())
    states = tuple(o.state for o in nest.intrinsic.inputs)
    return operands, axes, roles, states, nest.intrinsic.timing.get("interval")


def with_scalar(
    program: Program, stage: Stage, nests: list[Nest], dependences: Dependences, target: Target
) -> list[Nest | None]:
    """The nests of a stage, and the scalar path (None) where no nest without conditions is there, or none is sure to
    beat vector code: what an instruction saves may be spent on copies that bring its operands together, as for a
    depthwise sum on a dot product."""
    free = [n for n in nests if not n.mapping.conditions]
    if not free:
        return [*nests, None]
    if is_gpu(target):  # an elementwise stage may be memory's to wait for there, too
        return [*nests] if free[0].intrinsic.accumulates else [*nests, None]
    if scheme_of(target) == "spatial":  # a host takes one element after the other, if there is one
        return [*nests] if free[0].intrinsic.accumulates or not target.host else [*nests, None]
    scalar = scalar_cycles(scalar_part(program, stage, StepNames(), dependences))
    if SCALAR_MARGIN * scalar <= least_cycles(free[0]):
        return [None, *nests]
    # An elementwise stage may be memory's to wait for: vector code shares loops with its neighbours.
    return [*nests] if free[0].intrinsic.accumulates else [*nests, None]
