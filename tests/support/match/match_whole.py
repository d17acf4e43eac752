"""Executes a whole program with one stage computed by a mapping: its stages one after the other, each a nest of its
own, as a kernel runs them. A mapping that may not be split from its neighbours shows here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from support.match.match_executor import execute

from autosched.ir.nodes import Assign, Guard, Loop, Stage, Statement
from autosched.ir.oracle.interpreter import run
from autosched.ir.program import Program
from autosched.tensorize import Mapping


def run_with(mapping: Mapping, arrays: dict[str, Any], scalars: dict[str, Any]) -> dict[str, Any]:
    """The outputs of the mapping's program; `arrays` holds every parameter's entry values and stays as it is."""
    program = mapping.program
    memory = {n: a.copy() for n, a in arrays.items()}
    for name, tensor in program.tensors.items():
        if name not in memory:
            memory[name] = np.zeros(tensor.extents, tensor.dtype.numpy)
    for stage in program.stages:
        if stage.name == mapping.stage.name:
            execute(mapping, memory)
        else:
            alone = _alone(program, stage)
            memory |= run(alone, {n: a for n, a in memory.items() if n in alone.parameters}, scalars)
    return {n: memory[n] for n in program.outputs}


def _alone(program: Program, stage: Stage) -> Program:
    """The program of one stage, every tensor a parameter."""
    body: tuple[Statement, ...] = _nest(stage, stage.assign)
    if stage.init is not None:
        first = Assign(stage.assign.tensor, stage.assign.index, "=", stage.init)
        body = (*_nest(replace(stage, axes=stage.spatial, guards=()), first), *body)
    tensors = {n: replace(t, intermediate=False) for n, t in program.tensors.items()}
    return replace(program, body=body, tensors=tensors, parameters=(*tensors, *program.scalars), symbolic={})


def _nest(stage: Stage, assign: Assign) -> tuple[Statement, ...]:
    body: tuple[Statement, ...] = (assign,)
    for guard in reversed(stage.guards):
        body = (Guard(guard, body),)
    for axis in reversed(stage.axes):
        body = (Loop(axis, body),)
    return body
