"""What a program must do at least: operations on valid elements, bytes in and out."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from autosched.ir.program import Program, Stage
from autosched.ir.value import is_value
from autosched.ir.work import operations
from autosched.logic import free_vars
from autosched.logic.readings import evaluate


@dataclass(frozen=True)
class Work:
    """`operations`: two a multiply-add, padding not counted. Bytes: every input read once, every output written."""

    operations: float
    bytes_in: int
    bytes_out: int


def work_of(program: Program) -> Work:
    """The least work of a program without symbolic sizes."""
    # Two operations, the multiply and the add, fall away where a guard does not hold.
    lost = sum(2 * prod(a.extent for a in s.axes) * (1 - valid_share(s)) for s in program.stages if s.guards)
    sizes = {n: t.dtype.bits * prod(t.extents) // 8 for n, t in program.tensors.items()}
    read = sum(sizes[n] for n in program.inputs if n in sizes)
    return Work(operations(program) - lost, read, sum(sizes[n] for n in program.outputs))


def valid_share(stage: Stage) -> float:
    """The share of a stage's iterations in which its guards hold; 1 where they depend on data."""
    guards = [g for g in stage.guards if not is_value(g)]
    names = sorted(set().union(*(free_vars(g) for g in guards)))
    axes = {a.name: a for a in stage.axes}
    if not names or not set(names) <= set(axes):
        return 1.0
    values = np.meshgrid(*(np.arange(axes[n].extent) for n in names), indexing="ij", sparse=True)
    shape = tuple(axes[n].extent for n in names)
    holds = np.ones(shape, bool)
    for guard in guards:
        holds &= np.broadcast_to(evaluate(guard, dict(zip(names, values, strict=True))), shape)
    return float(holds.mean())
