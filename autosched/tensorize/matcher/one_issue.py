"""Instructions whose sum starts from zero: one issue has to hold a whole sum of the program, from zero too.

    d[i, j] = 0; d[i, j] += a[i, k] * b[k, j]        k < 16

A second issue on the same register would lose what the first one left there.
"""

from __future__ import annotations

from math import copysign

from autosched.ir.printer import print_value
from autosched.ir.value import Literal
from autosched.logic import Const
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Reason


def not_one_issue(facts: StageFacts, intrinsic: Intrinsic, issues: int) -> Reason | None:
    """Why a sum that takes so many issues is not one of an instruction that starts from zero; None: it is."""
    if not intrinsic.from_zero:
        return None
    target, init = show_leaf(facts.update.target), facts.update.init
    other = f"or describe the form of {intrinsic.name} that adds to its target"
    if init is None:
        text = f"{intrinsic.name} starts each sum from zero, and what {target} holds before counts"
        return Reason("COMBINE_DIFFERS", text, fix=f"sum from zero into an intermediate, and add that; {other}")
    if not (isinstance(init, Literal) and init.value == 0 and copysign(1.0, init.value) > 0):
        text = f"{intrinsic.name} starts each sum from zero, and {target} starts from {print_value(init)}"
        return Reason("COMBINE_DIFFERS", text, fix=f"sum from zero into an intermediate, and add that; {other}")
    reduced = [a for a in facts.update.axes if a.name in facts.reduced]
    if loose := [a.name for a in reduced if a.lower != Const(0) or not isinstance(a.upper, Const)]:
        text = f"{intrinsic.name} starts each sum from zero, and the loop over {loose[0]} has no fixed ends from 0"
        return Reason("COMBINE_DIFFERS", text, fix=f"sum each part from zero into an intermediate; {other}")
    if issues > 1:
        text = f"{intrinsic.name} starts each sum from zero, and a sum of {target} takes {issues} issues"
        return Reason("COMBINE_DIFFERS", text, fix=f"sum each part into an intermediate, and add these up; {other}")
    return None
