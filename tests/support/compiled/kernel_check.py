"""`check_kernel`: structural invariants of a loop tree that every printer and the interpreter rely on.

A violation is a mistake of the lowering, never of a person, so it is a `KernelError` (an AssertionError), not an
`AutoschedError`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import assert_never

from autosched.codegen.analysis.matrix_moves import move_of
from autosched.codegen.tree.kernel import (
    PRIVATE_SCOPES,
    SCOPES,
    WORKERS,
    Assign,
    AsyncCalls,
    AsyncCopies,
    AsyncProxyFence,
    BarrierArrive,
    BarrierWait,
    Branch,
    Buffer,
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
from autosched.ir.value import Call, FromIndex, Logical, Read, Scalar, Select, Value, is_value, reads, walk
from autosched.logic import FALSE, Bool, Const, Expr, Int, Var, free_vars

LOOP_KINDS = ("serial", "unrolled", "parallel", "block.x", "block.y", "block.z", *WORKERS)

MOST_DIMENSIONS, MOST_SIDE = 5, 256
"""Of what TMA moves at once (CUDA driver API, cuTensorMapEncodeTiled)."""


def check_kernel(kernel: Kernel) -> None:
    """Raise KernelError at the first violated invariant of `kernel`."""
    for name, buffer in kernel.buffers.items():
        _require(name == buffer.name, f"buffer {buffer.name} is listed as {name}")
        _require(buffer.scope in SCOPES, f"buffer {name}: unknown scope {buffer.scope!r}")
        _require(all(n > 0 for n in buffer.shape), f"buffer {name}: empty shape {buffer.shape}")
        if buffer.scope == "register":
            _require(len(buffer.shape) >= 1, f"register buffer {name} has no element dimension")
        if buffer.scope == "matrix":
            held = buffer.matrices
            _require(held is not None, f"matrix buffer {name} names no registers")
            assert held is not None
            last = buffer.first + buffer.elements // buffer.shape[-1]
            _require(last <= held.count, f"matrix buffer {name} takes register {last - 1} of {held.count}")
            rows, rest = divmod(buffer.shape[-1], held.row_elements(buffer.dtype))
            size = buffer.shape[-1] * buffer.dtype.bits
            some = rows == held.rows or (held.rows_at is not None and 0 < rows < held.rows)
            _require(some and not rest, f"matrix buffer {name}: {size} bits a register")
        if buffer.scope in ("global", "packed"):
            origin = buffer.origin or name
            _require(origin in kernel.program.tensors, f"buffer {name}: the program has no tensor {origin}")
    _require(kernel.threads >= 1, f"threads {kernel.threads} is below 1")
    filled: set[str] = set()
    for function in kernel.prepare:
        packed = [b for b in function.buffers if b in kernel.buffers and kernel.buffers[b].scope == "packed"]
        targets = [b for b in packed if b not in filled]
        _require(len(targets) == 1, f"{function.name} fills {len(targets)} packed buffers, not one")
        _require(function.buffers[-1] == targets[0], f"{function.name}: what it fills is not its last buffer")
        filled.update(targets)
        _Checker(kernel, function, writable=frozenset(targets)).run()
    main = kernel.main
    for name in main.buffers:
        _require(name in kernel.buffers, f"{main.name}: buffer {name} is not declared")
        if kernel.buffers[name].scope == "packed":
            _require(name in filled, f"{main.name}: no prepare function fills {name}")
    written = {n for n in main.buffers if kernel.buffers[n].scope == "workspace"}
    written |= {n for n in main.buffers if n in kernel.program.written and kernel.buffers[n].scope == "global"}
    _Checker(kernel, main, writable=frozenset(written)).run()


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise KernelError(message)


@dataclass
class _Checker:
    kernel: Kernel
    function: Function
    writable: frozenset[str]
    variables: dict[str, str] = field(default_factory=dict)  # variable in scope -> its loop's kind, or "lane"

    def run(self) -> None:
        names = self.function.buffers
        self._require(len(set(names)) == len(names), "a buffer is passed twice")
        for name in names:
            self._require(name in self.kernel.buffers, f"buffer {name} is not declared")
            scope = self.kernel.buffers[name].scope
            self._require(scope not in PRIVATE_SCOPES, f"{scope} buffer {name} cannot be passed")
        self._body(self.function.body)

    def _require(self, condition: bool, message: str) -> None:
        _require(condition, f"{self.function.name}: {message}")

    def _body(self, body: Iterable[Stmt]) -> None:
        for stmt in body:
            self._statement(stmt)

    def _statement(self, stmt: Stmt) -> None:
        match stmt:
            case For():
                self._for(stmt)
            case If(condition, body):
                self._known(condition, "a condition")
                self._body(body)
            case Branch(data, body):
                self._value(data)
                self._body(body)
            case Chosen(var, value, extent, body):
                self._value(value)
                self._require(extent > 0, f"{var} is chosen of none")
                self._require(var not in self.variables, f"{var} is chosen inside a loop or lane of that name")
                self.variables[var] = "serial"
                self._body(body)
                del self.variables[var]
            case GuardedDispatch(checks, body, fallback):
                for name in checks:
                    check = self._buffer(name)
                    one = check.dtype.name == "s32" and check.shape == (1,)
                    self._require(one, f"the check {name} is {check.dtype}{list(check.shape)}, not one s32")
                self._body(body)
                self._body(fallback)
            case Assign():
                self._assign(stmt)
            case IntrinsicCall(intrinsic, operands, zero_init):
                self._known(zero_init, "a fresh start")
                starts = zero_init == FALSE or intrinsic.overwrite is not None
                self._require(starts, f"{intrinsic.name} has no form that starts from zero")
                self._require(
                    set(operands) == set(intrinsic.operands), f"{intrinsic.name}: operands {sorted(operands)}"
                )
                for name, ref in operands.items():
                    (self._register if ref.lane is None else self._descriptor)(intrinsic.name, name, ref)
                    operand, buffer = intrinsic.operands[name], self.kernel.buffers[ref.buffer]
                    width = buffer.shape[-1] if ref.lane is None else ref.lane.width
                    self._require(
                        operand.dtype == buffer.dtype and operand.elements == width,
                        f"{intrinsic.name}: operand {name} is {operand.dtype} x {operand.elements}, "
                        f"register {ref.buffer} {buffer.dtype} x {width}",
                    )
            case Prefetch(buffer, index, _):
                self._index(self._buffer(buffer), index)
            case AsyncCopies(body, _, slot, boxes):
                self._known(slot, "a slot")
                copies = all(isinstance(s, For | If | Assign) for s in statements(body))
                self._require(copies, "a copy under way does more than copy")
                only = all(isinstance(s, For | If | TileCopy) for s in statements(boxes))
                self._require(only, "the engine moves boxes")
                self._body(body)
                self._body(boxes)
            case TileCopy():
                self._box(stmt)
            case AsyncCalls(body):
                self._require(
                    all(isinstance(s, For | If | IntrinsicCall) for s in statements(body)), "a group is not of calls"
                )
                self._body(body)
            case BarrierArrive(_, slot):
                self._known(slot, "a slot")
            case BarrierWait(_, slot, times, phase):
                self._known(slot, "a slot")
                self._known(times, "a number of arrivals")
                self._known(phase, "a phase")
                self._outside_workers("a barrier is awaited")
            case WarpSpecialize(names, parts, registers, _):
                self._require(len(names) == len(parts), f"{len(names)} names of {len(parts)} roles")
                self._require(len(registers) in (0, len(parts)), f"registers {registers} of {len(parts)} roles")
                self._outside_workers("roles")
                for part in parts:
                    self._body(part)
            case WaitCopies() | WaitCalls() | AsyncProxyFence() | WorkerBarrier() | StoreFence():
                pass
            case Configure() | Comment():
                pass
            case _:
                assert_never(stmt)

    def _box(self, box: TileCopy) -> None:
        seen, there, here = box.map, self._buffer(box.map.buffer), self._buffer(box.buffer)
        self._require(here.scope == "shared", f"a box of {seen.buffer} goes to {here.scope} memory")
        self._require(there.dtype == here.dtype, f"a box of {there.dtype} goes to {here.dtype}")
        sides = len(seen.box) if seen.walk is None else len(seen.walk.steps) + 2
        ranks = len(seen.extents), len(seen.strides) + 1, sides, len(box.coordinates)
        self._require(len(set(ranks)) == 1, f"the map {seen.name} has ranks {ranks}")
        self._require(0 < ranks[0] <= MOST_DIMENSIONS, f"the map {seen.name} has {ranks[0]} dimensions")
        self._require(all(0 < n <= MOST_SIDE for n in seen.box), f"the map {seen.name} has a box of {seen.box}")
        reach = 1 + sum((n - 1) * s for n, s in zip(seen.extents, (1, *seen.strides), strict=True))
        self._require(reach <= there.elements, f"the map {seen.name} reaches past {there.name}")
        bits = there.dtype.bits
        self._require(all(s * bits % 128 == 0 for s in seen.strides), f"the map {seen.name} has strides {seen.strides}")
        self._require(not seen.swizzle or seen.box[0] * bits == seen.swizzle * 8, f"{seen.name}: {seen.box[0]} a span")
        walked = len(seen.walk.steps) if seen.walk else 0
        self._require(len(box.inside) == walked, f"{len(box.inside)} places inside a window of {walked} dimensions")
        self._known(box.first, f"the first block that {seen.name} is for")
        for coordinate in (*box.coordinates, *box.inside):
            self._known(coordinate, f"a coordinate of {seen.name}")
        self._index(here, box.index)

    def _for(self, loop: For) -> None:
        self._require(loop.kind in LOOP_KINDS, f"loop {loop.var}: unknown kind {loop.kind!r}")
        self._require(loop.step > 0, f"loop {loop.var}: step {loop.step}")
        self._require(loop.var not in self.variables, f"loop {loop.var} is inside a loop or lane of that name")
        for bound in (loop.lower, loop.upper):
            self._known(bound, f"a bound of {loop.var}")
            if loop.kind == "unrolled":
                self._require(isinstance(bound, Const), f"unrolled loop {loop.var} has the bound {bound}")
        self.variables[loop.var] = loop.kind
        self._body(loop.body)
        del self.variables[loop.var]

    def _assign(self, stmt: Assign) -> None:
        if stmt.lane is not None:
            self._require(stmt.lane.var not in self.variables, f"lane {stmt.lane.var} hides a loop")
            self._require(stmt.lane.width > 0, f"lane {stmt.lane.var} has width {stmt.lane.width}")
            self.variables[stmt.lane.var] = "lane"
        buffer = self._buffer(stmt.buffer)
        self._require(
            buffer.scope in PRIVATE_SCOPES or buffer.name in self.writable,
            f"{buffer.name} is written but only read here",
        )
        self._require(
            stmt.value.dtype == buffer.dtype, f"{buffer.name} is {buffer.dtype}, assigned a value of {stmt.value.dtype}"
        )
        self._index(buffer, stmt.index)
        self._known(stmt.valid, f"the validity of {buffer.name}")
        self._value(stmt.value)
        if "matrix" in {buffer.scope, *(self.kernel.buffers[r.tensor].scope for r in reads(stmt.value))}:

            move_of(stmt, self.kernel.buffers)
        if stmt.lane is not None:
            del self.variables[stmt.lane.var]

    def _value(self, value: Value) -> None:
        for node in walk(value):
            match node:
                case Read(tensor, index, dtype):
                    buffer = self._buffer(tensor)
                    self._require(dtype == buffer.dtype, f"{tensor} is {buffer.dtype}, read as {dtype}")
                    self._index(buffer, index)
                case Scalar(name, _):
                    self._require(name in self.kernel.program.scalars, f"unknown scalar {name}")
                case FromIndex(index, _):
                    self._known(index, "an index value")
                case Select(condition, _, _, _) if isinstance(condition, Bool):
                    self._known(condition, "a choice")
                case Logical(_, parts, _):
                    for part in parts:
                        if isinstance(part, Bool):
                            self._known(part, "a choice")
                case Call("fma", args, _):
                    self._require(len(args) == 3, "fma takes three arguments")
                case _:
                    pass

    def _buffer(self, name: str) -> Buffer:
        self._require(name in self.kernel.buffers, f"buffer {name} is not declared")
        buffer = self.kernel.buffers[name]
        self._require(
            buffer.scope in PRIVATE_SCOPES or name in self.function.buffers,
            f"{buffer.scope} buffer {name} is not passed",
        )
        return buffer

    def _index(self, buffer: Buffer, index: tuple[object, ...]) -> None:
        self._require(
            len(index) == len(buffer.shape), f"{buffer.name} has rank {len(buffer.shape)}, indexed by {len(index)}"
        )
        for position, subscript in enumerate(index):
            if isinstance(subscript, Int):
                self._known(subscript, f"an index of {buffer.name}")
            if buffer.scope == "register":
                # A fragment may be filled from several others, of which a lane has its elements.
                moved = not isinstance(index[-1], Var) and self.kernel.buffers[buffer.name].elements_per_thread == 0
                self._unrolled(buffer, subscript, element=moved or position == len(index) - 1)

    def _outside_workers(self, what: str) -> None:
        """Others may go on there, which is for the block as a whole."""
        inside = [v for v, kind in self.variables.items() if kind in WORKERS]
        self._require(not inside, f"{what} inside a loop over workers ({', '.join(inside)})")

    def _register(self, intrinsic: str, operand: str, ref: RegisterRef) -> None:
        buffer = self._buffer(ref.buffer)
        held = buffer.scope in ("register", "matrix", "accumulator", "state")
        self._require(held, f"{intrinsic}: operand {operand} is in {buffer.scope} memory")
        self._require(
            len(ref.index) == len(buffer.shape) - 1,
            f"{intrinsic}: register {ref.buffer} has {len(buffer.shape) - 1} indices, got {len(ref.index)}",
        )
        for subscript in ref.index:
            self._known(subscript, f"a register of {ref.buffer}")
            if buffer.scope in ("register", "matrix"):
                self._unrolled(buffer, subscript, element=False)

    def _descriptor(self, intrinsic: str, operand: str, ref: RegisterRef) -> None:
        buffer = self._buffer(ref.buffer)
        self._require(buffer.scope == "shared", f"{intrinsic}: operand {operand} is taken from {buffer.scope} memory")
        assert ref.lane is not None
        self.variables[ref.lane.var] = "lane"
        self._index(buffer, ref.index)
        del self.variables[ref.lane.var]
        if ref.descriptor is not None:
            self._known(ref.descriptor.start, f"the start of {ref.buffer}")

    def _unrolled(self, buffer: Buffer, subscript: object, element: bool) -> None:
        """A register's number must be constant once unrolled, for each worker; the element may depend on the lane."""
        self._require(not is_value(subscript), f"register {buffer.name} is indexed by data")
        assert isinstance(subscript, Int)
        for name in sorted(free_vars(subscript)):
            kind = self.variables[name]
            constant = kind in ("unrolled", *WORKERS) or (element and kind == "lane")
            self._require(constant, f"register {buffer.name} is indexed by the {kind} {name}")

    def _known(self, node: Expr, what: str) -> None:
        for name in sorted(free_vars(node)):
            self._require(name in self.variables, f"{what} uses {name}, which no loop around it defines")
