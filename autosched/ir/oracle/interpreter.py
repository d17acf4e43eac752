"""The oracle: what a program computes, exactly as the language says, in vectorised numpy.

`nests` decides what may run at once; `evaluate` computes one operation at a time in the program's dtypes. Float sums
run in program order, each step a slab over the independent axes; integer sums run in any order, exact modulo 2**bits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from autosched.errors import UsageError
from autosched.ir.arguments import GivenScalar, refuse_masked
from autosched.ir.dtypes import DType
from autosched.ir.nodes import Axis, Tensor
from autosched.ir.oracle import blas_sums as contract
from autosched.ir.oracle.distance import Ranges
from autosched.ir.oracle.evaluate import Frame, arith, both, condition, fetch, inside, positions, put, value
from autosched.ir.oracle.nests import LoopNest, Serial, Unit, accesses, plan
from autosched.ir.oracle.numerics import container, load, store
from autosched.ir.oracle.sequential import SequentialCompiler
from autosched.ir.oracle.spans import Span, points, spans
from autosched.ir.program import Program
from autosched.ir.sizes import sizes_from_shapes, with_sizes
from autosched.ir.value import Condition
from autosched.logic import Int, evaluate, free_vars, interval

SLAB = 2**22
"""Elements computed at once; larger slabs only cost memory."""
SCALAR = 8
"""Up to so many independent points, a nest runs point by point."""
RUN = 2**18
"""Terms of a reduction that are computed together when the independent axes are few."""
LONG = 512
"""Elements from which adding slab to slab takes less time than numpy's `accumulate`, which keeps all partial sums."""


def run(program: Program, arrays: Mapping[str, Any], scalars: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The program's outputs for `arrays` (one an input tensor, by name) and run-time `scalars`.

    Inputs stay as they are. Arrays of pure outputs may be left out; given ones only have their shape checked.
    UsageError for a missing or unknown name, a wrong dtype or shape, overlapping arrays, or an index out of its tensor.
    """
    program, held, numbers = prepare(program, arrays, scalars or {})
    memory = execute(program, held, numbers)
    return {n: store(memory[n], program.tensors[n].dtype) for n in program.outputs}


def prepare(
    program: Program, arrays: Mapping[str, Any], scalars: Mapping[str, Any]
) -> tuple[Program, dict[str, Any], dict[str, Any]]:
    """The program with all sizes known, and checked copies of the data in container form."""
    known = [p for p in program.parameters if p in program.tensors]
    for name in arrays:
        if name not in known:
            raise UsageError(f"{program.name} has no tensor {name!r}", hint=f"its tensors: {', '.join(known)}")
    if program.symbolic:
        shapes = {n: np.shape(a) for n, a in arrays.items()}
        program = with_sizes(program, sizes_from_shapes(program, shapes))
    held: dict[str, Any] = {}
    given = {n: _checked(program.tensors[n], arrays[n]) for n in known if n in arrays}
    _check_overlap(program, given)
    for name, tensor in program.tensors.items():
        if name in program.inputs:
            if name not in given:
                raise UsageError(
                    f"{program.name} needs the array {name}: {tensor.dtype}[{', '.join(map(str, tensor.shape))}]"
                )
            data = load(given[name], tensor.dtype)
            held[name] = data.copy() if name in program.written and data is given[name] else data
        else:
            held[name] = np.zeros(tensor.extents, container(tensor.dtype))
    return program, held, _scalars(program, scalars)


def _checked(tensor: Tensor, array: Any) -> Any:
    refuse_masked(tensor.name, array)
    data = np.asarray(array)
    if data.dtype != tensor.dtype.numpy:
        name = np.dtype(tensor.dtype.numpy).name
        hint = f"convert it with .astype({name!r})"
        if tensor.dtype.scale and data.dtype == np.uint8:
            hint = f"read its bytes as scales: .view({name!r})"
        raise UsageError(f"{tensor.name} is {tensor.dtype} ({name}), and the array is {data.dtype}", hint=hint)
    if data.shape != tensor.extents:
        raise UsageError(f"{tensor.name} has shape {tensor.extents}, and the array {data.shape}")
    return data


def _check_overlap(program: Program, arrays: Mapping[str, Any]) -> None:
    names = list(arrays)
    for k, a in enumerate(names):
        for b in names[k + 1 :]:
            if (a in program.written or b in program.written) and np.may_share_memory(arrays[a], arrays[b]):
                raise UsageError(
                    f"the arrays of {a} and {b} overlap", hint="different parameters are different memory; pass a copy"
                )


def _scalars(program: Program, scalars: Mapping[str, Any]) -> dict[str, Any]:
    for name in scalars:
        if name not in program.scalars:
            raise UsageError(
                f"{program.name} has no run-time scalar {name!r}",
                hint=f"it has: {', '.join(program.scalars) or 'none'}",
            )
    found = {}
    for name, parameter in program.scalars.items():
        if name not in scalars:
            raise UsageError(f"{program.name} needs a value for the scalar {name}: {parameter.dtype}")
        found[name] = load(GivenScalar(name, parameter.dtype).stored(scalars[name]), parameter.dtype)[()]
    return found


def execute(program: Program, memory: dict[str, Any], scalars: Mapping[str, Any]) -> dict[str, Any]:
    """Run a program without symbolic sizes on container arrays, in place; returns `memory`."""
    frame = Frame(memory, scalars)
    with np.errstate(all="ignore"):
        for unit in plan(program.body):
            run_unit(unit, frame)
    return memory


def run_unit(unit: Unit, frame: Frame) -> None:
    """Run one unit; axes of `frame.env` are fixed."""
    if is_scalar(unit, _known(frame.env)):
        SequentialCompiler(frame.arrays, frame.scalars).unit(unit)(dict(frame.env))
        return
    match unit:
        case LoopNest():
            NestRun(unit, frame).go()
        case Serial(Axis() as axis, body):
            for k in range(int(evaluate(axis.lower, frame.env)), int(evaluate(axis.upper, frame.env))):
                inner = frame.with_slab([], {axis.name: k})
                for part in body:
                    run_unit(part, inner)
        case Serial(test, body):
            assert not isinstance(test, Axis)
            if bool(np.all(condition(test, frame, None))):
                for part in body:
                    run_unit(part, frame)


class NestRun:
    """One nest, with the axes around it fixed."""

    def __init__(self, nest: LoopNest, frame: Frame) -> None:
        self.nest, self.assign, self.location = nest, nest.assign, nest.assign.location
        self.frame = Frame(frame.arrays, frame.scalars, dict(frame.env), location=self.location)
        self.spans, self.conditions = spans(nest, _known(frame.env))
        free = nest.free
        self.serial = [s for s in self.spans if s.name not in free]
        self.vector = [s for s in self.spans if s.name in free]
        while prod(s.count for s in self.vector) > SLAB:
            self.serial.append(self.vector.pop(0))  # the outermost; order of the serial ones is restored below
        order = [s.name for s in self.spans]
        self.serial.sort(key=lambda s: order.index(s.name))

    def go(self) -> None:
        if any(s.count <= 0 for s in self.spans):
            return
        if accumulates(self.nest, {s.name for s in self.serial}):
            self.reduce()
            return
        for fixed in points(self.serial):
            self.step(self.slab([], fixed))

    def slab(self, inner: list[tuple[str, int, int]], fixed: Mapping[str, int]) -> Frame:
        return self.frame.with_slab([*inner, *((s.name, s.first, s.count) for s in self.vector)], fixed)

    def mask(self, frame: Frame) -> Any:
        return conjunction(self.conditions, frame)

    def step(self, frame: Frame) -> None:
        """One plain assignment over the slab: all reads, then all writes."""
        a = self.assign
        mask = self.mask(frame)
        if mask is not None and not np.any(mask):
            return
        new = value(a.value, frame, mask)
        if a.op != "=":
            new = arith(a.op[:-1], fetch(frame, a.tensor, a.index, mask), new, a.value.dtype)
        put(frame, a.tensor, a.index, np.array(new, copy=True), mask)

    # -- reductions

    def reduce(self) -> None:
        a = self.assign
        base = self.slab([], {s.name: s.first for s in self.serial})
        base.lenient = True
        where = self.positions_inside(base)
        shape = tuple(s.count for s in self.vector)
        total = np.array(np.broadcast_to(fetch(base, a.tensor, a.index), shape))
        if a.value.dtype.is_integer and a.op in ("+=", "-="):
            exact = contract.integer_sum(a.value, self.conditions, self.frame, self.serial, self.vector)
            if exact is not None:
                total = arith(a.op[0], total, exact, a.value.dtype)
                put(base, a.tensor, a.index, total, where)
                return
        for fixed, inner in self.chunks():
            frame = self.slab(inner, fixed)
            total = self.accumulate(total, frame, len(inner))
        put(base, a.tensor, a.index, total, where)

    def positions_inside(self, frame: Frame) -> Any:
        return inside(frame, self.assign.tensor, positions(frame, self.assign.index, None), None)

    def chunks(self) -> Iterator[tuple[dict[str, int], list[tuple[str, int, int]]]]:
        """Serial axes in program order: outer ones fixed, inner ones as slab dimensions of at most RUN terms."""
        room = RUN // max(1, prod(s.count for s in self.vector))
        inner: list[Span] = []
        outer = list(self.serial)
        while outer and outer[-1].count <= room:
            room //= outer[-1].count
            inner.insert(0, outer.pop())
        whole = [(s.name, s.first, s.count) for s in inner]
        cut = outer.pop() if outer and room > 1 else None
        for fixed in points(outer):
            if cut is None:
                yield fixed, whole
                continue
            for start in range(cut.first, cut.first + cut.count, room):
                yield fixed, [(cut.name, start, min(room, cut.first + cut.count - start)), *whole]

    def accumulate(self, total: Any, frame: Frame, inner: int) -> Any:
        """`total` with the slab's terms added in order of its first `inner` dimensions."""
        a = self.assign
        op, dtype = a.op[:-1], a.value.dtype
        mask = self.mask(frame)
        if mask is not None and not np.any(mask):
            return total
        terms = value(a.value, frame, mask)
        if inner == 0:
            new = arith(op, total, terms, dtype)
            return new if mask is None else np.where(mask, new, total)
        shape = tuple(e for _, _, e in sorted(frame.slab.values()))
        if mask is not None:
            terms = np.where(mask, terms, identity(op, dtype))
        terms = np.broadcast_to(terms, shape).reshape(-1, *shape[inner:])
        ufunc = {"+": np.add, "-": np.subtract, "*": np.multiply, "min": np.minimum, "max": np.maximum}[op]
        if dtype.is_integer or op in ("min", "max"):
            joined = {"-": np.add}.get(op, ufunc)
            return arith(op, total, joined.reduce(terms, axis=0, dtype=terms.dtype), dtype)
        if container(dtype) != dtype.numpy or dtype.padding or terms[0].size > LONG:
            for term in terms:
                total = arith(op, total, term, dtype)
            return total
        return ufunc.accumulate(np.concatenate([np.asarray(total)[None], terms]), axis=0)[-1]


def identity(op: str, dtype: DType) -> Any:
    """A term that changes nothing: -0.0 for sums, since x + -0.0 is x even for x = -0.0."""
    kind = container(dtype)
    if op == "*":
        return kind(1)
    if op in "+-":
        return kind(-0.0 if dtype.is_float and op == "+" else 0)
    if dtype.is_integer:
        return kind(dtype.limits[0] if op == "max" else dtype.limits[1])
    return kind(-np.inf if op == "max" else np.inf)


def is_scalar(unit: Unit, known: Ranges) -> bool:
    """Whether slabs would hold next to nothing: no nest has more than SCALAR independent points, and none just sums."""
    if isinstance(unit, Serial):
        level = unit.level
        inner = dict(known)
        if isinstance(level, Axis):
            low, high = interval(level.lower, known)[0], interval(level.upper, known)[1] - 1
            inner[level.name] = (low, max(low, high))
        return all(is_scalar(u, inner) for u in unit.body)
    found, _ = spans(unit, known)
    serial = [s for s in found if s.name not in unit.free]
    if not serial or prod(s.count for s in found if s.name in unit.free) > SCALAR:
        return False
    return not accumulates(unit, {s.name for s in serial})


def _known(fixed: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    return {n: (int(v), int(v)) for n, v in fixed.items()}


def accumulates(nest: LoopNest, serial: Collection[str]) -> bool:
    """Whether the serial axes only accumulate into elements that the other axes address."""
    a = nest.assign
    if a.op == "=" or not serial or not all(isinstance(i, Int) for i in a.index):
        return False
    if any(not free_vars(i).isdisjoint(serial) for i in a.index if isinstance(i, Int)):
        return False
    return not any(x.tensor == a.tensor and not x.written for x in accesses(nest))


def conjunction(conditions: list[Condition], frame: Frame) -> Any:
    """The mask of points at which all conditions hold, each read only where the ones before it do; None: everywhere."""
    mask: Any = None
    for test in conditions:
        here = condition(test, frame, mask)
        if here is True:
            continue
        mask = both(mask, here)
    return mask
