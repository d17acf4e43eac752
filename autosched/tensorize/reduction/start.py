"""What an accumulator holds before the first term: the initial value, what earlier stages wrote, or what was passed."""

from __future__ import annotations

from autosched.ir.nodes import Stage, is_zero
from autosched.ir.printer import print_value
from autosched.ir.program import Program
from autosched.ir.value import Literal, Read
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.body.intervals import Range, exact_range
from autosched.tensorize.conditions.origin import origin
from autosched.tensorize.conditions.stated import stated_ranges
from autosched.tensorize.conditions.weakest import range_condition
from autosched.tensorize.match_types import Condition
from autosched.tensorize.reduction.update import Update, operand_reads


def start_of(program: Program, update: Update, earlier: tuple[Stage, ...]) -> Range:
    """The range of what an integer accumulator starts from; `earlier` stages of the program write it before."""
    if update.init is not None:
        if is_zero(update.init):
            return Range(0, 0)
        return exact_range(update.init, stated_ranges(program, operand_reads(update.init)))
    found = [_written(program, s) for s in earlier]
    if not earlier or _passed(program, update):
        passed = stated_ranges(program, (update.target,), at_start=True)
        found.append(passed.get(update.target, Range(*update.target.dtype.limits)))
    return Range(min(r.low for r in found), max(r.high for r in found))


def start_condition(
    program: Program, update: Update, earlier: tuple[Stage, ...], term: Range, terms: int
) -> Condition | None:
    """The range of live accumulators, or of what they start from, that leaves room for `terms` terms in `term`. None
    where there is no such range, or where the program itself writes what is outside it."""
    low, high = update.target.dtype.limits
    room = Range(low - min(term.low, 0) * terms, high - max(term.high, 0) * terms)
    if room.low >= room.high:
        return None
    firsts = [update.target] if update.init is None and (not earlier or _passed(program, update)) else []
    written = [update.init] if update.init is not None else [s.assign.value for s in earlier if s.assign.op == "="]
    if len(written) < len(earlier):
        return None
    for value in written:
        if exact_range(value, stated_ranges(program, operand_reads(value))).within((room.low, room.high)):
            continue
        if not isinstance(value, Read):
            return None
        firsts.append(value)
    tensors = list(dict.fromkeys(r.tensor for r in firsts))
    return range_condition(tensors[0], room) if len(tensors) == 1 else None


def contradicted(program: Program, update: Update, condition: Condition) -> str | None:
    """The statement because of which no caller can promise the condition, as `C[i, j] = 7`. Any statement that writes a
    parameter rules out a condition on it; one that writes a number to the accumulator or to an intermediate does where
    the number is outside the condition's range."""
    stated = condition.assume
    if stated is None or stated.subject not in program.tensors:
        return None
    made = origin(program, stated.subject)
    subject = made[0].tensor if made is not None else stated.subject
    if subject in program.parameters and subject != update.target.tensor:
        writes = (s for s in program.stages if s.assign.tensor == subject)
        return next((f"{show_leaf(s.target)} {s.assign.op} {print_value(s.assign.value)}" for s in writes), None)
    for stage in program.stages:
        value = stage.assign.value if stage.assign.op == "=" else stage.init
        if stage.assign.tensor != stated.subject or not isinstance(value, Literal):
            continue
        least = value.value if stated.low is None else stated.low
        most = value.value if stated.high is None else stated.high
        if not least <= value.value <= most:
            return f"{show_leaf(stage.target)} = {print_value(value)}"
    return None


def _written(program: Program, stage: Stage) -> Range:
    value = stage.assign.value
    if stage.assign.op != "=" or not value.dtype.is_integer:
        return Range(*stage.target.dtype.limits)
    return exact_range(value, stated_ranges(program, operand_reads(value)))


def _passed(program: Program, update: Update) -> bool:
    """Whether what the caller passes in the accumulator counts."""
    return update.target.tensor in program.inputs
