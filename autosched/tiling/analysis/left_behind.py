"""Whether anything reads what some stages leave in a tensor, or sets each element that it reads before.

    for j_block: S[i, j] = …                    no stage reads what the blocks leave in S:
    if odd[i]:
        for j:
            S[i, 0] = 0                         each use of S[i, 0] here has this number,
            for p: S[i, 0] += Q[i, p] K[j, p]   or what was added to it
            Z[i] += exp(S[i, 0] - M[i])
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from autosched.ir.nodes import Assign, Guard, Loop, Statement
from autosched.ir.prepared import assigns
from autosched.ir.program import Program
from autosched.ir.value import Condition, Index, Value, is_value, reads
from autosched.logic import Int
from autosched.tiling.analysis.accesses import statements

Element = tuple[Index, ...]
Elements = frozenset[Element]


def left_behind(program: Program, tensor: str, stages: Collection[str]) -> bool:
    """Whether another stage of the program may read an element of one of its intermediates as these stages left it."""
    walk = _Walk(tensor, [s.stage in stages for s in statements(program)])
    walk.through(program.body, frozenset())
    return walk.found


class _Walk:
    """Through a program in the order of its text. `own`: of each assignment, whether it is one of the stages'; `found`:
    another has read what they left."""

    def __init__(self, tensor: str, own: list[bool]) -> None:
        self.tensor, self.own = tensor, own
        self.position = 0
        self.found = False

    def through(self, body: Iterable[Statement], known: Elements) -> None:
        """Statements that run one after the other. `known`: elements that others have set since the stages ran."""
        for statement in body:
            behind = self.position + len(assigns(statement))
            kept = frozenset[Element]() if any(self.own[self.position : behind]) else known
            match statement:
                case Assign():
                    known = self.assigned(statement, known)
                case Guard(condition, inner):
                    self.asked((condition,), known)
                    self.through(inner, known)
                    known = kept
                case Loop(_, inner):  # the stages may have run in the iteration before
                    self.through(inner, kept)
                    known = kept

    def assigned(self, statement: Assign, known: Elements) -> Elements:
        own, mine = self.own[self.position], statement.tensor == self.tensor
        self.position += 1
        if own:
            return frozenset() if mine else known
        self.asked((statement.value, *statement.index), known)
        if not mine:
            return known
        if statement.op != "=":
            self.found = self.found or statement.index not in known
        return known | {statement.index} if all(isinstance(i, Int) for i in statement.index) else known

    def asked(self, values: Iterable[Condition | Index | Value], known: Elements) -> None:
        """What these read of the tensor."""
        for read in (r for value in values if is_value(value) for r in reads(value)):
            self.found = self.found or (read.tensor == self.tensor and read.index not in known)
