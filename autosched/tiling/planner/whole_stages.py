"""How an accelerator computes stages of a program that no single instruction of it fits: in steps, at rates that its
target states, on its host, or not at all."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from autosched.ir.as_written import as_written, written_stage
from autosched.ir.printer import print_value
from autosched.ir.program import Program
from autosched.ir.rewrites.rewrite import simplify
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Match
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.planner.plan_program import units_of
from autosched.tiling.planner.without_host import Missing, missing
from autosched.tiling.variants.adapted import Variant
from autosched.tiling.variants.stepped import patterns_of, stepped_programs


@dataclass(frozen=True)
class StageWork:
    """Of a stage: the instruction that `fits` it; or the `steps` that instructions compute, each with its value and the
    instruction's name; or what of it nothing does (`missing`, on a chip without a host). None of these: the target's
    rates count, or the host computes it."""

    fits: str = ""
    steps: tuple[tuple[str, str], ...] = ()
    missing: tuple[Missing, ...] = ()


def whole_stages(
    program: Program,
    target: Target,
    catalogue: Catalogue,
    matches: Sequence[Match],
    stages: Collection[str],
    intrinsics: Sequence[Intrinsic],
    numerics: str,
) -> dict[str, StageWork]:
    """How `stages` are computed, by name. `matches` are the answers of `intrinsics`, all that the target has, on the
    program."""
    simple, _ = simplify(program)
    fitting = {name: own.name for name in stages if (own := _quickest(name, matches, target)) is not None}
    found = {name: StageWork(fits) for name, fits in fitting.items()}
    for variant in stepped_programs(simple, target, matches, intrinsics, numerics, "refuse"):
        for name in stages:
            steps = _steps(name, variant, program, target)
            if steps and name not in found:
                found[name] = StageWork(steps=steps)
    if target.host or all(name in found for name in stages):
        return {name: found.get(name, StageWork()) for name in stages}
    patterns = patterns_of(intrinsics, target)
    plain = make_plans(simple, target, {})[0].on_units(units_of(target, catalogue))
    lacking: dict[str, list[Missing]] = {}
    for lack in missing(plain, patterns, program):
        lacking.setdefault(lack.stage, []).append(lack)
    return {name: found.get(name) or StageWork(missing=tuple(lacking.get(name, ()))) for name in stages}


def _steps(name: str, variant: Variant, given: Program, target: Target) -> tuple[tuple[str, str], ...]:
    """The steps of a stage in a variant, each with the quickest instruction that fits it; none where one has none."""
    parts = [s for s in variant.program.stages if written_stage(s, variant.program, given).name == name]
    steps = []
    for part in parts:
        own = _quickest(part.name, variant.matches, target)
        if own is None:
            return ()
        steps.append((print_value(as_written(part.assign.value, part, variant.program, given)), own.name))
    return tuple(steps) if len(steps) > 1 else ()


def _quickest(stage: str, matches: Sequence[Match], target: Target) -> Intrinsic | None:
    """The instruction of the target that takes the fewest cycles for an element of a stage."""

    def cycles(i: Intrinsic) -> float:
        return 1 / target.issues(i) / i.accumulator.elements

    fits = [m.intrinsic for m in matches if m.stage == stage and m.verdict == "match"]
    return min((i for i in fits if i.isa == target.isa), key=cycles, default=None)

