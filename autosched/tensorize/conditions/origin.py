"""Conditions on tensors that an adapter converts, restated as conditions on the parameters they are made from.

`0 <= A_u8 <= 128` with `A_u8 = u8(A) ^ 128` is `-128 <= A <= 0`: what a caller can promise, and a check can look at.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Assume
from autosched.ir.oracle import numerics
from autosched.ir.program import Program
from autosched.ir.value import Read, Value, reads
from autosched.tensorize.body.arrays import evaluate
from autosched.tensorize.body.intervals import Range, exact_range
from autosched.tensorize.conditions.weakest import range_condition
from autosched.tensorize.match_types import Condition

MOST_BITS = 16
"""Types of so many bits have their values tried one by one."""


def origin(program: Program, tensor: str) -> tuple[Read, Value] | None:
    """The element that every element of an intermediate is made from, and how; None where that is not one of a tensor
    of integers for each."""
    if not program.tensors[tensor].intermediate:
        return None
    written = [s for s in program.stages if s.assign.tensor == tensor]
    if len(written) != 1 or written[0].assign.op != "=" or written[0].reduction or written[0].guards:
        return None
    value = written[0].assign.value
    found = tuple(dict.fromkeys(reads(value)))
    if len(found) != 1 or not found[0].dtype.is_integer or not value.dtype.is_integer:
        return None
    try:
        evaluate(value, {found[0]: numerics.container(found[0].dtype)(0)})
    except KeyError:  # it depends on scalars or on where it stands, too
        return None
    return found[0], value


def derived_range(program: Program, tensor: str, known: Range) -> Range | None:
    """The range of an intermediate whose origin's elements lie within `known`."""
    made = origin(program, tensor)
    if made is None:
        return None
    read, value = made
    if known.high - known.low >= 1 << MOST_BITS:
        return exact_range(value, {read: known})
    results = _tried(read, value, known)
    return Range(int(results.min()), int(results.max()))


def at_origin(program: Program, condition: Condition) -> Condition:
    """The same condition on the parameter that its tensor is converted from, where the values for which it holds are
    one range; else as it is. Alternatives that speak of converted tensors are left out."""
    made_up = [n for n, t in program.tensors.items() if t.intermediate]
    named = tuple(t for t in condition.alternatives if not any(_mentions(t, n) for n in made_up))
    condition = replace(condition, alternatives=named)
    stated = condition.assume
    if stated is None or stated.distinct is not None or stated.subject not in program.tensors:
        return condition
    made = origin(program, stated.subject)
    if made is None or made[0].dtype.bits > MOST_BITS or program.tensors[made[0].tensor].intermediate:
        return condition
    kept = _where(made[0].dtype, *made, stated)
    if kept is None:
        return condition
    stated_there = range_condition(made[0].tensor, kept, condition.tight, named)
    return replace(stated_there, kind=condition.kind, rule=condition.rule)


def _where(dtype: DType, read: Read, value: Value, stated: Assume) -> Range | None:
    whole = Range(*dtype.limits)
    tried, results = np.arange(whole.low, whole.high + 1), _tried(read, value, whole)
    least = -np.inf if stated.low is None else stated.low
    most = np.inf if stated.high is None else stated.high
    held = tried[(results >= least) & (results <= most)]
    if not len(held) or int(held[-1] - held[0]) + 1 != len(held):
        return None
    return Range(int(held[0]), int(held[-1]))


def _tried(read: Read, value: Value, known: Range) -> npt.NDArray[np.int64]:
    """The value for each element of the range, in order."""
    elements = np.arange(known.low, known.high + 1, dtype=np.int64).astype(numerics.container(read.dtype))
    return np.asarray(np.broadcast_to(evaluate(value, {read: elements}), elements.shape), np.int64)


def _mentions(text: str, name: str) -> bool:
    return name in text.replace("[", " ").replace("(", " ").replace(")", " ").split()
