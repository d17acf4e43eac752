"""The elements of a program's outputs that a self-test may compare: all of them, or a few of a large program.

The interpreter computes all outputs of a small program. Of a large one it computes short runs of elements, spread
evenly over each output, and of the stages no more than these depend on (`ir.oracle.slicing`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.ir.oracle.blocks import run_blocks, seconds
from autosched.ir.oracle.nests import plan
from autosched.ir.oracle.slack import Slack
from autosched.ir.oracle.slicing import Box, Slice, slice_of
from autosched.ir.oracle.tolerances import run_with_error
from autosched.ir.program import Program

RUNS, RUN = 8, 8
"""Runs of elements of each output of a large program, and how long they are."""
WHOLE_S = 0.1
"""Programs whose outputs take the interpreter longer (by its own estimate) are large."""


@dataclass(frozen=True)
class ComparedElements:
    """Of one program, which is large where its outputs take the interpreter longer than `whole_s`."""

    program: Program
    whole_s: float = WHOLE_S

    @cached_property
    def parts(self) -> tuple[tuple[dict[str, Box], Slice], ...]:
        """A box of each output, and what computes these; empty where all elements are computed."""
        program = self.program
        shapes = {name: program.tensors[name].extents for name in program.outputs}
        units = plan(program.body)
        whole = {name: tuple((0, n) for n in shape) for name, shape in shapes.items()}
        if seconds(slice_of(program, whole, units)) <= self.whole_s:
            return ()
        every = [{name: _box(shape, number) for name, shape in shapes.items()} for number in range(RUNS)]
        return tuple((boxes, slice_of(program, boxes, units)) for boxes in every)

    def places(self, name: str) -> npt.NDArray[np.int64] | None:
        """Of an output, the numbers of the elements that `run` gives; None: of all."""
        shape = self.program.tensors[name].extents
        if not self.parts:
            return None
        boxes = [np.ix_(*(np.arange(low, low + count) for low, count in boxes[name])) for boxes, _ in self.parts]
        return np.concatenate([np.ravel_multi_index(box, shape).reshape(-1) for box in boxes])

    def run(
        self, arrays: Mapping[str, Any], scalars: Mapping[str, Any], fused: Collection[str], slack: Slack
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Of each output the elements, and their tolerances (`ir.oracle.tolerances.run_with_error`)."""
        if not self.parts:
            return run_with_error(self.program, arrays, scalars, fused, slack)
        made = [run_blocks(self.program, part, boxes, arrays, scalars, fused, slack) for boxes, part in self.parts]
        values, bounds = ({n: np.concatenate([m[k][n].reshape(-1) for m in made]) for n in made[0][k]} for k in (0, 1))
        return values, bounds


def _box(shape: tuple[int, ...], number: int) -> Box:
    """One run of elements along the last dimension: the first at the beginning of an output, the last at its end."""
    if not shape:
        return ()
    at = np.unravel_index((prod(shape) - 1) * number // (RUNS - 1), shape)
    count = min(RUN, shape[-1])
    *outer, last = (int(n) for n in at)
    return (*((n, 1) for n in outer), (min(last, shape[-1] - count), count))
