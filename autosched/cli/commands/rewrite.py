"""`autosched rewrite`: proved steps to a program that computes the same, and why others do not apply."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from autosched import api
from autosched.cli import inputs, options
from autosched.cli.answers.apart import stages_apart
from autosched.cli.answers.rewrite_proofs import proof_of
from autosched.cli.output import answer, answer_json, table, talk
from autosched.cli.written import write_program
from autosched.errors import UsageError
from autosched.ir.rewrites.listing import NAMES, accepted
from autosched.ir.rewrites.online.search import BLOCK
from autosched.ir.rewrites.verdict import SCHEMA, RewriteVerdict
from autosched.numerics_levels import DEFAULT_NUMERICS, NUMERICS_LEVELS


def rewrite(
    program: options.ProgramArg,
    define: options.DefineOpt = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help=f"Only this kind: {', '.join(NAMES)} (repeatable)."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say what was proved, and how, and why not.")] = False,
    numerics: Annotated[
        str,
        typer.Option("--numerics", metavar="LEVEL", help=f"The weakest level accepted: {', '.join(NUMERICS_LEVELS)}."),
    ] = DEFAULT_NUMERICS,
    block: Annotated[
        int, typer.Option("--block", metavar="N", help="Iterations of the axis that share one look at the reference.")
    ] = BLOCK,
    parts: Annotated[
        int, typer.Option("--parts", metavar="N", help="Parts of the axis that are taken apart and merged.")
    ] = 1,
    tile: Annotated[
        int | None,
        typer.Option("--tile", metavar="N", help="Rows that share a block; stages for them alone are computed inside."),
    ] = None,
    dump_smt: Annotated[
        Path | None,
        typer.Option("--dump-smt", metavar="DIR", help="Write every question to the solver there, as SMT-LIB."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.py", help="Write the program after the first that applies."),
    ] = None,
    json: options.JsonOpt = False,
    quiet: options.QuietOpt = False,
) -> None:
    """List the rewrites of a program that are proved, and those that were tried and refused.

    Exit status 0 when at least one applies at the level of --numerics, 1 when none does.
    """
    inputs.choice("numerics level", numerics, NUMERICS_LEVELS)
    for name, count in (("block", block), ("parts", parts), ("tile", 1 if tile is None else tile)):
        if count < 1:
            raise UsageError(f"--{name} {count} holds nothing", hint="give 1 or more")
    loaded = inputs.program(program, define)
    for name in only or ():
        inputs.choice("rewrite", name, NAMES)
    found = api.rewrites(loaded, numerics=numerics, block=block, parts=parts, tile=tile, only=only, dump_smt=dump_smt)
    usable = [c for c in found if accepted(c, numerics)]
    wrote = None if output is None else _write(output, usable)
    if json:
        answer_json({"schema": SCHEMA, "program": loaded.name, "rewrites": [c.as_json() for c in found]})
    elif explain:
        told = [_explained(c, numerics) for c in found] or [_none(only)]
        apart = stages_apart(loaded, found, numerics) if only is None or "online" in only else []
        answer("\n\n".join([*told, *apart]))
    else:
        _list(found, numerics, only)
        if wrote is None and found and not quiet:
            talk().print("--explain says what was proved; -o FILE.py writes the program", markup=False)
    if wrote is not None and not quiet:
        talk().print(wrote, markup=False)
    raise typer.Exit(0 if usable else 1)


def _write(path: Path, usable: list[RewriteVerdict]) -> str:
    """Write the program after the first, and say so."""
    if not usable:
        return f"nothing applies, and {path} was not written"
    first = usable[0]
    write_program(path, "rewrite", [f"{_title(first)} ({first.numerics})"], str(first.after), "-o")
    return f"wrote {path}: {_title(first)}; it is a program: autosched tune {shlex.quote(str(path))}"


def _none(only: list[str] | None) -> str:
    kinds = f"'{' or '.join(only)}'" if only else "a rewrite"
    return f"no stages here that {kinds} is about"


def _list(found: list[RewriteVerdict], numerics: str, only: list[str] | None) -> None:
    if not found:
        answer(_none(only))
        return
    rows = []
    for c in found:
        what = ", ".join(dict.fromkeys([*c.rescale.values(), *c.deferred.values()]))
        why = "" if c.reason is None else f"{c.reason.code}: {c.reason.message}"
        if c.reason is not None and c.reason.level is not None:
            why += f"; accept it with --numerics {c.reason.level}"
        if c.reason is None and not accepted(c, numerics):
            why = f"accept it with --numerics {c.numerics}"
        rows.append((c.name, c.verdict, c.axis, " ".join(c.stages), c.numerics or "", what, why))
    table(("rewrite", "verdict", "axis", "stages", "numerics", "factors", "reason"), rows)


def _title(c: RewriteVerdict) -> str:
    return f"{c.name} of {', '.join(c.stages)}" + (f" along {c.axis}" if c.axis else "")


def _explained(c: RewriteVerdict, numerics: str) -> str:
    lines = [f"{_title(c)}: {c.verdict}"]
    if c.reason is not None:
        lines.append(f"  {c.reason.code} at {c.reason.stage}: {c.reason.message}")
        if c.reason.counterexample is not None and "references" in c.reason.counterexample:
            lines += _shown(c.reason.counterexample)
        if c.reason.level is not None:
            lines.append(f"  it is proved where roundings do not count: accept that with --numerics {c.reason.level}")
        return "\n".join(lines)
    beyond = "" if accepted(c, numerics) else f" (more than --numerics {numerics} accepts)"
    lines += [f"  {line}" for line in proof_of(c, beyond)]
    return "\n".join(lines)


def _shown(counterexample: dict[str, Any]) -> list[str]:
    """The term at two references and, where it has some, at two points of the data, a line for each reference."""
    lines = ["  counterexample: the term at two references, which no factor takes to one another"]
    if "data" not in counterexample:
        lines = ["  counterexample: the sum before the reference leaves its start, and what the factor makes of it"]
    for reference, values in zip(counterexample["references"], counterexample["values"], strict=True):
        at = [f" at {_numbers(data)}" for data in counterexample.get("data", ())]
        values = values if at else [values]
        said = "; ".join(f"{value:.6g}{where}" for value, where in zip(values, at or [""], strict=True))
        lines.append(f"    {_numbers(reference)}: {said}")
    return [*lines, f"    with {_numbers(counterexample['given'])}"] if "given" in counterexample else lines


def _numbers(named: dict[str, float]) -> str:
    return ", ".join(f"{name} = {value:.6g}" for name, value in named.items())
