"""Boxes of a program's outputs without running all of the program: the interpreter on what they depend on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import prod
from typing import Any

import numpy as np

from autosched.ir.oracle.blas_sums import product
from autosched.ir.oracle.evaluate import Frame
from autosched.ir.oracle.interpreter import accumulates
from autosched.ir.oracle.nests import LoopNest
from autosched.ir.oracle.numerics import container, load, store
from autosched.ir.oracle.slack import NO_SLACK, Slack
from autosched.ir.oracle.slicing import Box, Slice
from autosched.ir.oracle.tolerances import allowances, run_units
from autosched.ir.program import Program
from autosched.ir.value import Call, Cast, Read, walk

PRODUCT_S, ELEMENT_S, NODE_S, CALL_S = 4e-9, 1.5e-8, 10e-9, 30e-9
"""Seconds of a core: one term of a sum of products, and one element that such a sum reads; one operation elsewhere, and
one function, of a vector."""
RUN_S = 3e-4
"""One run of a nest, however short."""


def seconds(part: Slice) -> float:
    """About how long the interpreter takes for a slice, with tolerances, in seconds of a core (within a factor of three
    where it takes long)."""
    return sum(runs * (RUN_S + _seconds(nest, points, part.boxes)) for nest, runs, points in part.counts)


def _seconds(nest: LoopNest, points: int, boxes: Mapping[str, Box]) -> float:
    """Of one run of a nest."""
    serial = {axis.name for axis in nest.axes} - nest.free
    nodes = list(walk(nest.assign.value))
    factors = [f.operand if isinstance(f, Cast) else f for f in product(nest.assign.value)]
    operands = [f for f in factors if isinstance(f, Read)]
    if accumulates(nest, serial) and len(operands) == len(factors) == 2:
        elements = max(prod(count for _, count in boxes[r.tensor]) for r in operands)
        return PRODUCT_S * points + ELEMENT_S * min(points, elements)
    calls = sum(isinstance(node, Call) for node in nodes)
    return (NODE_S * (2 + len(nodes)) + CALL_S * calls) * points


def run_blocks(
    program: Program,
    part: Slice,
    wanted: Mapping[str, Box],
    arrays: Mapping[str, Any],
    scalars: Mapping[str, Any],
    fused_stages: Collection[str] = frozenset(),
    slack: Slack = NO_SLACK,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The wanted boxes of outputs, each of its box' shape, and their tolerances (float64, of the same shape), as
    `ir.oracle.tolerances.run_with_error` gives them for whole outputs. `part` is the program's slice for these boxes.
    `arrays` and `scalars` are as `random_inputs` draws them: whole inputs, of which boxes alone are read."""
    slack_of = allowances(program, fused_stages, slack)
    fused = {new: slack_of[id(old)] for new, old in part.origin.items() if id(old) in slack_of}
    memory: dict[str, Any] = {}
    for name, box in part.boxes.items():
        dtype = program.tensors[name].dtype
        if name in program.inputs:
            piece = np.ascontiguousarray(np.asarray(arrays[name])[_slices(box)])
            memory[name] = np.array(load(piece, dtype), copy=name in program.written)
        else:
            memory[name] = np.zeros([count for _, count in box], container(dtype))
    errors: dict[str, Any] = {}
    numbers = {name: container(program.scalars[name].dtype)(value) for name, value in scalars.items()}
    run_units(part.units, Frame(memory, numbers), errors, fused)
    values: dict[str, Any] = {}
    bounds: dict[str, Any] = {}
    for name, box in wanted.items():
        inner = tuple(
            slice(low - first, low - first + count)
            for (low, count), (first, _) in zip(box, part.boxes[name], strict=True)
        )
        values[name] = store(memory[name][inner], program.tensors[name].dtype)
        bounds[name] = errors[name][inner] if name in errors else np.zeros([count for _, count in box])
    return values, bounds


def _slices(box: Box) -> tuple[slice, ...]:
    return tuple(slice(low, low + count) for low, count in box)
