"""Stages of loops that cannot be taken apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from autosched.ir.nodes import Assign, Guard, Loop, Statement
from autosched.ir.prepared import assigns
from autosched.ir.program import Program
from autosched.ir.value import is_value, reads
from autosched.logic import free_vars
from autosched.tiling.analysis.accesses import statements
from autosched.tiling.analysis.dependence import Dependences, analyse
from autosched.tiling.analysis.windows import nested
from autosched.tiling.plans.plan import LiteralPart


@dataclass(frozen=True)
class HeldStages:
    """`parts`: for each stage that is held together with others, the statements as they are written."""

    dependences: Dependences
    parts: Mapping[str, LiteralPart]


def held_together(program: Program, loops: Collection[str] | None = None) -> HeldStages:
    """Stages of loops that dependences hold together: whole top-level statements, and those between them, but for what
    is prepared before all of them. Unless it is None, the outermost loops named in `loops` stay as they are, too, and
    so do those of a length that depends on loops around the program."""
    stages_in = _stages_by_statement(program)
    whole = [] if loops is None else _kept_whole(program, loops)
    whole += [k for k, s in enumerate(program.body) if k not in whole and _asks_what_it_writes(s)]
    parts_of = Counter(name for names in stages_in for name in dict.fromkeys(names))
    alone = [tuple(n for n in dict.fromkeys(stages_in[k]) if parts_of[n] == 1) for k in whole]
    dependences = analyse(program, [names for names in alone if names])
    runs: list[set[int]] = []
    for group in (*({*stages_in[k]} for k in whole), *({*g} for g in dependences.groups if len(g) > 1)):
        run = _with_all_parts(stages_in, group)
        for other in [r for r in runs if r & run]:
            run |= other
            runs.remove(other)
        runs.append(run)
    prepared = {*program.prepared}
    parts: dict[str, LiteralPart] = {}
    for run in runs:
        kept = [k for k in sorted(run) if not {program.stage(n).assign.tensor for n in stages_in[k]} & prepared]
        names = dict.fromkeys(name for k in kept for name in stages_in[k])
        part = LiteralPart(tuple(program.body[k] for k in kept), tuple(names))
        parts |= dict.fromkeys(part.stages, part)
    return HeldStages(dependences, parts)


def _with_all_parts(stages_in: Sequence[Sequence[str]], names: set[str]) -> set[int]:
    """The statements from the first to the last that hold a part of these stages, or of another stage that they hold a
    part of: an initialisation in front of them would be lost."""
    run = set[int]()
    while True:
        tops = [k for k, found in enumerate(stages_in) if names & set(found)]
        if run == (run := set(range(tops[0], tops[-1] + 1))):
            return run
        names = {name for k in run for name in stages_in[k]}


def _asks_what_it_writes(stmt: Statement) -> bool:
    """Whether a condition on data stands outside of loops that write what it reads: a stage would ask it each time."""
    if isinstance(stmt, Assign):
        return False
    if isinstance(stmt, Guard) and is_value(stmt.condition):
        asked = {r.tensor for r in reads(stmt.condition)}
        if any(isinstance(s, Loop) and asked & {a.tensor for a in assigns(s)} for s in stmt.body):
            return True
    return any(map(_asks_what_it_writes, stmt.body))


def _kept_whole(program: Program, names: Collection[str]) -> list[int]:
    """The top-level statements that are loops around several: over axes of these names, or of a length that depends on
    loops around the program."""
    found = []
    for number, stmt in enumerate(program.body):
        loops, _ = nested((stmt,), names)
        unknown = any((free_vars(a.lower) | free_vars(a.upper)) & set(program.symbolic) for a in loops)
        if unknown or any(a.name in names for a in loops):
            found.append(number)
    return found


def _stages_by_statement(program: Program) -> list[list[str]]:
    """For each top-level statement, the stages that it holds a part of: an initialisation is a part."""
    owners = iter(statements(program))
    return [[next(owners).stage for _ in range(_assignments(stmt))] for stmt in program.body]


def _assignments(stmt: Statement) -> int:
    return 1 if isinstance(stmt, Assign) else sum(_assignments(inner) for inner in stmt.body)
