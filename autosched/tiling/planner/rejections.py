"""Why a mapping that matching reports is in none of a study's plans: each one gets a reason."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from autosched.ir.data import known_values
from autosched.machine.target import Target
from autosched.tensorize.match_types import Mapping, Match
from autosched.tiling.analysis.dependence import analyse
from autosched.tiling.planner.nests import WITHIN, nest_or_reason, unchecked
from autosched.tiling.planner.rank import least_cycles
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.plan import Plan
from autosched.tiling.variants.conditional import usable_as


@dataclass(frozen=True)
class Rejection:
    """A mapping of a stage, in words, and why no plan holds it."""

    stage: str
    intrinsic: str
    axes: str
    reason: str


def rejections(matches: Sequence[Match], plans: Sequence[Plan], target: Target, mode: str) -> list[Rejection]:
    """The mappings that are in no plan, in the order of the matches. `mode` says what becomes of conditions."""
    planned = {_key(m) for plan in plans for m in plan.mappings}
    nests = [p.nest for plan in plans for p in plan.tensor_parts]
    known = {id(m.program): analyse(m.program) for m in matches}
    found = []
    for match in matches:
        held = bool(known[id(match.program)].stage(match.stage).of_kind("serial"))
        own = _fits_as_it_is(matches, match.stage, mode)
        for mapping in match.mappings:
            if _key(mapping) not in planned:
                reason = _reason(mapping, held, own, nests, target, mode)
                axes = ", ".join(f"{x}←{'.'.join(fused) or '1'}" for x, fused in mapping.axes.items())
                found.append(Rejection(match.stage, match.intrinsic.name, axes, reason))
    return found


def unplanned(
    matches: Sequence[Match], plans: Sequence[Plan], target: Target, mode: str, asked: Collection[str] = ()
) -> dict[str, tuple[tuple[str, ...], str]]:
    """Stages that no plan computes with an instruction though some of the target's own fit, where none of these can be
    laid out: by name the instructions, and what stands in the way of the first. Of stages that add nothing up only
    where an instruction is among those `asked` for: vector code is as good there."""
    used = {m.intrinsic.name for plan in plans for m in plan.mappings}
    done = {name for plan in plans for name in plan.stages_on_intrinsics}
    found: dict[str, tuple[tuple[str, ...], str]] = {}
    by_stage: dict[str, list[Match]] = {}
    for match in matches:
        if match.mappings and match.intrinsic.isa == target.isa and match.stage not in done:
            by_stage.setdefault(match.stage, []).append(match)
    for name, fitting in by_stage.items():
        names = tuple(m.intrinsic.name for m in fitting)
        program = fitting[0].program
        worth = bool(program.stage(name).reduction) or any(n in asked for n in names)
        if not worth or any(n in used for n in names):
            continue
        held = bool(analyse(program).stage(name).of_kind("serial"))
        first: str | None = None
        for mapping in (m for match in fitting for m in match.mappings):
            why = _unable(mapping, held, target, mode)
            if why is None:
                break
            first = first or why
        else:
            found[name] = names, first or ""
    return found


def by_reason(found: Sequence[Rejection]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each reason once, with the mappings that it keeps out: `x86/vpdpbusd.zmm(i←j, k←p)`."""
    reasons: dict[str, list[str]] = {}
    for one in found:
        reasons.setdefault(one.reason, []).append(f"{one.intrinsic}({one.axes})")
    yield from ((reason, tuple(which)) for reason, which in reasons.items())


def _key(mapping: Mapping) -> tuple[object, ...]:
    axes = tuple((x, frozenset(fused)) for x, fused in mapping.axes.items())
    return mapping.stage.name, mapping.intrinsic.name, axes, tuple(r.tensor for r in mapping.operands.values())


def _fits_as_it_is(matches: Sequence[Match], stage: str, mode: str) -> bool:
    """Whether an instruction of the machine's own fits the stage without an adapter and without a check."""
    mappings = [m for found in matches if found.stage == stage for m in found.mappings if not m.adapters]
    usable = (usable_as(m, mode) for m in mappings if not m.intrinsic.portable)
    return any(m is not None and not m.conditions for m in usable)


def _reason(mapping: Mapping, held: bool, own: bool, nests: Sequence[Nest], target: Target, mode: str) -> str:
    """The first thing that stands in the way, in the order in which plans are made."""
    if mapping.conditions and (said := _of_conditions(mapping, target, mode)):
        return said
    if own and mapping.intrinsic.portable:
        return "portable instructions stand in only where none of the machine's own fits"
    if own and mapping.adapters:
        return "a stage is adapted only where no instruction fits it as it is"
    if held:
        return _HELD
    found = nest_or_reason(mapping, target)
    return found if isinstance(found, str) else _of_speed(found, nests)


_HELD = "the stage uses what an earlier turn of its own loops has computed"


def _unable(mapping: Mapping, held: bool, target: Target, mode: str) -> str | None:
    """Why a mapping cannot be laid out, whatever else there is; None where it can."""
    if mapping.conditions and (said := _of_conditions(mapping, target, mode)):
        return said
    found = nest_or_reason(mapping, target)
    return _HELD if held else found if isinstance(found, str) else None


def _of_conditions(mapping: Mapping, target: Target, mode: str) -> str | None:
    texts = " and ".join(c.text for c in mapping.conditions)
    if mode == "refuse":
        return f"it asks for {texts}, and conditions are refused"
    if any(c.assume is not None and known_values(mapping.program, c.assume.subject) for c in mapping.conditions):
        return f"the data given do not meet {texts}"
    return unchecked(mapping, target)


def _of_speed(nest: Nest, nests: Sequence[Nest]) -> str:
    """How it compares with what is planned, by the cycles that no schedule avoids."""
    if not nests:
        return "another mapping was laid out in its place"
    best = min(nests, key=least_cycles)
    ratio = least_cycles(nest) / least_cycles(best)
    if ratio > WITHIN:
        return f"it takes more than {WITHIN:g} times the cycles of {best.intrinsic.name}, the best"
    if nest.mapping.conditions:
        return "it has to be checked and is no faster than what needs no check"
    same = [n for n in nests if n.points == nest.points and least_cycles(n) == least_cycles(nest)]
    return f"its kernels would tie with those of {same[0].intrinsic.name}" if same else "other plans need fewer cycles"
