"""The plan of a program's loops as they are written."""

from __future__ import annotations

from autosched.ir.nodes import Statement
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.tiling.plans.plan import LiteralPart, Plan
from autosched.tiling.space.space import Space
from autosched.tiling.step import Decision, Step


def literal_plan(program: Program, target: Target, body: tuple[Statement, ...] | None = None) -> Plan:
    """The program exactly as written, as a plan of one row; or these statements of it alone."""
    names = tuple(s.name for s in program.stages)
    space = Space("as written", [Step("as written", (Decision("threads", (1,)),))])
    part = LiteralPart(program.body if body is None else body, names)
    return Plan("as written", program, target, (part,), space)
