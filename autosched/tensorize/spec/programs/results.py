"""One result of an instruction that has several: the statement that writes it, with the loops around it.

    lo[i] = min(a[i], b[i])            result: hi         hi[i] = max(a[i], b[i])
    hi[i] = max(a[i], b[i])

Each result is an instruction of its own to the matcher: what else is written then is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from autosched.errors import Location
from autosched.ir.nodes import Assign, Statement
from autosched.ir.program import Program
from autosched.ir.rewrites.reuse import places_of
from autosched.ir.value import reads
from autosched.tensorize.spec.programs.start_fault import fault_of_start


class NotOneResult(Exception):
    """Why no one statement is meant; `hint` says what would be one."""

    def __init__(self, message: str, hint: str | None, location: Location | None) -> None:
        super().__init__(message)
        self.message, self.hint, self.location = message, hint, location


def one_result(program: Program, result: str | None) -> Program:
    """The program with nothing but the statement that writes `result`, and the operands that it names; the program
    itself where it has one statement, and that is meant. NotOneResult otherwise."""
    found = [p.assign for p in places_of(program.body)]
    written = [a.tensor for a in found]
    if result is not None and result not in written:
        raise NotOneResult(f"result: it writes {_listed(written)}, not {result!r}", None, None)
    if len(found) < 2:
        return program
    if len(set(written)) < len(written):
        twice = next(a for n, a in enumerate(found) if a.tensor in written[:n])
        said = f"results overlap: {written.count(twice.tensor)} statements write {twice.tensor}"
        fault = fault_of_start(program, twice.tensor)
        said = f"{said}, and {fault[0]}" if fault else said
        hint = f"a sum may start before it: {twice.tensor}[…] = 0, or an operand of its type and shape that is read "
        hint += "there alone, for each element once; else each result is written in one statement"
        hint += "; one that can start from zero says so with `overwrite:`"
        raise NotOneResult(said, hint, fault[1] if fault else twice.location)
    if result is None:
        said = f"it has {len(found)} results, {_listed(written)}, and does not say which one is meant"
        hint = f"`for: {{r: [{', '.join(written)}]}}` and `result: \"{{r}}\"` describe each, with {{r}} in the name"
        raise NotOneResult(said, hint, found[1].location)
    for assign in found:
        if used := {r.tensor for r in reads(assign.value)} & (set(written) - {assign.tensor}):
            said = f"{assign.tensor} reads the result {min(used)}"
            raise NotOneResult(said, "compute it from operands, or from a temporary", assign.location)
    keep = next(a for a in found if a.tensor == result)
    body = _only(program.body, keep)
    made = replace(program, body=body, source="")
    named = {keep.tensor, *(r.tensor for p in places_of(body) for r in p.reads), *_asked(made)}
    tensors = {n: t for n, t in program.tensors.items() if n in named}
    return replace(made, tensors=tensors, parameters=tuple(p for p in program.parameters if p in named))


def _only(body: Sequence[Statement], keep: Assign) -> tuple[Statement, ...]:
    kept: list[Statement] = []
    for stmt in body:
        if isinstance(stmt, Assign):
            kept += [stmt] if stmt is keep else []
        elif inner := _only(stmt.body, keep):
            kept.append(replace(stmt, body=inner))
    return tuple(kept)


def _asked(program: Program) -> set[str]:
    """What the conditions read."""
    return {r.tensor for s in program.stages for r in s.reads}


def _listed(names: Sequence[str]) -> str:
    return " and ".join(dict.fromkeys(names))
