"""Whether a stage's points may be computed in any order, and apart from the other stages of its loops.

Both are questions about two points that touch one element: z3 either finds the pair or proves that there is none.
"""

from __future__ import annotations

from typing import Any

from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.ir.value import Condition, Index, Read, is_value, reads
from autosched.logic import Bool, to_z3
from autosched.logic.solver import z3
from autosched.tensorize.addresses.points import Ask, Points
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.match_types import Reason


def own_conflict(
    program: Program, stage: Stage, operands: tuple[Condition | Index, ...], ask: Ask
) -> tuple[Reason | None, bool]:
    """A read of the written tensor among `operands` (all that the stage reads but its accumulator) that may meet a
    written element; and whether that is known (False: a limit was met)."""
    found = [r for part in operands if is_value(part) for r in reads(part)]
    for read in dict.fromkeys(found):
        if read.tensor != stage.assign.tensor:
            continue
        functions: dict[str, Any] = {}
        here, there = (Points(program, stage.axes, tag, functions) for tag in ("", "'"))
        claim = here.domain + there.domain
        claim += [here.index(r) == there.index(w) for r, w in zip(read.index, stage.assign.index, strict=True)]
        answer = ask("addresses", f"{show_leaf(read)} is not written by this stage", claim)
        if answer.holds is None:
            return None, False
        if not answer.holds:
            text = f"{show_leaf(read)} may be an element that the stage itself writes as {show_leaf(stage.target)}"
            fix = f"read from a tensor other than {stage.assign.tensor}, or write to another"
            return Reason("ALIAS", text, fix=fix), True
    return None, True


def _accesses(stage: Stage) -> list[tuple[Read, bool]]:
    found = [(r, False) for r in dict.fromkeys(stage.reads)]
    found.append((stage.target, True))
    if stage.init is not None:
        found += [(r, False) for r in reads(stage.init)]
    return found


def neighbour_conflict(program: Program, original: Stage, stage: Stage, ask: Ask) -> tuple[Reason | None, bool]:
    """A dependence, carried by a shared loop, that runs against the text's order: the stages cannot be split into
    loops of their own. `original` is the program's stage, `stage` the form of it that is matched."""
    stages = program.stages
    own = stages.index(original)
    near = [at for at, other in enumerate(stages) if at != own and _shared(stage, other)]
    pairs = [(stages[at], stage) if at < own else (stage, stages[at]) for at in near]
    # Those before it and those after it are split, too: a value may go round through all three.
    pairs += [(stages[x], stages[y]) for x in near for y in near if x < own < y]
    for earlier, later in pairs:
        shared = _shared(earlier, later)
        for a, a_writes in _accesses(earlier):
            for b, b_writes in _accesses(later):
                if a.tensor != b.tensor or not (a_writes or b_writes):
                    continue
                answer = _carried(program, earlier, a, later, b, shared, ask)
                if answer is None:
                    return None, False
                if answer:
                    text = (
                        f"{show_leaf(a)} in stage {earlier.name} meets {show_leaf(b)} in stage {later.name} of an "
                        f"earlier turn of loop {', '.join(shared)}: the stages cannot be separated"
                    )
                    return Reason("ALIAS", text, fix=_apart(earlier, later)), True
    return None, True


def _apart(earlier: Stage, later: Stage) -> str:
    """What keeps two stages from running into each other: one statement, where both add to the same element."""
    same = earlier.target == later.target and {earlier.assign.op, later.assign.op} <= {"+=", "-="}
    one = f"add up both in one statement (`{show_leaf(earlier.target)} += …`), or " if same else ""
    return f"{one}write the stages as loop nests of their own"


def _shared(a: Stage, b: Stage) -> list[str]:
    names = []
    for x, y in zip(a.axes, b.axes, strict=False):
        if x != y:
            break
        names.append(x.name)
    return names


def _carried(
    program: Program, earlier: Stage, a: Read, later: Stage, b: Read, shared: list[str], ask: Ask
) -> bool | None:
    """Whether `b`'s point can come before `a`'s in the shared loops and touch the same element."""
    functions: dict[str, Any] = {}
    p = Points(program, earlier.axes, "", functions)
    q = Points(program, later.axes, "'", functions)
    claim = p.domain + q.domain + [p.index(x) == q.index(y) for x, y in zip(a.index, b.index, strict=True)]
    for points, stage in ((p, earlier), (q, later)):
        claim += [to_z3(g, points.env) for g in stage.guards if isinstance(g, Bool)]
    before = []
    for n, name in enumerate(shared):
        equal = [p.env[m] == q.env[m] for m in shared[:n]]
        before.append(z3.And(*equal, q.env[name] < p.env[name]))
    claim.append(z3.Or(*before))
    answer = ask("addresses", f"{show_leaf(a)} and {show_leaf(b)} keep their order", claim)
    return None if answer.holds is None else not answer.holds
