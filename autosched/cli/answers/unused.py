"""Names the instructions that a user gave and that a search leaves out: those that the target lacks, and those that the
best plan does without."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from autosched.cli.output import talk
from autosched.machine.offered import offered
from autosched.machine.target import Target
from autosched.report.text import seconds
from autosched.search.tuning.tune import FORMS_S, Tuning
from autosched.store.ranking import ranked
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.rejections import rejections
from autosched.tiling.plans.plan import Plan

NAMED = 2
"""Instructions that a line names."""


def own_of(known: Catalogue, paths: Sequence[str] | None) -> Iterator[Intrinsic]:
    """The instructions in the files of `--intrinsics`."""
    given = [Path(os.path.realpath(Path(p).expanduser())) for p in paths or ()]
    for name in known if given else ():
        if name in Catalogue.builtin():
            continue
        own = known[name]
        file = Path(os.path.realpath(own.path))
        if any(file == path or path in file.parents for path in given):
            yield own


def given_by(
    known: Catalogue, paths: Sequence[str] | None, globs: Sequence[str] | None, machine: Target
) -> tuple[str, ...]:
    """The instructions of the machine that `-i` names, else those in the files of `--intrinsics`."""
    asked = list(known.select(globs)) if globs else list(own_of(known, paths))
    return tuple(i.name for i in offered(asked, machine) if i.kind == "compute")


def without_lines(
    tuning: Tuning, best: Plan, given: Collection[str], command: Callable[[str], str]
) -> list[str]:
    """Where the best plan has none of the given instructions: why, and the `command` that says more of the instruction
    that this is said of."""
    if not given or any(name in given for name in best.intrinsics):
        return []
    with_one = {plan.name for plan in tuning.plans if any(name in given for name in plan.intrinsics)}
    fits = [m for m in tuning.matches if m.intrinsic.name in given and m.verdict in ("match", "conditional")]
    if not with_one and not fits:
        answers = [m for m in tuning.matches if m.intrinsic.name in given and m.reason is not None]
        nearest = min(answers, key=lambda m: m.reason.distance if m.reason else 0, default=None)
        why = f": stage {nearest.stage}: {nearest.reason.message}" if nearest and nearest.reason else ""
        said = nearest.intrinsic.name if nearest else next(iter(given))
        return [f"no given instruction ({_some(given)}) computes a part of the program{why}", _more(command, said)]
    names = _some(sorted({m.intrinsic.name for m in fits}) or given)
    if not with_one:
        reason, said = _rejected(tuning, given) or ("", fits[0].intrinsic.name)
        return [f"{names} fits, and no plan has it{reason}", _more(command, said)]
    tried = [t for t in ranked(tuning.study.searched) if t.plan in with_one]
    what = f"with it {seconds(tried[0].measurement.time_s)} at best (trial {tried[0].number})" if tried else ""
    said = fits[0].intrinsic.name if fits else next(iter(given))
    why = what or "by the clock plans with it take longer"
    return [f"the best plan does without {names}: {why}", _more(command, said)]


def _more(command: Callable[[str], str], name: str) -> str:
    return f"`{command(name)}` says more"


def _rejected(tuning: Tuning, given: Collection[str]) -> tuple[str, str] | None:
    """Why none of their mappings is in a plan: the first reason, and whose it is."""
    request = tuning.request

    def found() -> list[tuple[str, str]]:
        known = rejections(tuning.matches, tuning.plans, request.target, request.conditions)
        return [(f": {r.reason}", r.intrinsic) for r in known if r.intrinsic in given]

    return next(iter(tuning.deadline.within(FORMS_S, found) or []), None)


def _some(names: Collection[str]) -> str:
    shown = ", ".join(list(names)[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more"


def tell_unused(known: Catalogue, paths: Sequence[str] | None, machine: Target) -> None:
    """A line on stderr for each reason why `machine` cannot use instructions in the files of `--intrinsics`."""
    unused: dict[str, list[str]] = {}
    for own in own_of(known, paths):
        if own.isa != machine.isa and not own.portable:
            unused.setdefault(f"{machine.name} is {machine.isa}", []).append(own.name)
        elif not machine.has(own.requires):
            missing = ", ".join(sorted(own.requires - machine.features))
            unused.setdefault(f"needs {missing}, which {machine.name} lacks", []).append(own.name)
    for why, names in unused.items():
        are, they = ("is", "it") if len(names) == 1 else ("are", "each")
        why = f"{they} {why}" if why.startswith("needs ") else why
        talk().print(f"{_some(names)} {are} not used: {why}", markup=False)
