"""What a program says of its tensors' values: what it assumes, what is known of constant data, and what follows."""

from __future__ import annotations

from collections.abc import Mapping

from autosched.ir.data import known_values
from autosched.ir.nodes import Assume
from autosched.ir.program import Program
from autosched.ir.value import Read, Value
from autosched.tensorize.body.intervals import Range
from autosched.tensorize.conditions.origin import derived_range, origin


def stated_ranges(program: Program, reads: tuple[Read, ...], at_start: bool = False) -> dict[Value, Range]:
    """The ranges of elements that the program assumes, or that are known of constant data. `at_start`: of what the
    caller passes, also in tensors that the program writes later."""
    assumed = program.assumptions if at_start else program.lasting_assumptions
    stated: dict[str, Assume] = {a.subject: a for a in assumed if a.of_range}
    found: dict[Value, Range] = {}
    for read in reads:
        if read.tensor in stated and read.dtype.is_integer:
            low, high = read.dtype.limits
            a = stated[read.tensor]
            found[read] = Range(
                low if a.low is None else max(low, int(a.low)), high if a.high is None else min(high, int(a.high))
            )
        elif program.tensors[read.tensor].intermediate and read.dtype.is_integer:
            derived = _derived(program, read.tensor)
            if derived is not None:
                found[read] = derived
        known = known_values(program, read.tensor) if program.data else None
        if known is not None and known.low is not None and known.high is not None:
            found[read] = Range(known.low, known.high)
    return found


def _derived(program: Program, tensor: str) -> Range | None:
    """The range of a converted tensor, from what is known of the one that it is made from."""
    made = origin(program, tensor)
    if made is None:
        return None
    read = made[0]
    return derived_range(program, tensor, _range_of(stated_ranges(program, (read,)), read))


def _range_of(ranges: Mapping[Value, Range], read: Read) -> Range:
    return ranges.get(read, Range(*read.dtype.limits))
