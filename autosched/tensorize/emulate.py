"""What an intrinsic computes, from its YAML alone: its semantics run by the interpreter under its numerics contract.

`kept` subnormals: the program as it stands. `flushed`: inputs and the result of every float operation become a zero of
their sign where they are subnormal, one operation at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count, product

import numpy as np
import numpy.typing as npt

from autosched.ir.dtypes import DType
from autosched.ir.program import Assign, Axis, Guard, Loop, Program, Statement, Tensor
from autosched.ir.value import Arith, Call, Cast, Index, Read, Unary, Value, is_value, map_value, reads
from autosched.logic import Const, Int, Var
from autosched.logic.expr import substitute_int
from autosched.tensorize.intrinsic import Intrinsic

Arrays = Mapping[str, npt.NDArray[np.generic]]
CASE = "case.0"  # no axis of a program can be called so


def issue(intrinsic: Intrinsic, arrays: Arrays) -> npt.NDArray[np.generic]:
    """The accumulator after one issue a case; arrays have shape (cases, *operand shape) and stay as they are."""
    cases = len(next(iter(arrays.values())))
    batched = _batched(intrinsic.program, cases)
    if intrinsic.numerics.subnormals == "flushed":
        return _flushed_run(intrinsic, batched, {n: np.array(a) for n, a in arrays.items()})
    return _run(batched, arrays)[intrinsic.accumulator.name]


def run_batched(program: Program, arrays: Arrays, output: str) -> npt.NDArray[np.generic]:
    """`output` after one run a case of any program of tensors; arrays have shape (cases, *tensor shape)."""
    batched = _batched(program, len(next(iter(arrays.values()))))
    return _run(batched, {n: arrays[n] for n in batched.inputs})[output]


def flush(values: npt.NDArray[np.generic], dtype: DType) -> npt.NDArray[np.generic]:
    """Float values with subnormals replaced by a zero of their sign."""
    if not dtype.is_float:
        return values
    size = np.dtype(dtype.numpy).itemsize
    raw = values.view(f"u{size}")
    sign = raw.dtype.type(1 << (8 * size - 1))
    stored = dtype.mantissa + (13 if dtype.name == "tf32" else 0)
    tiny = (raw & ~sign) < raw.dtype.type(1 << stored)
    return np.where(tiny, raw & sign, raw).astype(raw.dtype).view(dtype.numpy)


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


def _run(program: Program, arrays: Arrays) -> dict[str, npt.NDArray[np.generic]]:
    from autosched.ir.interpreter import run

    return run(program, dict(arrays))


def _flushed_run(
    intrinsic: Intrinsic, program: Program, arrays: dict[str, npt.NDArray[np.generic]]
) -> npt.NDArray[np.generic]:
    """Operation by operation: reduction steps in order, in each every float operation as a program of its own."""
    stage = program.stages[0]
    written = stage.assign.tensor
    memory = {n: flush(a, program.tensors[n].dtype) for n, a in arrays.items()}
    spatial = [a for a in stage.axes if a not in stage.reduction]
    value = stage.assign.value
    if stage.assign.op != "=":
        value = Arith(stage.assign.op.removesuffix("="), stage.target, value, value.dtype)
    for point in product(*(range(a.extent) for a in stage.reduction)):
        at = {a.name: Const(n) for a, n in zip(stage.reduction, point, strict=True)}

        def fixed(index: Int, at: Mapping[str, Int] = at) -> Int:
            return substitute_int(index, at)

        step = map_value(value, on_int=fixed)
        memory[written] = _steps(program, spatial, step, stage.assign.index, written, memory)
    return memory[written]


def _steps(
    program: Program,
    axes: list[Axis],
    value: Value,
    index: tuple[Index, ...],
    written: str,
    memory: Mapping[str, npt.NDArray[np.generic]],
) -> npt.NDArray[np.generic]:
    """Evaluate `value` over `axes` with a flush after each float operation; the written tensor's new contents."""
    scratch = dict(memory)
    tensors = dict(program.tensors)
    numbers = count()
    place = tuple(Var(a.name) for a in axes)
    extents = tuple(a.upper for a in axes)

    def perform(node: Value, into: str, at: tuple[Index, ...]) -> None:
        body: Statement = Assign(into, at, "=", node)
        for axis in reversed(axes):
            body = Loop(axis, (body,))
        used = {r.tensor for r in reads(node)} | {into}
        small = replace(
            program,
            tensors={n: t for n, t in tensors.items() if n in used},
            parameters=tuple(n for n in tensors if n in used),
            body=(body,),
        )
        dtype = tensors[into].dtype
        scratch[into] = flush(_run(small, {n: scratch[n] for n in small.inputs})[into], dtype)

    def visit(node: Value) -> Value:
        if not isinstance(node, Arith | Call | Cast | Unary) or not node.dtype.is_float:
            return node
        name = f"temporary.{next(numbers)}"
        tensors[name] = Tensor(name, node.dtype, extents)
        perform(node, name, place)
        return Read(name, place, node.dtype)

    perform(map_value(value, visit), written, index)
    return scratch[written]
