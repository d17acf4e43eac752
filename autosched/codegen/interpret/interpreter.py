"""`run_kernel`: a loop tree executed statement by statement, the bug detector that every lowering is tested with.

Every access is bounds-checked, reads of unwritten memory or of another warp's registers and races between parallel
iterations are errors, and parallel loops run in a shuffled order. Intrinsics run from their YAML semantics, so kernels
for absent hardware run too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from autosched.codegen.analysis.access import classify
from autosched.codegen.analysis.held_registers import held_registers
from autosched.codegen.analysis.matrix_moves import fits
from autosched.codegen.interpret.boxes import BoxMover
from autosched.codegen.interpret.concurrent import Concurrency
from autosched.codegen.interpret.emulate import RegisterEmulator
from autosched.codegen.interpret.other_warps import across_warps
from autosched.codegen.interpret.storage import Region, Storage
from autosched.codegen.interpret.subscripts import WIDTH, Env, Evaluator, Mask, compile_bool, compile_int, compile_place
from autosched.codegen.interpret.values import compile_kept, compile_value
from autosched.codegen.tree.kernel import (
    PRIVATE_SCOPES,
    WORKERS,
    Assign,
    AsyncCalls,
    AsyncCopies,
    AsyncProxyFence,
    BarrierArrive,
    BarrierWait,
    Branch,
    Chosen,
    Comment,
    Configure,
    For,
    Function,
    GuardedDispatch,
    If,
    IntrinsicCall,
    Kernel,
    KernelError,
    Lane,
    Prefetch,
    RegisterRef,
    Stmt,
    StoreFence,
    TileCopy,
    WaitCalls,
    WaitCopies,
    WarpSpecialize,
    WorkerBarrier,
    statements,
)
from autosched.codegen.tree.text import print_statement
from autosched.errors import UsageError
from autosched.ir.oracle.numerics import load, store
from autosched.ir.value import reads
from autosched.logic import Var

Runner = Callable[[Env], None]
COPIES, CALLS, ENGINE = -1, -2, -3
"""What a worker has under way: groups of copies, of calls, and of copies that the engine does."""
INDEPENDENT = ("parallel", "block.x", "block.y", "block.z", *WORKERS)
"""Loops whose iterations run in no particular order. Workers of a block keep their registers from one loop over them to
the next, and share the block's memory; what they leave in other iterations' registers they may not read either, since
each has its own index there."""


def run_kernel(
    kernel: Kernel,
    arrays: Mapping[str, npt.NDArray[Any]],
    scalars: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
) -> dict[str, npt.NDArray[Any]]:
    """Run the prepare functions, then main; answer the program's outputs by name.

    `arrays` maps the program's tensor parameters to arrays of their shapes and storage types; outputs that are not also
    inputs may be left out, and start as zeros. The arrays given stay as they are. `seed` orders parallel iterations.
    Raises UsageError for a missing or ill-shaped array, KernelError (with the statement) for a fault of the kernel.
    """
    machine = _Machine(kernel, arrays, scalars or {}, seed)
    with np.errstate(all="ignore"):
        for function in kernel.prepare:
            machine.run(function)
        machine.run(kernel.main)
    return {
        name: machine.storages[name].data.reshape(kernel.program.tensors[name].extents)
        for name in kernel.program.outputs
    }


class _Machine:
    def __init__(
        self, kernel: Kernel, arrays: Mapping[str, npt.NDArray[Any]], scalars: Mapping[str, Any], seed: int
    ) -> None:
        self.kernel = kernel
        self.order = random.Random(seed)
        self.regions: list[Region] = []
        self.block: list[Region] = []  # those of loops over the workers of a block
        self.workers: list[int] = []  # where the loops over workers stand
        self.stretches: dict[tuple[int, str], Region] = {}  # of workers since their last barrier, by depth and role
        self.concurrency = Concurrency(self.order)
        self.emulators: dict[tuple[object, ...], RegisterEmulator] = {}
        self.configured: frozenset[str] = frozenset()
        self.scalars = {name: _scalar(kernel, name, scalars) for name in kernel.program.scalars}
        self.storages = _storages(kernel, arrays, self.regions, self.block)

    def run(self, function: Function) -> None:
        self.held = held_registers(self.kernel, function.body)
        for storage in self.storages.values():
            if storage.written is not None and storage.buffer.scope in PRIVATE_SCOPES:
                storage.written[:] = False
        body = self._body(function.body)
        body({WIDTH: 1})

    def _body(self, statements: tuple[Stmt, ...]) -> Runner:
        runners = [self._statement(s) for s in statements]

        def run(env: Env) -> None:
            for runner in runners:
                runner(env)

        return run

    def _statement(self, stmt: Stmt) -> Runner:
        match stmt:
            case For():
                return self._parallel(stmt) if stmt.kind in INDEPENDENT else self._for(stmt)
            case If(condition, body):
                inner, met = self._body(body), compile_bool(condition)
                return lambda env: inner(env) if met(env) else None
            case Branch(data, body):
                inside = self._body(body)
                chosen = compile_value(data, self.storages, self.scalars, self.kernel.formulas, None)
                return lambda env: inside(env) if np.all(chosen(env, None)) else None
            case Chosen():
                return self._chosen(stmt)
            case GuardedDispatch(checks, body, fallback):
                return self._choose(checks, self._body(body), self._body(fallback))
            case Assign():
                return _located(self._assign(stmt), stmt)
            case IntrinsicCall():
                return _located(self._call(stmt), stmt)
            case AsyncCopies() | WaitCopies() | AsyncCalls() | WaitCalls():
                return _located(self._asynchronous(stmt), stmt)
            case BarrierArrive() | BarrierWait() | WarpSpecialize():
                return _located(self._synchronized(stmt), stmt)
            case TileCopy():
                return _located(BoxMover(stmt, self.storages), stmt)
            case Configure():
                return self._configure(stmt)
            case Prefetch() | AsyncProxyFence() | WorkerBarrier() | StoreFence() | Comment():
                return lambda env: None
            case _:
                assert_never(stmt)

    def _asynchronous(self, stmt: AsyncCopies | WaitCopies | AsyncCalls | WaitCalls) -> Runner:
        beside = self.concurrency
        match stmt:
            case WaitCopies(pending, engine):
                kind = ENGINE if engine else COPIES
                return lambda env: beside.wait((kind, *self.workers), pending)
            case WaitCalls(pending):
                return lambda env: beside.wait((CALLS, *self.workers), pending)
            case AsyncCalls(body):
                calls = self._body(body)
                return lambda env: beside.start_group((CALLS, *self.workers), partial(calls, dict(env)), in_order=True)
            case AsyncCopies(body, barrier, slot, boxes):
                copy, place = self._body(boxes or body), compile_int(slot)
                if not barrier:
                    kind = ENGINE if boxes else COPIES
                    return lambda env: beside.start_group((kind, *self.workers), partial(copy, dict(env)))
                return lambda env: beside.start(partial(copy, dict(env)), barrier, place(env))

    def _synchronized(self, stmt: BarrierArrive | BarrierWait | WarpSpecialize) -> Runner:
        beside = self.concurrency
        match stmt:
            case BarrierArrive(barrier, slot):
                place = compile_int(slot)
                return lambda env: self._arrive(barrier, place(env))
            case BarrierWait(barrier, slot, times, _):
                place, count = compile_int(slot), compile_int(times)
                return lambda env: self._wait(barrier, place(env), count(env))
            case WarpSpecialize(names, parts):
                bodies = [self._body(part) for part in parts]
                return lambda env: beside.run_roles(names, [partial(body, dict(env)) for body in bodies])

    def _arrive(self, barrier: str, slot: int) -> None:
        """The block's workers arrive. Where they wait for each other, that ends what they do without a barrier."""
        number = self.concurrency.signal(barrier, slot)
        if not self.concurrency.role:
            self.stretches = {at: r.arrived((barrier, slot, number)) for at, r in self.stretches.items()}

    def _wait(self, barrier: str, slot: int, times: int) -> None:
        self.concurrency.wait_for(barrier, slot, times)
        if not self.concurrency.role:
            for region in self.stretches.values():
                region.waited((barrier, slot, times))

    def _configure(self, stmt: Configure) -> Runner:
        """Registers that hold matrices: nobody touches them before they are configured, and nothing stays in them."""
        mine = {name for name, s in self.storages.items() if stmt.matrices.same(s.buffer.matrices)}
        mine = {name for name in mine if not stmt.on or fits(self.storages[name].buffer, stmt.matrices)}
        held = [self.storages[name] for name in sorted(mine)]

        def run(env: Env) -> None:
            self.configured = self.configured | mine if stmt.on else self.configured - mine
            _forget(held)

        return run

    def _ready(self, *names: str) -> Callable[[], None] | None:
        """Complains about registers of these names that hold matrices and are not configured; None where none does."""
        held = frozenset(n for n in names if self.storages[n].buffer.scope == "matrix")
        if not held:
            return None

        def check() -> None:
            if not held <= self.configured:
                raise KernelError(f"{', '.join(sorted(held - self.configured))}: registers that are not configured")

        return check

    def _chosen(self, stmt: Chosen) -> Runner:
        body, last = self._body(stmt.body), stmt.extent - 1
        number = compile_value(stmt.value, self.storages, self.scalars, self.kernel.formulas, None)

        def run(env: Env) -> None:
            env[stmt.var] = min(max(int(np.asarray(number(env, None)).flat[0]), 0), last)
            body(env)
            env.pop(stmt.var, None)

        return run

    def _choose(self, checks: tuple[str, ...], body: Runner, fallback: Runner) -> Runner:
        held = [self.storages[name] for name in checks]
        return lambda env: fallback(env) if any(s.load(0, None) for s in held) else body(env)

    def _for(self, loop: For) -> Runner:
        lower, upper, body = compile_int(loop.lower), compile_int(loop.upper), self._body(loop.body)

        def run(env: Env) -> None:
            for i in range(lower(env), upper(env), loop.step):
                env[loop.var] = i
                body(env)
            env.pop(loop.var, None)

        return run

    def _parallel(self, loop: For) -> Runner:
        """Iterations in a shuffled order; what one leaves in registers is unreadable to the next, as on threads."""
        lower, upper, body = compile_int(loop.lower), compile_int(loop.upper), self._body(loop.body)
        lost = () if loop.kind in WORKERS else sorted(_written_privately(loop, self.kernel))
        private = [self.storages[name] for name in lost]
        beside = self.concurrency
        works, block = loop.kind in WORKERS, loop.kind.startswith("block.")

        def run(env: Env) -> None:
            iterations = list(range(lower(env), upper(env), loop.step))
            self.order.shuffle(iterations)
            region = Region(loop.var)
            if works:  # without a barrier in front this is one stretch with the loop before
                around = len(self.block), beside.role
                region = self.stretches.get(around, region) if loop.no_barrier else region
                self.stretches[around] = region
            self.regions.append(region)
            if works:
                self.block.append(region)
                self.workers.append(0)
            for i in iterations:
                region.iteration = (i - lower(env)) // loop.step
                env[loop.var] = i
                _forget(private)
                if works:
                    self.workers[-1] = i
                elif block:
                    self.stretches.clear()
                    beside.begin()
                body(env)
                if block:
                    beside.end()
            _forget(private)
            self.regions.pop()
            if works:
                self.block.pop()
                self.workers.pop()
            env.pop(loop.var, None)

        return run

    def _assign(self, stmt: Assign) -> Runner:
        if (said := across_warps(stmt, self.held)) is not None:
            return _refused(said)
        storage = self.storages[stmt.buffer]
        place, guard = compile_place(stmt.index, storage, stmt.lane), compile_bool(stmt.valid)
        value = compile_value(stmt.value, self.storages, self.scalars, self.kernel.formulas, stmt.lane)
        lane, width = (stmt.lane.var if stmt.lane else None), (stmt.lane.width if stmt.lane else 1)
        lanes, dtype = np.arange(width, dtype=np.int64), storage.buffer.dtype
        register = storage.buffer.scope in ("register", "accumulator")
        offsets = classify(stmt.index, storage.buffer.shape, stmt.lane).offsets
        distinct = width == 1 or (offsets is not None and len(set(offsets)) == width)
        ready = self._ready(stmt.buffer, *(r.tensor for r in reads(stmt.value)))

        kept = compile_kept(stmt, self.storages, self.scalars, self.kernel.formulas)

        def never_written(env: Env, mask: Mask) -> npt.NDArray[np.bool_]:
            """The lanes that keep what is in an element where nothing was written yet: they read and write nothing."""
            assert kept is not None
            if storage.written is None:
                return np.zeros(width, np.bool_)
            unwritten = np.broadcast_to(~storage.written[place(env, mask)], (width,))
            if not unwritten.any():
                return unwritten
            keeping = unwritten & ~np.asarray(kept(env, mask), np.bool_)
            return keeping if mask is None else keeping & mask

        def write(env: Env, mask: Mask) -> None:
            if kept is not None and not register and (without := never_written(env, mask)).any():
                left = ~without if mask is None else mask & ~without
                if not left.any():
                    return
                mask = None if left.all() else left
            values = store(np.asarray(value(env, mask)), dtype)
            if register and mask is not None:
                values, mask = np.where(mask, values, np.zeros((), storage.data.dtype)), None
            flat = place(env, mask)
            if not distinct:
                used = np.broadcast_to(storage.numbers[flat] if isinstance(flat, slice) else flat, (width,))
                if mask is not None:
                    used = used[mask]
                if len(np.unique(used)) != len(used):
                    raise KernelError(f"two lanes write one element of {storage.buffer.name}")
            storage.store(flat, values.reshape(()) if isinstance(flat, int) else values, mask)

        def run(env: Env) -> None:
            if ready is not None:
                ready()
            env[WIDTH] = width
            if lane is not None:
                env[lane] = lanes
            mask = _mask(guard(env), width)
            if mask is None or register or mask.any():
                write(env, mask)
            env[WIDTH] = 1
            if lane is not None:
                del env[lane]

        return run

    def _call(self, stmt: IntrinsicCall) -> Runner:
        intrinsic = stmt.intrinsic
        if intrinsic.form not in self.emulators:
            self.emulators[intrinsic.form] = RegisterEmulator(intrinsic)
        emulate = self.emulators[intrinsic.form]
        operands = []
        for name, ref in stmt.operands.items():
            storage = self.storages[ref.buffer]
            operands.append((name, storage, _elements(ref, storage)))
        accumulator = self.storages[stmt.operands[emulate.target].buffer]
        taken = [o for o in operands if intrinsic.accumulates or o[0] != emulate.target]
        ready, starts = self._ready(*(ref.buffer for ref in stmt.operands.values())), compile_bool(stmt.zero_init)

        def run(env: Env) -> None:
            if ready is not None:
                ready()
            places = {name: place(env, None) for name, _, place in operands}
            cleared = bool(starts(env)) and emulate.target
            registers = {name: s.load(places[name], None) for name, s, _ in taken if name != cleared}
            if cleared:
                registers[cleared] = accumulator.data.dtype.type(0)
            result = emulate(registers)
            for name, storage, _ in operands:
                if name == emulate.target:
                    storage.store(places[name], result, None)

        return run


def _refused(said: str) -> Runner:
    def run(env: Env) -> None:
        raise KernelError(said)

    return run


def _elements(ref: RegisterRef, storage: Storage) -> Evaluator:
    """Where all elements of an instruction's operand lie."""
    if ref.lane is not None:
        return compile_place(ref.index, storage, ref.lane)
    every = Lane("every element", storage.buffer.shape[-1])
    return compile_place((*ref.index, Var(every.var)), storage, every)


def _mask(truth: Any, width: int) -> Mask:
    """The lanes for which a condition holds: None for all of them."""
    if truth is True:
        return None
    mask = truth if np.shape(truth) == (width,) else np.full(width, truth)
    return None if np.count_nonzero(mask) == width else mask


def _forget(storages: list[Storage]) -> None:
    for storage in storages:
        if storage.written is not None:
            storage.written[:] = False


def _located(runner: Runner, stmt: Stmt) -> Runner:
    """Faults name the statement and where its loops stood."""

    def run(env: Env) -> None:
        try:
            runner(env)
        except KernelError as error:
            at = ", ".join(f"{k} = {v}" for k, v in env.items() if isinstance(v, int) and k != WIDTH)
            raise type(error)(f"{error}\n  in: {print_statement(stmt)}\n  at: {at or 'no loop'}") from None

    return run


def _written_privately(loop: For, kernel: Kernel) -> set[str]:
    """Private buffers that the loop's body writes: each iteration has its own."""
    found: set[str] = set()

    for stmt in statements(loop.body):
        match stmt:
            case Assign():
                found.add(stmt.buffer)
            case IntrinsicCall(intrinsic, operands):
                found.add(operands[intrinsic.accumulator.name].buffer)
            case _:
                pass
    return {name for name in found if kernel.buffers[name].scope in PRIVATE_SCOPES}


def _storages(
    kernel: Kernel, arrays: Mapping[str, npt.NDArray[Any]], regions: list[Region], block: list[Region]
) -> dict[str, Storage]:
    program = kernel.program
    storages = {}
    for name, buffer in kernel.buffers.items():
        if buffer.scope != "global":
            data = np.zeros(buffer.shape, buffer.dtype.numpy)
            shared = None if buffer.scope in PRIVATE_SCOPES else regions
            if buffer.scope == "shared":
                shared = block  # each block has its own, its workers share it
            storages[name] = Storage(buffer, data, initialised=False, shared=shared)
            continue
        given = arrays.get(name)
        if given is None and name in program.inputs:
            raise UsageError(f"no array for the input {name}", hint=f"pass {buffer.dtype}{list(buffer.shape)}")
        if given is not None and (given.shape != buffer.shape or given.dtype != np.dtype(buffer.dtype.numpy)):
            raise UsageError(
                f"{name} is {given.dtype}{list(given.shape)}",
                hint=f"the kernel takes {np.dtype(buffer.dtype.numpy)}{list(buffer.shape)}",
            )
        read = given is not None and name in program.inputs  # what a pure output held before does not matter
        data = np.array(given, order="C") if read else np.zeros(buffer.shape, buffer.dtype.numpy)
        # A program's input is never written by anyone, so only outputs can race.
        shared = regions if name in program.written else None
        storages[name] = Storage(buffer, data, initialised=name in program.inputs, shared=shared)
    return storages


def _scalar(kernel: Kernel, name: str, scalars: Mapping[str, Any]) -> Any:
    if name not in scalars:
        raise UsageError(f"no value for the scalar {name}", hint=f"pass scalars={{{name!r}: …}}")
    dtype = kernel.program.scalars[name].dtype
    return load(np.asarray(scalars[name]).astype(dtype.numpy), dtype)
