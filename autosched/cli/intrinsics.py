"""`autosched intrinsics`: the catalogue, one instruction in full, and proofs that descriptions are right."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from autosched.cli import inputs, options
from autosched.cli.output import answer, answer_json, table
from autosched.device.registry import CPU_ISAS
from autosched.errors import UnknownNameError
from autosched.ir.printer import print_program
from autosched.machine.detect import host_features
from autosched.tensorize.check import check_all
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec_function import formulas_of

app = typer.Typer(help="List, show and check intrinsics.", no_args_is_help=True)
NamesArg = Annotated[list[str] | None, typer.Argument(metavar="[NAME|GLOB|FILE.yaml]...", help="Default: all.")]


@app.command("list")
def list_(intrinsics: options.IntrinsicsOpt = None, json: options.JsonOpt = False) -> None:
    """All intrinsics, with what they need and what they compute."""
    known = inputs.catalogue(intrinsics)
    features = host_features()
    if json:
        answer_json([_data(known[n]) for n in known])
        return
    rows = []
    for name in known:
        i = known[name]
        runs = "llvm" in i.emit and i.requires <= features and i.isa in CPU_ISAS
        use = "in vectors" if i.formula is not None else "yes" if runs else "match only"
        rows.append((name, " ".join(sorted(i.requires)), use, i.summary))
    table(("intrinsic", "needs", "runs here", "summary"), rows)


@app.command("show")
def show(name: str, intrinsics: options.IntrinsicsOpt = None, json: options.JsonOpt = False) -> None:
    """One intrinsic in full."""
    i = inputs.catalogue(intrinsics).find(name)
    if json:
        answer_json(_data(i))
        return
    answer(f"{i.name}: {i.summary}")
    for label, value in (("source", i.source), ("file", i.path), ("needs", " ".join(sorted(i.requires)))):
        if value:
            answer(f"  {label}: {value}")
    answer(f"  scope: {i.scope}   numerics: {i.numerics.accumulate}   timing: {i.timing or 'not stated'}")
    answer("\n" + print_program(i.program))
    for operand in i.operands.values():
        where = operand.fragment if operand.fragment is not None else operand.order
        registers = ", ".join(f"{k}: {v}" for k, v in operand.registers.items())
        answer(f"{operand.name}: {operand.dtype}{list(operand.shape)}   {registers}\n   {where}")
    if i.formula is not None:
        answer(f"within {i.formula.ulp:g} ulp, in {len(i.formula.steps) + 1} steps")
    for printer, text in i.emit.items():
        answer(f"emit {printer}: {text}")


@app.command("check")
def check(
    names: NamesArg = None,
    intrinsics: options.IntrinsicsOpt = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the random operands.")] = 0,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Run functions on all 2^32 arguments: up to an hour each.")
    ] = False,
    json: options.JsonOpt = False,
) -> None:
    """Prove fragment maps to be bijections, type-check the semantics, and run what this machine has against it.

    Exit status 1 when a description is wrong.
    """
    files = [n for n in names or () if n.endswith((".yaml", ".yml"))]
    patterns = [n for n in names or () if n not in files]
    known = inputs.catalogue([*(intrinsics or ()), *files])
    if files:
        from autosched.tensorize.catalogue import load

        patterns += [i.name for f in files for i in load(f)]
    chosen = known.select(patterns) if patterns else tuple(known[n] for n in known)
    if not chosen:
        raise UnknownNameError("intrinsic", " ".join(names or ()), known)
    needed = any(i.kind == "function" for i in chosen)
    formulas = formulas_of(known[n] for n in known if known[n].kind == "function") if needed else {}
    reports = list(check_all(chosen, host_features(), seed, exhaustive, formulas))
    if json:
        answer_json([{"intrinsic": r.intrinsic, "ok": r.ok, "ran": r.ran, "said": str(r)} for r in reports])
    else:
        for r in reports:
            answer(str(r))
        bad = sum(not r.ok for r in reports)
        answer(f"{len(reports)} checked, {bad} wrong, {sum(r.ran for r in reports)} run on this machine")
    raise typer.Exit(0 if all(r.ok for r in reports) else 1)


def _data(i: Intrinsic) -> dict[str, Any]:
    return {
        "name": i.name,
        "isa": i.isa,
        "requires": sorted(i.requires),
        "summary": i.summary,
        "source": i.source,
        "scope": i.scope,
        "semantics": print_program(i.program),
        "operands": {o.name: {"dtype": o.dtype.name, "shape": list(o.shape)} for o in i.operands.values()},
        "emit": dict(i.emit),
        "timing": dict(i.timing),
        "file": i.path,
    }
