"""`autosched match`: which intrinsics fit, with which axis maps, under which conditions, and why not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autosched import api
from autosched.backends import PORTABLE
from autosched.cli import inputs, options
from autosched.cli.answers.apart import stages_apart
from autosched.cli.answers.forms import answer_forms, flags_of, form_commands, form_object, with_gains, write_forms
from autosched.cli.output import answer, answer_json, table, talk
from autosched.cli.patience import Patience
from autosched.ir.as_written import written_axes
from autosched.ir.program import Program
from autosched.machine.offered import offered, refuse_absent
from autosched.machine.target import Target
from autosched.numerics_levels import NUMERICS_LEVELS
from autosched.report.text import counted
from autosched.tensorize.explanation.amos import RULES
from autosched.tensorize.explanation.as_json import to_json
from autosched.tensorize.explanation.brief import brief
from autosched.tensorize.explanation.discriminating import discriminating_json, discriminating_lines, tell_apart
from autosched.tensorize.explanation.fix import with_fix
from autosched.tensorize.explanation.forms import Form, better_forms
from autosched.tensorize.explanation.near import near, near_json, near_lines, refusals
from autosched.tensorize.explanation.text import explain as explained
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Mapping, Match
from autosched.tensorize.numerics.dot import is_dot
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tune_options import TuneOptions

if TYPE_CHECKING:
    from autosched.cli.answers.beforehand import Beforehand
    from autosched.search.tuning.forms import Gain

_WHOLE = 6
"""The most answers that are explained one by one; of more, refusals are summarised."""
_MORE = "--explain says why, and prints a form of it that one takes, if there is one"


def match(
    program: options.ProgramArg,
    define: options.DefineOpt = None,
    intrinsic: options.OnlyOpt = None,
    intrinsics: options.IntrinsicsOpt = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="TARGET", help="Only intrinsics of this target.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say what was proved, and why not.")] = False,
    numerics: options.NumericsOpt = TuneOptions.numerics,
    rule: Annotated[
        str,
        typer.Option("--rule", metavar="RULE", help="superset, or amos: only mappings that the published rule counts."),
    ] = "superset",
    adapters: Annotated[
        bool, typer.Option("--adapters/--no-adapters", help="Whether a stage may be rewritten so that it fits.")
    ] = True,
    discriminate: Annotated[
        str | None,
        typer.Option(
            "--discriminate",
            metavar="OTHER",
            help="Inputs on which an intrinsic's float sum differs from OTHER's: `program`, or an intrinsic[@feature].",
        ),
    ] = None,
    data: options.DataOpt = None,
    dump_smt: Annotated[
        Path | None,
        typer.Option("--dump-smt", metavar="DIR", help="Write every question to the solver there, as SMT-LIB."),
    ] = None,
    write_form: Annotated[
        Path | None,
        typer.Option(
            "--write-form",
            metavar="FILE.py",
            help="Write the program with the forms that --explain shows, to be tuned; nothing else.",
        ),
    ] = None,
    json: options.JsonOpt = False,
    quiet: options.QuietOpt = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="The same as --explain.")] = False,
) -> None:
    """Decide by proof which intrinsics can compute the program.

    Exit status 0 when at least one fits (conditions included), 1 when none does or none could be decided.
    """
    inputs.choice("numerics level", numerics, NUMERICS_LEVELS)
    inputs.choice("rule", rule, RULES)
    loaded = inputs.with_data(inputs.programs([program], define)[0], data)
    known = inputs.catalogue(intrinsics)
    named = list(known.select(intrinsic)) if intrinsic else []
    machine = None if target is None else inputs.target(target, known)
    chosen = named or _every(known, machine)
    features = frozenset[str]() if machine is None else machine.features
    if machine is not None:
        from autosched.cli.answers.unused import tell_unused  # which knows of plans

        tell_unused(known, intrinsics, machine)
        asked, chosen = chosen, offered(chosen, machine)
        if not chosen:
            raise refuse_absent(asked, machine)
    if write_form is not None:
        said = write_forms(write_form, loaded, chosen, numerics)
        answer_json({"schema": "autosched/form/1", "file": str(write_form)}) if json else answer(said)
        return
    with Patience(f"matching {counted(len(chosen), 'instruction')}", quiet=quiet or json) as patience:
        place = {i.name: n for n, i in enumerate(chosen)}
        found: list[Match] = api.match(loaded, chosen, numerics=numerics, rule=rule, dump_smt=dump_smt, adapt=adapters)
        found.sort(key=lambda m: place[m.intrinsic.name])  # all stages of one intrinsic together
        one = bool(intrinsic) and len(found) == 1
        patience.doing = "looking at what would make the others fit"
        if explain or verbose or one:
            fixed = rule == "superset" and len(found) <= _WHOLE
            found = [with_fix(m, numerics) if fixed else m for m in found]
        nearest: list[Match] = []
        if (explain or verbose) and one and found[0].verdict in ("no", "unknown"):
            same = found[0].intrinsic.isa, "portable"
            pool = known.of_isa(*same, features=None if machine is None else machine.features)
            pool = pool if machine is None else tuple(offered(pool, machine))
            patience.doing = f"asking which of {counted(len(pool), 'instruction')} get further"
            nearest = near(found[0], api.match(loaded, pool, numerics=numerics))
        forms: list[tuple[Form, Gain | None]] = []
        if explain or verbose or (one and found[0].verdict == "no"):
            asked_of = [i for i in chosen if i.name in {m.intrinsic.name for m in found}]
            patience.doing = "looking for forms that instructions take"
            made = better_forms(loaded, found, asked_of, numerics) if adapters and rule == "superset" else []
            forms = with_gains(made, loaded, machine, known, numerics)
        patience.doing = "writing the answer"
        given = {"-t": target and [target], "--intrinsics": intrinsics, "-i": intrinsic, "--data": data}
        commands = form_commands(program, loaded.name, define or [], flags_of(given, numerics))
        work = _work(loaded, machine, known, found, numerics)
        listed = not (json or one or explain or verbose)
        refused = _refused(loaded, machine, known, work, numerics) if listed and not named else []
        factors = _deferred(loaded, found, work, numerics) if listed else {}
        first = _beforehand(loaded, found, work, chosen, numerics) if adapters and rule == "superset" else {}
        told = {} if discriminate is None else _told_apart(loaded, found, discriminate, known, features)
    if json:
        objects: list[dict[str, Any]] = [to_json(m) | told.get(n, ({}, []))[0] for n, m in enumerate(found)]
        if nearest:
            objects[0]["near"] = near_json(nearest)
        for form, gain in forms:
            at = next(n for n, m in enumerate(found) if (m.stage, m.intrinsic.name) == (form.stage, form.intrinsic))
            objects[at]["form"] = form_object(form, gain)
        for number, m in enumerate(found):
            if m.stage in first and m.intrinsic.name in first[m.stage].instructions:
                objects[number]["beforehand"] = first[m.stage].data
        for stage, (_, steps) in work.items():
            at = next(n for n, m in enumerate(found) if m.stage == stage)
            objects[at] |= {"steps": steps} if steps else {}
        answer_json(objects[0] if intrinsic and len(objects) == 1 else objects)
    elif one and not (explain or verbose):
        answer("\n".join([brief(found[0]), *told.get(0, ({}, []))[1]]))
        answer_forms(forms, commands)
        _answer_beforehand(loaded, first)
        _answer_work(loaded, work)
        if not quiet:
            talk().print("--explain says what was proved, and where each element goes", markup=False)
    elif explain or verbose:
        answer_forms(forms, commands)
        if len(found) > _WHOLE:
            _answer_types(loaded, found, chosen, machine if adapters else None, numerics)
        whole = found if len(found) <= _WHOLE else [m for m in found if m.verdict != "no"]
        texts = ["\n".join([explained(m), *told.get(n, ({}, []))[1]]) for n, m in enumerate(found) if m in whole]
        texts += refusals(m for m in found if m not in whole)
        answer("\n\n".join(texts))
        _answer_beforehand(loaded, first)
        _answer_work(loaded, work)
        for line in near_lines(nearest):
            answer(line)
        if len(loaded.stages) > 1:
            answer("".join(f"\n{s}" for s in stages_apart(loaded, api.rewrites(loaded, numerics=numerics), numerics)))
    else:
        _list(found, quiet, loaded, work, factors, first)
        for line in refused:
            answer(line)
        _answer_types(loaded, found, chosen, machine if adapters else None, numerics)
        for _, lines in told.values():
            answer("\n".join(lines))
    fits = any(m.verdict in ("match", "conditional") for m in found) or any(steps for _, steps in work.values())
    raise typer.Exit(0 if fits else 1)


def _answer_types(
    program: Program, found: list[Match], chosen: list[Intrinsic], machine: Target | None, numerics: str
) -> None:
    """In which types, and at which level, instructions of a machine that multiply matrices would take products."""
    if machine is not None:
        from autosched.tiling.variants.rounded import types_needed

        for line in types_needed(program, found, chosen, machine, numerics):
            answer(line)


def _every(known: Catalogue, machine: Target | None) -> list[Intrinsic]:
    """All instructions, of a machine those that it may offer: others are not built."""
    if machine is None:
        return [known[n] for n in known]
    own = known.of_isa(machine.isa, PORTABLE.isa, features=machine.features)
    return list(own) or [known[n] for n in known]


def _told_apart(
    program: Program, found: list[Match], against: str, known: Catalogue, features: frozenset[str]
) -> dict[int, tuple[dict[str, Any], list[str]]]:
    """For each answer on an intrinsic of floats, inputs that tell its sum from `against`'s: JSON keys, and lines."""
    told: dict[int, tuple[dict[str, Any], list[str]]] = {}
    for number, answered in enumerate(found):
        if len(found) > 1 and not is_dot(answered.intrinsic):
            continue
        stage = program.stage(answered.stage)
        apart = tell_apart(program, stage, answered.intrinsic, against, known, features)
        lines = discriminating_lines(apart) if apart else [f"nothing tried tells it from {against}"]
        told[number] = {"discriminating": discriminating_json(apart) if apart else None}, lines
    return told


def _axes(mapping: Mapping, program: Program) -> str:
    """Which axes of the program lie on the instruction's, in the file's names."""
    written = written_axes([*mapping.outer, *(a for names in mapping.axes.values() for a in names)], program)
    each = ((i, ".".join(written.get(a, a) for a in names) or "1") for i, names in mapping.axes.items())
    return ", ".join(f"{i}←{names}" for i, names in each) or "every axis outside"


Work = dict[str, tuple[list[str], list[dict[str, str]]]]
"""Of stages that no instruction takes: lines that say who computes them, and the steps that instructions do."""


def _work(program: Program, machine: Target | None, known: Catalogue, found: list[Match], numerics: str) -> Work:
    """Who computes the stages of an accelerator's program that no instruction takes; of other machines nothing."""
    if machine is None or program.symbolic or not any(m.holds for m in machine.memories):
        return {}
    if not (left := _left(found, {})):
        return {}
    from autosched.cli.answers.stage_work import work_of_stages  # which knows of plans

    return work_of_stages(program, machine, known, found, left, numerics)


def _left(found: list[Match], work: Work) -> list[str]:
    """The stages that neither an instruction computes nor `work` tells of."""
    fits = {m.stage for m in found if m.verdict in ("match", "conditional")} | set(_within(found))
    return [stage for stage in dict.fromkeys(m.stage for m in found) if stage not in fits | set(work)]


def _refused(program: Program, machine: Target | None, known: Catalogue, work: Work, numerics: str) -> list[str]:
    """Why a chip without a host cannot run a program whose every stage is said to be computed; of others nothing."""
    if machine is None or machine.host or program.symbolic or not any(m.holds for m in machine.memories):
        return []
    if any(not steps for _, steps in work.values()):  # that is told already
        return []
    from autosched.cli.answers.stage_work import refused_whole

    return refused_whole(program, machine, known, numerics)


def _answer_work(program: Program, work: Work) -> None:
    for stage, (lines, _) in work.items():
        answer("\n  ".join([f"stage {stage} ({_place(program, stage)}): {lines[0]}", *lines[1:]]))


def _place(program: Program, stage: str) -> str:
    """Where a stage stands: `file.py:33:9`, or its position among the stages where that is not known."""
    at = program.stage(stage).assign.location
    return str(at) if at is not None else f"the {[s.name for s in program.stages].index(stage) + 1}. of the program"


def _within(found: list[Match]) -> dict[str, str]:
    """Stages that an instruction for another one computes, too, each with that one."""
    within: dict[str, str] = {}
    for m in found:
        for mapping in m.mappings if m.verdict != "no" else ():
            left = {s.name for s in mapping.program.stages}
            within |= {s.name: m.stage for s in m.program.stages if s.name not in left}
    return within


def _deferred(program: Program, found: list[Match], work: Work, numerics: str) -> dict[str, str]:
    """The factors that leave sums at this level, by stage, of those that nothing computes as they stand."""
    if program.symbolic or not _left(found, work):
        return {}
    from autosched.ir.rewrites.listing import accepted

    certificates = (v for v in api.rewrites(program, only=["defer"], numerics=numerics) if accepted(v, numerics))
    return {stage: factor for v in certificates for stage, factor in v.deferred.items()}


def _beforehand(
    program: Program, found: list[Match], work: Work, chosen: list[Intrinsic], numerics: str
) -> dict[str, Beforehand]:
    """What is computed first of stages that no instruction takes as they stand."""
    if not (left := _left(found, work)):
        return {}
    from autosched.cli.answers.beforehand import beforehand  # which knows of plans

    return beforehand(program, left, found, chosen, numerics)


def _answer_beforehand(program: Program, first: dict[str, Beforehand]) -> None:
    for stage, known in first.items():
        answer(f"stage {stage} ({_place(program, stage)}): {known.text}")


def _list(
    found: list[Match], quiet: bool, program: Program, work: Work, factors: dict[str, str], first: dict[str, Beforehand]
) -> None:
    fits = sorted((m for m in found if m.verdict != "no"), key=lambda m: m.intrinsic.portable)
    rows = []
    for m in fits:
        axes = "; ".join(_axes(mapping, program) for mapping in m.ranked[:3])
        more = f" and {m.mapping_count - 3} more" if m.mapping_count > 3 else ""
        conditions = ", ".join(dict.fromkeys(c.text for mapping in m.mappings for c in mapping.conditions))
        useful = f"{100 * m.ranked[0].utilisation:.3g} %" if m.mappings else ""
        rows.append((m.intrinsic.name, m.stage, m.verdict, m.mapping_count, useful, axes + more, conditions))
    if rows:
        table(("intrinsic", "stage", "verdict", "mappings", "lanes useful", "axes", "conditions"), rows)
    within = _within(found)
    for stage in dict.fromkeys(m.stage for m in found):
        if any(m.stage == stage and m.verdict in ("match", "conditional") for m in found):
            continue
        if stage in within:
            answer(f"stage {stage}: inside of {within[stage]}, whose instruction computes both")
        elif stage not in work:
            known, factor = first.get(stage), factors.get(stage)
            said = "no instruction takes it; it runs as scalar or vector code. "
            if known or factor:
                said = "no instruction takes it as it stands. "
            if factor:
                said += f"`tune` also asks about its sums without {factor}, by which they are multiplied afterwards"
                said += " (plans `[defer]`; `rewrite --only defer`). "
            if known:
                said += f"{known.text}. "
            said += _MORE
            answer(f"stage {stage} ({_place(program, stage)}): {said}")
    _answer_work(program, work)
    reasons: dict[str, int] = {}
    for m in found:
        if m.verdict == "no" and m.reason:
            reasons[m.reason.code] = reasons.get(m.reason.code, 0) + 1
    if reasons and not quiet:
        said = ", ".join(f"{n} {code}" for code, n in sorted(reasons.items(), key=lambda x: -x[1]))
        talk().print(f"{sum(reasons.values())} others do not fit ({said}); --explain says why", markup=False)
