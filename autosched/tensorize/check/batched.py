"""Any program of tensors run on many cases at once by the language's interpreter, over a leading axis of cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from autosched.ir.nodes import Assign, Axis, Guard, Loop, Statement
from autosched.ir.program import Program
from autosched.ir.value import Read, Value, is_value, map_value
from autosched.logic import Const, Var

Arrays = Mapping[str, npt.NDArray[np.generic]]
CASE = "case.0"  # no axis of a program can be called so


def run_batched(program: Program, arrays: Arrays, output: str) -> npt.NDArray[np.generic]:
    """`output` after one run a case of any program of tensors; arrays have shape (cases, *tensor shape)."""
    from autosched.ir.oracle.interpreter import run

    batched = _batched(program, len(next(iter(arrays.values()))))
    found: npt.NDArray[np.generic] = run(batched, {n: arrays[n] for n in batched.inputs})[output]
    return found


def _batched(program: Program, cases: int) -> Program:
    """The program over a leading dimension of independent cases."""
    head = Const(cases)

    def lift(node: Value) -> Value:
        return replace(node, index=(Var(CASE), *node.index)) if isinstance(node, Read) else node

    def statement(s: Statement) -> Statement:
        match s:
            case Assign():
                return replace(s, index=(Var(CASE), *s.index), value=map_value(s.value, lift))
            case Guard(condition) if is_value(condition):
                test = map_value(condition, lift)
                return replace(s, condition=test, body=tuple(statement(inner) for inner in s.body))
            case _:
                return replace(s, body=tuple(statement(inner) for inner in s.body))

    tensors = {n: replace(t, shape=(head, *t.shape)) for n, t in program.tensors.items()}
    body = Loop(Axis(CASE, Const(0), head), tuple(statement(s) for s in program.body))
    return replace(program, tensors=tensors, body=(body,))
