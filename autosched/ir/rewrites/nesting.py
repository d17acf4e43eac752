"""Statements inside of new loops and guards: `nested`, `under`."""

from __future__ import annotations

from collections.abc import Sequence

from autosched.ir.nodes import Axis, Guard, Loop, Statement
from autosched.ir.value import Condition


def nested(axes: Sequence[Axis], *body: Statement) -> tuple[Statement, ...]:
    """The statements inside of these loops, outermost first."""
    for axis in reversed(axes):
        body = (Loop(axis, body),)
    return body


def under(guards: Sequence[Condition], statement: Statement) -> Statement:
    """The statement under these guards, outermost first."""
    for guard in reversed(guards):
        statement = Guard(guard, (statement,))
    return statement
