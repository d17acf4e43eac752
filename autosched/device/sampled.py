"""The oracle of large programs: boxes of each output, computed as the language says; the rest of it is not looked at.

A box is a range of every dimension of an output. Loops over these dimensions are cut to it, sums keep all their terms.
The first and the last corner are among the boxes (ragged tiles end there); the others lie where a seed puts them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from autosched.device.cuda.data import write_wants
from autosched.device.cuda.job import Box, Sample
from autosched.device.job import Tensor
from autosched.device.oracle import Oracle
from autosched.ir.error import run_with_error
from autosched.ir.inputs import random_inputs, split_inputs
from autosched.ir.program import Assign, Axis, Guard, Loop, Program, Stage, Statement
from autosched.ir.value import reads
from autosched.ir.work import operations
from autosched.logic import Const, Var

WHOLE_OPERATIONS = 5e8
"""Programs of fewer operations are compared whole: the interpreter takes about a second."""
BOXES = 4
BOX_ELEMENTS = 1 << 12
RUN = 262147
"""Elements of random data that longer tensors repeat: a prime, so that rows differ."""


@dataclass(frozen=True)
class Sampled:
    """`oracle.wants` and `tolerances` hold, by output, the elements of its `boxes` one box after the other (flat)."""

    oracle: Oracle
    boxes: dict[str, tuple[Box, ...]]

    @property
    def text(self) -> str:
        """What was compared, for people."""
        counts = {name: sum(prod(n for _, n in box) for box in boxes) for name, boxes in self.boxes.items()}
        shown = ", ".join(f"{count:,} of {name}" for name, count in counts.items())
        return f"elements in {BOXES} boxes, by the interpreter: {shown}"


def is_large(program: Program) -> bool:
    return operations(program) > WHOLE_OPERATIONS


def sampled(program: Program, seed: int, slack: float = 1.0) -> Sampled | None:
    """Inputs and the boxes' elements; None where the program's loops cannot be cut to boxes (a sum over an output's own
    elements, several outputs in one nest). `slack` as `ir.error.run_with_error` takes it."""
    rng = np.random.default_rng(seed)
    values, scalars = split_inputs(program, random_inputs(program, rng, RUN))
    restricted = _restricted(program)
    if any(name not in restricted for name in program.outputs):
        return None
    chosen: dict[str, tuple[Box, ...]] = {}
    parts: dict[str, list[Any]] = {}
    bounds: dict[str, list[Any]] = {}
    fused = {s.name for s in program.stages}
    shapes = {name: program.tensors[name].extents for name in program.outputs}
    # Outputs of the cut program are not filled: to it their values at entry count.
    blank = {name: np.zeros(shape, program.tensors[name].dtype.numpy) for name, shape in shapes.items()}
    for number in range(BOXES):
        boxes = {shape: _box(shape, number, rng) for shape in dict.fromkeys(shapes.values())}
        here = {name: program.tensors[name].extents for name in restricted}
        cut = _cut(program, {name: boxes[shape] for name, shape in here.items() if shape in boxes})
        if cut is None:
            return None
        wants, tolerances = run_with_error(cut, blank | values, scalars, fused, slack)
        for name, shape in shapes.items():
            box = boxes[shape]
            where = tuple(slice(low, low + n) for low, n in box)
            chosen[name] = (*chosen.get(name, ()), box)
            parts.setdefault(name, []).append(np.asarray(wants[name])[where].reshape(-1))
            whole = np.broadcast_to(np.asarray(tolerances[name], np.float64), shape)
            bounds.setdefault(name, []).append(whole[where].reshape(-1))
    wants = {n: np.concatenate(p) for n, p in parts.items()}
    tolerances = {n: _tolerance(program, n, np.concatenate(b)) for n, b in bounds.items()}
    return Sampled(Oracle(values, wants, tolerances, scalars), chosen)


def _tolerance(program: Program, name: str, bound: Any) -> Any:
    return bound if program.tensors[name].dtype.is_float or np.any(bound) else None


def _box(shape: tuple[int, ...], number: int, rng: np.random.Generator) -> Box:
    """About `BOX_ELEMENTS` elements, longest along the last dimensions."""
    lengths = [1] * len(shape)
    room = BOX_ELEMENTS
    for d in reversed(range(len(shape))):
        side = room if d == 0 else max(1, int(room ** (1 / min(d + 1, 2))))
        lengths[d] = min(shape[d], side)
        room = max(1, room // lengths[d])
    low = [0] * len(shape)
    if number == 1:
        low = [n - k for n, k in zip(shape, lengths, strict=True)]
    elif number > 1:
        low = [int(rng.integers(0, n - k + 1)) for n, k in zip(shape, lengths, strict=True)]
    return tuple(zip(low, lengths, strict=True))


def _restricted(program: Program) -> set[str]:
    """Tensors of which single elements can be computed alone: all stages that write one do so at bare axes of their
    own, over its whole shape, and every stage that is itself cut reads it at just the element that it writes."""
    plain = {s.assign.tensor for s in program.stages}
    plain -= {s.assign.tensor for s in program.stages if _axes(program, s) is None}
    while True:
        kept = set(plain)
        for stage in program.stages:
            for read in stage.reads:
                if read.tensor not in kept or read.tensor not in program.written:
                    continue
                same_shape = program.tensors[read.tensor].extents == program.tensors[stage.assign.tensor].extents
                if not (stage.assign.tensor in plain and same_shape and read.index == stage.assign.index):
                    kept.discard(read.tensor)
        if kept == plain:
            return plain
        plain = kept


def _axes(program: Program, stage: Stage) -> tuple[str, ...] | None:
    """The axis of each dimension of what a stage writes; None where they are not bare, distinct and whole."""
    axes = {a.name: a for a in stage.axes}
    names = []
    for part, extent in zip(stage.assign.index, program.tensors[stage.assign.tensor].extents, strict=True):
        if not isinstance(part, Var) or part.name not in axes:
            return None
        axis = axes[part.name]
        if axis.lower != Const(0) or axis.upper != Const(extent):
            return None
        names.append(part.name)
    return tuple(names) if len(set(names)) == len(names) else None


def _cut(program: Program, boxes: dict[str, Box]) -> Program | None:
    """The program with loops over the dimensions of the tensors of `boxes` cut to these. None where such a loop is also
    around a stage that has to be whole: but for what a row is summed up in, and read from in that row alone."""
    ranges: dict[str, tuple[int, int]] = {}
    for stage in program.stages:
        box = boxes.get(stage.assign.tensor)
        if box is not None:
            names = _axes(program, stage)
            assert names is not None
            ranges |= dict(zip(names, box, strict=True))
    for stage in program.stages:
        cut = stage.assign.tensor not in boxes and any(a.name in ranges for a in stage.axes)
        if cut and not _of_row(program, stage):
            return None

    def shorter(stmt: Statement) -> Statement:
        match stmt:
            case Loop(axis, body):
                if axis.name in ranges:
                    low, length = ranges[axis.name]
                    axis = Axis(axis.name, Const(low), Const(low + length))
                return replace(stmt, axis=axis, body=tuple(map(shorter, body)))
            case Guard(_, body):
                return replace(stmt, body=tuple(map(shorter, body)))
            case Assign():
                return stmt

    return replace(program, body=tuple(map(shorter, program.body)))


def _of_row(program: Program, stage: Stage) -> bool:
    """Whether a stage's elements, each of an iteration of bare axes, are read in that iteration only."""
    tensor, index = stage.assign.tensor, stage.assign.index
    if not program.tensors[tensor].intermediate or _axes(program, stage) is None:
        return False
    every = [r for s in program.stages for r in (*s.reads, *(reads(s.init) if s.init is not None else ()))]
    return all(r.index == index for r in every if r.tensor == tensor)


def tensors_of(program: Program, found: Sampled) -> tuple[tuple[Tensor, ...], tuple[Sample, ...]]:
    """The program's tensors, and where the boxes' elements lie in `.want` and `.tol`."""
    tensors: list[Tensor] = []
    samples: list[Sample] = []
    for name in (p for p in program.parameters if p in program.tensors):
        tensor = program.tensors[name]
        storage = np.dtype(tensor.dtype.numpy)
        size = prod(tensor.extents) * storage.itemsize
        is_input, is_output = name in found.oracle.inputs, name in found.oracle.wants
        tensors.append(Tensor(name, storage.name, tensor.extents, size, is_input, is_output))
        start = 0
        for box in found.boxes.get(name, ()):
            samples.append(Sample(name, box, start))
            start += samples[-1].elements
    return tuple(tensors), tuple(samples)


def write_sampled(program: Program, found: Sampled, folder: Path) -> tuple[tuple[Tensor, ...], tuple[Sample, ...]]:
    """As `oracle.write`; `.want` and `.tol` hold the boxes' elements, which the samples say the places of."""
    oracle = found.oracle
    for name, values in oracle.inputs.items():
        np.ascontiguousarray(values, program.tensors[name].dtype.numpy).tofile(folder / f"{name}.in")
    write_wants(folder, {n: program.tensors[n].dtype.numpy for n in oracle.wants}, oracle.wants, oracle.tolerances)
    return tensors_of(program, found)
