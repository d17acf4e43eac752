"""`autosched intrinsics`: the catalogue, one instruction in full, and proofs that descriptions are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from autosched.backends import backend_of
from autosched.cli import inputs, options
from autosched.cli.output import answer, answer_json, table
from autosched.codegen.c.export.own_texts import c_tools
from autosched.errors import UnknownNameError, UsageError
from autosched.ir.dtypes import dtype
from autosched.machine.host import host_features
from autosched.tensorize.check.emulator import installed
from autosched.tensorize.check.verify import CheckReport, check_all
from autosched.tensorize.intrinsic import Intrinsic, Operand, Outline
from autosched.tensorize.numerics.contract import Numerics
from autosched.tensorize.spec.programs.function import formulas_of

app = typer.Typer(help="List, show and check intrinsics.", no_args_is_help=True)
NamesArg = Annotated[list[str] | None, typer.Argument(metavar="[NAME|GLOB|FILE.yaml|FOLDER]...", help="Default: all.")]


@app.command("list")
def list_(
    globs: Annotated[list[str] | None, typer.Argument(metavar="[GLOB]...", help="Only these; default: all.")] = None,
    isa: Annotated[str | None, typer.Option("--isa", metavar="ISA", help="Of one instruction set, as x86.")] = None,
    takes: Annotated[
        str | None, typer.Option("--takes", metavar="DTYPE[,DTYPE…]", help="With operands of all these dtypes.")
    ] = None,
    here: Annotated[bool, typer.Option("--here", help="Only what this machine can run.")] = False,
    every: Annotated[bool, typer.Option("--all", "-a", help="A line for each member of a family.")] = False,
    intrinsics: options.IntrinsicsOpt = None,
    json: options.JsonOpt = False,
) -> None:
    """List intrinsics: what they need and compute. A family is one line unless --all is given."""
    known = inputs.catalogue(intrinsics)
    features = host_features()
    wanted = {d.strip() for d in takes.split(",")} if takes else set()
    for name in wanted:
        dtype(name)
    chosen = known.outlines(globs)
    if isa is not None:
        isas = sorted({o.isa for o in known.outlines()})
        if isa not in isas:
            raise UnknownNameError("instruction set", isa, isas)
        chosen = tuple(o for o in chosen if o.isa == isa)
    if here:
        chosen = tuple(o for o in chosen if _runs(o, features))
    if wanted:
        chosen = tuple(o for o in chosen if wanted <= {x.dtype.name for x in known[o.name].operands.values()})
    if json:
        answer_json([_data(known[o.name]) for o in chosen])
        return
    if not chosen:
        answer("none")
        return
    rows = [_row(members, features) for members in _families(chosen, every or globs is not None)]
    table(("intrinsic", "forms", "needs", "runs here", "summary"), rows)


def _families(outlines: Sequence[Outline], every: bool) -> list[list[Outline]]:
    """Members of one family together, or each alone."""
    found: dict[object, list[Outline]] = {}
    for o in outlines:
        found.setdefault(o.name if every else o.family, []).append(o)
    return list(found.values())


def _row(members: list[Outline], features: frozenset[str]) -> tuple[object, ...]:
    """A line of the list; of a family, what its members share, and `*` where they differ."""
    first, count = members[0], len(members)
    needs = frozenset.intersection(*(o.requires for o in members))
    more = "" if all(o.requires == needs for o in members) else " …"
    running = sum(_runs(o, features) for o in members)
    runs = "match only" if not running else "yes" if running == count else f"{running} of {count}"
    name = first.name if count == 1 else first.family
    return name, count, " ".join(sorted(needs)) + more, runs, _summary([o.summary.split() for o in members])


def _summary(texts: list[list[str]]) -> str:
    """One summary for all: words that differ side by side, `s8|u8`, or the first and the last, `16x8x32…16x8x64`."""
    if len({len(words) for words in texts}) > 1:
        return " ".join(texts[0]) + " …"
    shown = []
    for column in zip(*texts, strict=True):
        told = list(dict.fromkeys(column))
        shown.append("|".join(told) if len(told) <= 4 else f"{told[0]}…{told[-1]}")
    return " ".join(shown)


def _runs(outline: Outline, features: frozenset[str]) -> bool:
    return "llvm" in outline.printers and outline.requires <= features and backend_of(outline.isa).is_cpu


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its full name, as x86/vpdpbusd.zmm.")],
    intrinsics: options.IntrinsicsOpt = None,
    json: options.JsonOpt = False,
) -> None:
    """Show one intrinsic in full."""
    i = inputs.catalogue(intrinsics).find(name)
    if json:
        answer_json(_data(i))
        return
    answer(f"{i.name}: {i.summary}")
    said = {
        "source": i.source,
        "file": i.path,
        "needs": " ".join(sorted(i.requires)),
        "scope": i.scope if i.kind == "compute" else f"{i.scope}   kind: {i.kind}",
        "numerics": _numerics(i.numerics),
        "timing": ", ".join([*_cycles(i), *([i.timing_source] if i.timing_source else [])]) or "not stated",
        "starts from zero": i.overwrite or "",
        "asynchronous": "it completes later, and needs a wait" if i.asynchronous else "",
        "moves": " to ".join(i.moves or ()),
        "sets": ", ".join(sorted(i.sets)),
        "configured first": ", ".join(f"{name}: {_plain(value)}" for name, value in i.state.items()),
        "header": i.header or "",
    }
    said |= {f"on {' '.join(sorted(when))}": _numerics(n) for when, n in i.contracts}
    for label, value in said.items():
        if value:
            answer(f"  {label}: {value}")
    for rule in i.rules:
        answer(f"  rule: {rule}")
    answer("\n" + str(i.program))
    if i.registered is not None:
        parts = "; ".join(f"{', '.join(names)}: parts of {operand}" for operand, names in i.registered.parts.items())
        answer(f"Matched on {parts}. Registers and texts are of the whole:")
    for operand in (i.registered or i).operands.values():
        answer(operand_text(operand))
    if i.formula is not None:
        answer(f"{i.formula.bound}, in {len(i.formula.steps) + 1} steps")
    for printer, text in i.emit.items():
        answer(f"emit {printer}: {text}")


def operand_text(operand: Operand) -> str:
    """An operand as `show` has it: its type and registers, what they hold, and which element lies where."""
    at = "at" if operand.fragment is None else "in lane t, element v:"
    registers = [f"{k}: {v}" for k, v in operand.registers.items()]
    registers += [f"{operand.opaque.registers}, lanes unknown"] if operand.opaque is not None else []
    told = {
        ", ".join(registers): registers,
        f"loaded by {', '.join(operand.load)}": operand.load,
        f"in the state {operand.state}": operand.state,
        f"one group may fill all of {', '.join(operand.broadcast)}": operand.broadcast,
        f"each element in {operand.copies} lanes": operand.copies > 1,
        f"{operand.bits} bits of a register for each" + (f", from bit {operand.shift} on" if operand.shift else ""):
            operand.bits,
        f"of each {operand.distinct} neighbours no two may be equal": operand.distinct,
        "the result": operand.written,
    }  # fmt: skip
    said = "   ".join(text for text, holds in told.items() if holds)
    where = operand.fragment if operand.fragment is not None else operand.order
    return f"{operand.name}: {operand.dtype}{list(operand.shape)}   {said}".rstrip() + f"\n   {at} {where}"


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(inner)}" for name, inner in value.items())
    return str(value)


def _cycles(i: Intrinsic) -> list[str]:
    by = [(f"{n} rows", v) for n, v in i.interval_by_rows] + [(f"{n} lanes", v) for n, v in i.interval_by_lanes]
    return [*(f"{k} {v:g}" for k, v in i.timing.items()), *(f"{name} {v:g}" for name, v in by)]


def _numerics(contract: Numerics) -> str:
    """What differs from the defaults, first how it accumulates."""
    usual = Numerics()
    told = [contract.accumulate]
    for f in fields(contract):
        value = getattr(contract, f.name)
        if f.name != "accumulate" and value != getattr(usual, f.name):
            told.append(f.name if value is True else f"{f.name} {value}")
    return ", ".join(told).replace("_", " ")


@app.command("check")
def check(
    names: NamesArg = None,
    intrinsics: options.IntrinsicsOpt = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of the random operands.")] = 0,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Run functions on all 2^32 arguments: up to an hour each.")
    ] = False,
    json: options.JsonOpt = False,
) -> None:
    """Prove, type-check and run descriptions of intrinsics.

    Element orders and fragment maps are proved to be bijections. What this machine has is run and compared with its
    semantics.

    A C text is compiled and run too, where there is a C compiler. What this machine lacks runs under an emulator where
    one is installed (QEMU's user mode, and a compiler for that machine). Exit status 1 when a description is wrong.
    """
    files = [n for n in names or () if n.endswith((".yaml", ".yml")) or Path(n).expanduser().is_dir()]
    patterns = [n for n in names or () if n not in files]
    known = inputs.catalogue([*(intrinsics or ()), *files])
    if files:
        from autosched.tensorize.spec.catalogue import load

        patterns += [i.name for f in files for i in load(Path(f).expanduser())]
    for name in patterns:
        if name.startswith((".", "~", "/")) or name.endswith("/"):
            hint = "give a YAML file, a folder of such files, or the name of an instruction"
            raise UsageError(f"there is no file or folder {name}", hint=hint)
    chosen = known.select(patterns) if patterns else tuple(known[n] for n in known)
    if not chosen:
        raise UnknownNameError("intrinsic", " ".join(names or ()), known)
    needed = any(i.kind == "function" for i in chosen)
    formulas = formulas_of(known.of_isa(kind="function")) if needed else {}
    emulators = installed()
    tools = c_tools()
    reports = list(check_all(chosen, host_features(), seed, known, exhaustive, formulas, emulators, tools))
    if json:
        answer_json([_checked(r) for r in reports])
    else:
        for r in reports:
            answer(str(r))
        bad = sum(not r.ok for r in reports)
        right = f"{sum(r.ran for r in reports)} ran on this machine and agreed"
        emulated = sum(r.emulated for r in reports)
        answer(f"{len(reports)} checked, {bad} wrong, {right}{f', {emulated} under an emulator' if emulated else ''}")
    raise typer.Exit(0 if all(r.ok for r in reports) else 1)


def _checked(r: CheckReport) -> dict[str, Any]:
    return {"intrinsic": r.intrinsic, "ok": r.ok, "ran": r.ran, "emulated": r.emulated, "said": str(r)}


def _operand_data(o: Operand) -> dict[str, Any]:
    """What is said of an operand, without what says nothing."""
    told = {
        "order": None if o.fragment is not None else str(o.order),
        "fragment": None if o.fragment is None else str(o.fragment),
        "registers": dict(o.registers),
        "load": list(o.load),
        "broadcast": list(o.broadcast),
        "copies": o.copies if o.copies > 1 else 0,
        "bits": o.bits,
        "shift": o.shift,
        "distinct": o.distinct,
        "state": o.state,
        "written": o.written,
    }
    return {"dtype": o.dtype.name, "shape": list(o.shape), **{k: v for k, v in told.items() if v}}


def _data(i: Intrinsic) -> dict[str, Any]:
    return {
        "name": i.name,
        "isa": i.isa,
        "requires": sorted(i.requires),
        "summary": i.summary,
        "source": i.source,
        "scope": i.scope,
        "kind": i.kind,
        "family": i.family or i.name,
        "numerics": {
            "contract": str(i.numerics),
            "targets": [{"when": sorted(f), "contract": str(n)} for f, n in i.contracts],
        },
        "semantics": str(i.program),
        "operands": {o.name: _operand_data(o) for o in (i.registered or i).operands.values()},
        "parts": {name: list(parts) for name, parts in (i.registered or i).parts.items()},
        "moves": list(i.moves or ()),
        "state": {**i.state},
        "sets": sorted(i.sets),
        "sequences": [{"when": sorted(f), "registers": dict(s)} for f, s in i.sequences],
        "emit": dict(i.emit),
        "timing": {**i.timing, **({"rows": rows} if (rows := i.interval_by_rows) else {}), "source": i.timing_source},
        "file": i.path,
    }
