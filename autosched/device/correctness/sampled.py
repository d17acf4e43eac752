"""The oracle of large programs: boxes of each output, computed as the language says, through all stages and no more of
them than the boxes depend on (`ir.oracle.slicing`). What lies outside is compared between kernels
(`device.correctness.compare.furthest`).

A box is a range of every dimension of an output. The first and the last corner are among the boxes (ragged tiles end
there), then two at edges; the others lie where a seed puts them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from autosched.device.correctness import oracle as oracles
from autosched.device.correctness.no_data import data_errors
from autosched.device.correctness.oracle import Oracle
from autosched.device.correctness.wants import SAMPLES, write_wants
from autosched.device.job import Box, Sample, TensorFile
from autosched.ir.oracle.blocks import run_blocks, seconds
from autosched.ir.oracle.inputs import split_inputs
from autosched.ir.oracle.nests import Unit, plan
from autosched.ir.oracle.sets.domains import DECIDED, ENOUGH, decided, drawn_inputs
from autosched.ir.oracle.slack import NO_SLACK, Slack
from autosched.ir.oracle.slicing import slice_of
from autosched.ir.program import Program

WHOLE_S = 0.5
"""Programs whose outputs the interpreter computes in about this many seconds are compared whole."""
BOXES = 6
BOX_ELEMENTS, LEAST = 1 << 12, 16
BOX_S, WORTH, FEW = 0.1, 0.8, 3
"""Seconds that a box may take; where it would take longer it has fewer elements, but `LEAST`, as long as a quarter of a
side takes less than `WORTH` as long. Where one element takes as long there are few boxes."""
RUN = 262147
"""Elements of random data that longer tensors repeat: a prime, so that rows differ."""


@dataclass(frozen=True)
class Sampled:
    """`oracle.wants` and `tolerances` hold, by output, the elements of its `boxes` one box after the other (flat).
    `program` is whose outputs these are, run with `slack`."""

    oracle: Oracle
    boxes: dict[str, tuple[Box, ...]]
    program: Program = field(repr=False)
    slack: Slack = NO_SLACK

    @property
    def text(self) -> str:
        """What was compared, for people."""
        counts = {name: sum(prod(n for _, n in box) for box in boxes) for name, boxes in self.boxes.items()}
        shown = ", ".join(f"{count:,} of {name}" for name, count in counts.items())
        return f"elements in {max(map(len, self.boxes.values()))} boxes, by the interpreter: {shown}"

    def around(self, output: str, index: tuple[int, ...]) -> Sampled:
        """With one more box of an output, which holds the element at `index`."""
        extents = self.program.tensors[output].extents
        lengths = self.boxes[output][0]
        box = tuple(
            (min(max(0, at - n // 2), extent - n), n)
            for at, (_, n), extent in zip(index, lengths, extents, strict=True)
        )
        values, bounds = _elements(self.program, plan(self.program.body), {output: box}, self.oracle, self.slack)
        wants, tolerances = dict(self.oracle.wants), dict(self.oracle.tolerances)
        wants[output] = np.concatenate([wants[output], values[output]])
        before = tolerances[output]
        known = np.zeros(len(self.oracle.wants[output])) if before is None else before
        both = np.concatenate([known, bounds[output]])
        tolerances[output] = _tolerance(self.program, output, both)
        oracle = Oracle(self.oracle.inputs, wants, tolerances, self.oracle.scalars)
        return Sampled(oracle, self.boxes | {output: (*self.boxes[output], box)}, self.program, self.slack)


Expected: TypeAlias = Oracle | Sampled


def expected(
    program: Program, seed: int, slack: Slack = NO_SLACK, inputs: Mapping[str, Any] | None = None
) -> Expected:
    """Inputs and outputs, or boxes of the outputs of large programs; takes its arguments as `oracle.compute` does."""
    if not program.symbolic and is_large(program):
        made = decided(program, lambda domain: sampled(program, seed, domain=domain), says)
        return made if made is not None and not inputs and slack == NO_SLACK else sampled(program, seed, slack, inputs)
    return oracles.compute(program, seed, slack=slack, inputs=inputs)


def says(found: Expected) -> float:
    """The least share of an output that is compared in earnest (`oracle.says`)."""
    return oracles.says(found.oracle)


def remark(found: Expected) -> str:
    """What is to be said of data that say little; empty where they say enough."""
    share = says(found)
    return "" if share >= ENOUGH else f"{1 - share:.0%} of an output is NaN, infinite or without a tolerance"


def is_large(program: Program) -> bool:
    """Whether all outputs would take the interpreter longer than `WHOLE_S`."""
    return whole_s(program) > WHOLE_S


def whole_s(program: Program) -> float:
    """About how many seconds all outputs would take the interpreter."""
    whole = {name: tuple((0, n) for n in program.tensors[name].extents) for name in program.outputs}
    return seconds(slice_of(program, whole))


def data_set_s(program: Program) -> float:
    """About how many seconds what is compared on one data set takes the interpreter."""
    if not is_large(program):
        return whole_s(program)
    units = plan(program.body)
    lengths, count = _lengths(program, units)
    middle = {
        n: tuple(((e - k) // 2, k) for e, k in zip(program.tensors[n].extents, sides, strict=True))
        for n, sides in lengths.items()
    }
    return count * seconds(slice_of(program, middle, units))


def sampled(
    program: Program,
    seed: int,
    slack: Slack = NO_SLACK,
    inputs: Mapping[str, Any] | None = None,
    box_elements: int = BOX_ELEMENTS,
    domain: str | None = DECIDED,
) -> Sampled:
    """Inputs and the boxes' elements, as `device.correctness.oracle.compute` takes its arguments. A box has some
    `box_elements`."""
    rng = np.random.default_rng(seed)
    values, scalars = split_inputs(program, drawn_inputs(program, rng, RUN, domain) | dict(inputs or {}))
    units = plan(program.body)
    lengths, count = _lengths(program, units, box_elements)
    chosen: dict[str, tuple[Box, ...]] = {}
    parts: dict[str, list[Any]] = {}
    bounds: dict[str, list[Any]] = {}
    given = Oracle(values, {}, {}, scalars)
    for number in range(count):
        boxes = _boxes(program, lengths, number, rng)
        boxes = {name: box for name, box in boxes.items() if box not in chosen.get(name, ())}
        if not boxes:
            continue  # all that there is
        wants, tolerances = _elements(program, units, boxes, given, slack)
        for name, box in boxes.items():
            chosen[name] = (*chosen.get(name, ()), box)
            parts.setdefault(name, []).append(wants[name])
            bounds.setdefault(name, []).append(tolerances[name])
    found = {n: np.concatenate(p) for n, p in parts.items()}
    allowed = {n: _tolerance(program, n, np.concatenate(b)) for n, b in bounds.items()}
    return Sampled(Oracle(values, found, allowed, scalars), chosen, program, slack)


def _elements(
    program: Program, units: tuple[Unit, ...], boxes: Mapping[str, Box], given: Oracle, slack: Slack
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The elements of one box an output, flat, and their tolerances."""
    fused = {s.name for s in program.stages}
    part = slice_of(program, boxes, units)
    with data_errors(program):
        values, bounds = run_blocks(program, part, boxes, given.inputs, given.scalars, fused, slack)
    return {n: v.reshape(-1) for n, v in values.items()}, {n: b.reshape(-1) for n, b in bounds.items()}


def _tolerance(program: Program, name: str, bound: Any) -> Any:
    return bound if program.tensors[name].dtype.is_float or np.any(bound) else None


def _lengths(
    program: Program, units: tuple[Unit, ...], elements: int = BOX_ELEMENTS
) -> tuple[dict[str, tuple[int, ...]], int]:
    """A box' sides, by output, and how many boxes there are to be. Some `elements`, longest along the last
    dimensions, or fewer where that takes long; what is cut then is what saves most (rows of a product behind a product,
    say)."""
    shapes = {name: program.tensors[name].extents for name in program.outputs}
    each = {shape: _sides(shape, elements) for shape in dict.fromkeys(shapes.values())}

    def cost(sides: Mapping[tuple[int, ...], tuple[int, ...]]) -> float:
        middle = {n: tuple(((e - k) // 2, k) for e, k in zip(s, sides[s], strict=True)) for n, s in shapes.items()}
        return seconds(slice_of(program, middle, units))

    now = cost(each)
    while now > BOX_S:
        tried: list[tuple[float, int, dict[tuple[int, ...], tuple[int, ...]]]] = []
        for shape, sides in each.items():
            for d, side in enumerate(sides):
                if side > 1 and prod(sides) > LEAST:
                    fewer = each | {shape: (*sides[:d], -(-side // 4), *sides[d + 1 :])}
                    tried.append((cost(fewer), len(tried), fewer))
        if not tried or min(tried)[0] > WORTH * now:
            break
        now, _, each = min(tried)
    return {name: each[shape] for name, shape in shapes.items()}, BOXES if now <= BOX_S else FEW


def _sides(shape: tuple[int, ...], elements: int) -> tuple[int, ...]:
    lengths = [1] * len(shape)
    room = elements
    for d in reversed(range(len(shape))):
        side = room if d == 0 else max(1, int(room ** (1 / min(d + 1, 2))))
        lengths[d] = min(shape[d], side)
        room = max(1, room // lengths[d])
    return tuple(lengths)


def _boxes(
    program: Program, lengths: Mapping[str, tuple[int, ...]], number: int, rng: np.random.Generator
) -> dict[str, Box]:
    """One box an output. Outputs of equal dimensions get it in the same place: what they depend on is shared then."""
    most = max([1, *map(len, lengths.values())])
    where = [0.0, 1.0][number : number + 1] * most or list(rng.random(most))
    if number in (2, 3):  # at an edge: anywhere along one dimension
        free = int(rng.integers(most))
        where = [share if d == free else float(round(share)) for d, share in enumerate(where)]
    boxes = {}
    for name, sides in lengths.items():
        extents = program.tensors[name].extents
        lows = [round(share * (e - k)) for share, e, k in zip(where, extents, sides, strict=False)]
        boxes[name] = tuple(zip(lows, sides, strict=True))
    return boxes


def tensors_of(program: Program, found: Expected) -> tuple[tuple[TensorFile, ...], tuple[Sample, ...]]:
    """The program's tensors, and where the boxes' elements lie in `.want` and `.tol`, if there are boxes."""
    tensors: list[TensorFile] = []
    samples: list[Sample] = []
    boxes = found.boxes if isinstance(found, Sampled) else {}
    for name in (p for p in program.parameters if p in program.tensors):
        tensor = program.tensors[name]
        storage = np.dtype(tensor.dtype.numpy)
        size = prod(tensor.extents) * storage.itemsize
        is_input, is_output = name in found.oracle.inputs, name in found.oracle.wants
        tensors.append(TensorFile(name, storage.name, tensor.extents, size, is_input, is_output))
        start = 0
        for box in boxes.get(name, ()):
            samples.append(Sample(name, box, start))
            start += samples[-1].elements
    return tuple(tensors), tuple(samples)


def write_data(program: Program, found: Expected, folder: Path) -> tuple[tuple[TensorFile, ...], tuple[Sample, ...]]:
    """Write the data files that the worker reads. What they are, in the order of the program's tensors; where `.want`
    and `.tol` hold boxes, which."""
    for name, values in found.oracle.inputs.items():
        np.ascontiguousarray(values, program.tensors[name].dtype.numpy).tofile(folder / f"{name}.in")
    return write_outputs(program, found, folder)


def write_outputs(program: Program, found: Expected, folder: Path) -> tuple[tuple[TensorFile, ...], tuple[Sample, ...]]:
    """The outputs' part of `write_data`; `samples.json` says where the boxes lie, too."""
    oracle = found.oracle
    write_wants(folder, {n: program.tensors[n].dtype.numpy for n in oracle.wants}, oracle.wants, oracle.tolerances)
    tensors, samples = tensors_of(program, found)
    if isinstance(found, Sampled):
        (folder / SAMPLES).write_text(json.dumps([(s.output, s.start, s.box) for s in samples]))
    return tensors, samples
