"""Forms of a program that instructions take: as lines, as JSON, and as a file to tune."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autosched.cli.output import answer
from autosched.cli.written import write_program
from autosched.errors import NoScheduleError
from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.ir.value import substitute, substitute_condition, substitute_index
from autosched.logic import Int, Var
from autosched.logic.walk import substitute_int
from autosched.machine.target import Target
from autosched.numerics_levels import DEFAULT_NUMERICS
from autosched.report.text import compared, seconds
from autosched.tensorize.explanation.forms import Form, all_forms, form_json, form_lines
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.catalogue import Catalogue

if TYPE_CHECKING:  # half a second of the time in which a match is answered
    from autosched.search.tuning.forms import Gain

SAME = 1.005
"""Ratios up to this one are none."""


def form_told(form: Form, gain: Gain | None) -> list[str]:
    """The lines of a form: what fits, the gain by the clock where it is known, and the program."""
    head, *text = form_lines(form)
    return [head, *([] if gain is None else [f"    {_gained(gain)}"]), *text]


def form_object(form: Form, gain: Gain | None) -> dict[str, Any]:
    """The form's JSON, with the clock's seconds of both programs where they are known."""
    clock = {} if gain is None else {"clock_s": {"as_written": gain.written_s, "rewritten": gain.rewritten_s}}
    return form_json(form) | clock


def worth_telling(form: Form, gain: Gain | None, used: Collection[str], given: Program, best: Program) -> bool:
    """Whether the form is faster than the `best` plan's program, which is not it already: it has all stages that the
    form has and the program that was `given` does not, or computes all of its parts beforehand, under whatever names.
    Without a gain: whether its stage is not among those `used` on an instruction, since plans already have some forms
    by themselves."""
    if not _texts(form.program) - _texts(given) - _texts(best):
        return False
    if (parts := _parts(form.program, given)) and parts <= _parts(best, given):
        return False
    return form.stage not in used if gain is None else gain.ratio > SAME


def _texts(program: Program) -> frozenset[str]:
    """Its stages in text, with numbers in place of names of axes: these differ from program to program."""
    return frozenset(map(_text, program.stages))


def _parts(program: Program, given: Program) -> frozenset[str]:
    """The stages that write what the program `given` does not have, without the names of what they write."""
    return frozenset(_text(s, named=False) for s in program.stages if s.assign.tensor not in given.tensors)


def _text(stage: Stage, named: bool = True) -> str:
    numbers: dict[str, Int] = {a.name: Var(f"axis {n}") for n, a in enumerate(stage.axes)}
    assign = stage.assign
    index = tuple(substitute_index(i, numbers) for i in assign.index)
    bounds = [(substitute_int(a.lower, numbers), substitute_int(a.upper, numbers)) for a in stage.axes]
    guards = [substitute_condition(g, numbers) for g in stage.guards]
    init = None if stage.init is None else substitute(stage.init, numbers)
    value, tensor = substitute(assign.value, numbers), assign.tensor if named else ""
    return repr((tensor, index, assign.op, value, bounds, guards, init))


def faster(forms: Sequence[tuple[Form, Gain | None]]) -> str:
    """What a program gains that has all of these forms, as far as the clock has looked."""
    stages = ", ".join(form.stage for form, _ in forms)
    ratios = [gain.ratio for _, gain in forms if gain is not None]
    least = ", or more" if len(forms) > 1 else ""
    told = f": by the clock {compared(max(ratios))} the best plan without it{least}" if ratios else ", maybe"
    return f"with stage{'s' * (len(forms) > 1)} {stages} in the form shown below{told}"


def _gained(gain: Gain) -> str:
    than = f"{compared(gain.ratio)} the best plan without it ({seconds(gain.written_s)})"
    return f"by the clock {seconds(gain.rewritten_s)}, {than}"


def with_gains(
    forms: Sequence[Form], program: Program, machine: Target | None, known: Catalogue, numerics: str
) -> list[tuple[Form, Gain | None]]:
    """The forms, each with its gain on the machine, where there is one and the clock can tell."""
    if machine is None or program.symbolic or not forms:
        return [(form, None) for form in forms]
    from autosched.search.request import TuneRequest
    from autosched.search.tuning.forms import fastest_s, gain_of

    request = TuneRequest(program, machine, catalogue=known, numerics=numerics)
    written_s = fastest_s(request)
    return [(form, gain_of(form, request, written_s)) for form in forms]


def form_commands(
    spec: str, name: str, defines: Sequence[str], flags: Sequence[str], tuning: Sequence[str] = ()
) -> tuple[str, str]:
    """The command that writes the forms of the program `spec`, and the one that tunes them; `flags` are for both,
    `tuning` for the second."""
    file, sizes = f"{name}_form.py", [word for text in defines for word in ("-D", text)]
    write = ["autosched", "match", spec, *sizes, *flags, "--write-form", file]
    return shlex.join(write), shlex.join(["autosched", "tune", file, *flags, *tuning])


def match_command(spec: str, defines: Sequence[str], flags: Sequence[str]) -> str:
    """The command that explains why instructions fit the program or not."""
    sizes = [word for text in defines for word in ("-D", text)]
    return shlex.join(["autosched", "match", spec, *sizes, *flags, "--explain"])


def flags_of(given: Mapping[str, Sequence[str] | None], numerics: str) -> list[str]:
    """Flags with their values as words, and the numerics level where it is not the default."""
    words = [word for flag, values in given.items() for value in values or () for word in (flag, value)]
    return words if numerics == DEFAULT_NUMERICS else [*words, "--numerics", numerics]


def answer_forms(forms: Sequence[tuple[Form, Gain | None]], commands: Sequence[str]) -> None:
    """Print forms, and the commands that use them."""
    for form, gain in forms:
        answer("\n".join(form_told(form, gain)))
    if forms:
        answer(f"use it   {' && '.join(commands)}")
        answer("")


def write_forms(path: Path, program: Program, intrinsics: Sequence[Intrinsic], numerics: str) -> str:
    """Write the program with every form that there is, and say what was written. Raises NoScheduleError where there
    is none, UsageError where the file cannot be written, or is not one of these."""
    rewritten, forms = all_forms(program, [i for i in intrinsics if i.kind == "compute"], numerics)
    if not forms:
        hint = "`autosched match --explain` says why instructions do not fit"
        raise NoScheduleError(f"no form of {program.name} was found that an instruction takes", hint=hint)
    said = [f"stage {f.stage} fits {f.intrinsic} with {' and '.join(f.parts)} computed beforehand" for f in forms]
    write_program(path, "match --write-form", said, str(rewritten), "--write-form")
    return f"wrote {path}: {'; '.join(said)}"
