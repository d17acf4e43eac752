"""What `match` says of stages that no single instruction of an accelerator takes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from autosched import api
from autosched.backends import PORTABLE
from autosched.errors import NoScheduleError
from autosched.ir.program import Program
from autosched.machine.offered import offered
from autosched.machine.target import Target
from autosched.tensorize.match_types import Match
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.planner.whole_stages import StageWork, whole_stages


def work_of_stages(
    program: Program, machine: Target, known: Catalogue, found: Sequence[Match], stages: Collection[str], numerics: str
) -> dict[str, tuple[list[str], list[dict[str, str]]]]:
    """Of each of these stages the lines, and the steps as JSON: how the machine computes it with all of its
    instructions, whichever were asked about in `found`."""
    own = offered(known.of_isa(machine.isa, PORTABLE.isa, features=machine.features, kind="compute"), machine)
    asked = {m.intrinsic.name for m in found}
    matches = found if all(i.name in asked for i in own) else api.match(program, own, numerics=numerics)
    work = whole_stages(program, machine, known, matches, stages, own, numerics)
    return {
        stage: (_lines(done, machine), [{"computes": value, "intrinsic": name} for value, name in done.steps])
        for stage, done in work.items()
    }


def refused_whole(program: Program, machine: Target, known: Catalogue, numerics: str) -> list[str]:
    """Why a chip without a host cannot run the program though instructions fit its stages: an adapter's stage that
    nothing computes, elements without a way. No lines where it can."""
    own = offered(known.of_isa(machine.isa, PORTABLE.isa, features=machine.features, kind="compute"), machine)
    try:
        plan_program(program, machine, known, own, numerics=numerics)
    except NoScheduleError as refused:
        said = [f"`tune` refuses the program: {refused.message}"]
        return [*said, *(f"help: {line}" for line in (refused.hint or "").splitlines())]
    return []


def _lines(done: StageWork, machine: Target) -> list[str]:
    """Who computes a stage, and a line for each of its steps or of what nothing does."""
    if done.fits:
        return [f"none of these takes it; {done.fits} does"]
    if done.steps:
        steps = [f"{name}: {value}" for value, name in done.steps]
        return [f"no single instruction takes it; `tune` lays it out in {len(steps)} steps", *steps]
    if done.missing:
        lacks = [f"{m.what}{m.taken}; {m.mend}" for m in done.missing]
        return [f"{machine.name} cannot compute it and has no host, so `tune` refuses the program", *lacks]
    who = "the host computes it, or units of" if machine.host else "units compute it of"
    return [f"no instruction takes it; {who} which the target states rates"]
