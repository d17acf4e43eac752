"""Statements of the loop tree as LLVM IR: rotated loops, expanded loops, branches, calls, outlined parallel bodies.

A serial loop is a guard and a bottom test, the shape that LLVM's loop-strength reduction expects; a loop known to run
has no guard, and one that runs once is no loop.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from autosched.backends import backend_of
from autosched.codegen.analysis.matrix_moves import move_of
from autosched.codegen.llvm.accesses.addresses import Addresses
from autosched.codegen.llvm.accesses.indexing import Linear, Range, fixed
from autosched.codegen.llvm.accesses.memory import MemoryPrinter
from autosched.codegen.llvm.emitter import Declarations, Emitter
from autosched.codegen.llvm.fallback_function import FallbackFunction
from autosched.codegen.llvm.lanes import Lanes
from autosched.codegen.llvm.machine.errors import UnsupportedError
from autosched.codegen.llvm.machine.pool_ir import PARALLEL_FOR
from autosched.codegen.llvm.masks import Mask
from autosched.codegen.llvm.matrices import LlvmMatrixPrinter
from autosched.codegen.llvm.ops import Ops
from autosched.codegen.llvm.types import Val, scalar
from autosched.codegen.llvm.values import LlvmValuePrinter
from autosched.codegen.passes.memory_constants import scarce
from autosched.codegen.tree.kernel import (
    CONCURRENT,
    Assign,
    Branch,
    Buffer,
    Chosen,
    Comment,
    Concurrent,
    Configure,
    For,
    Function,
    GuardedDispatch,
    If,
    IntrinsicCall,
    Kernel,
    Prefetch,
    Stmt,
    StoreFence,
    bodies,
)
from autosched.escape import printable
from autosched.ir.dtypes import BOOL
from autosched.ir.value import reads
from autosched.logic import TRUE
from autosched.tensorize.spec.emit import llvm_declarations, render_llvm


@dataclass
class Shared:
    """What the functions of one module share: declarations, finished functions, names; and the `fallback` that is
    called where a check fails."""

    kernel: Kernel
    fallback: FallbackFunction | None = None
    declarations: Declarations = field(default_factory=Declarations)
    intrinsics: dict[str, None] = field(default_factory=dict)  # declare lines of intrinsics' calls
    declared: set[str] = field(default_factory=set)  # names of the intrinsics in `intrinsics`
    functions: list[str] = field(default_factory=list)
    outlined: int = 0


def permuted(kernel: Kernel) -> int:
    """Lanes of 32 bits that one instruction of the machine permutes, as far as what the kernel issues tells."""
    return _first_of(backend_of(kernel.isa).permutes, kernel)


def to_bf16(kernel: Kernel) -> int:
    """Floats that one instruction of the machine rounds to bf16, as far as what the kernel issues tells."""
    return _first_of(backend_of(kernel.isa).to_bf16, kernel)


def _first_of(known: tuple[tuple[str, int], ...], kernel: Kernel) -> int:
    """The first number whose feature an instruction of the kernel requires, 0 where there is none."""
    features = frozenset[str]().union(*(i.requires for i in kernel.intrinsics))
    return next((n for feature, n in known if not feature or feature in features), 0)


class Printer:
    """Prints the statements of one LLVM function. `arguments` are its parameters, types included."""

    def __init__(self, shared: Shared, function: Function, arguments: list[str], inside_parallel: bool = False) -> None:
        self.shared = shared
        self.function = function
        self.arguments = arguments
        self.inside_parallel = inside_parallel
        self.buffers: dict[str, Buffer] = shared.kernel.buffers
        self.out = Emitter(shared.declarations)
        self.indexing = Addresses(self.out)
        self.ops = Ops(self.out, permuted(shared.kernel), to_bf16(shared.kernel))
        self.memory = MemoryPrinter(self.out, self.indexing, self.ops, self.buffers)
        self.matrices = LlvmMatrixPrinter(self.out, self.memory, self.buffers)
        formulas, few = shared.kernel.formulas, scarce(shared.kernel)
        self.values = LlvmValuePrinter(self.out, self.indexing, self.ops, self.memory, formulas, few)

    def body(self, statements: tuple[Stmt, ...]) -> None:
        for stmt in statements:
            self.statement(stmt)

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case IntrinsicCall():  # most of an unrolled body
                self._call(stmt)
            case Assign():
                self._assign(stmt)
            case For():
                self._for(stmt)
            case If(condition, body):
                self._if(self.indexing.condition(condition), body)
            case Branch(data, body):
                found = self.values.condition(data, None)
                self._if(found if isinstance(found, bool) else found.name, body)
            case Chosen():
                self._chosen(stmt)
            case GuardedDispatch():
                self._choose(stmt)
            case Prefetch(buffer, index, write):
                self.memory.prefetch(self.buffers[buffer], index, write)
            case StoreFence():
                self.memory.drain(backend_of(self.shared.kernel.isa).store_fence)
            case Configure(matrices, on):
                self.matrices.configure(matrices, on)
            case Comment(text):
                self.out.line(f"  ; {printable(' '.join(text.split()))}")
            case _:
                if isinstance(stmt, Concurrent):
                    raise UnsupportedError(CONCURRENT)
                assert_never(stmt)

    # -- loops --------------------------------------------------------------------------------------------------

    def _for(self, loop: For) -> None:
        if loop.kind not in ("serial", "unrolled", "parallel"):
            raise UnsupportedError(f"loop {loop.var} is bound to {loop.kind}, which a CPU kernel does not have")
        lower, upper = self.indexing.linear(loop.lower), self.indexing.linear(loop.upper)
        outer = self.indexing.env.get(loop.var)
        bounds = None if loop.kind == "unrolled" else self.indexing.range_of(upper.plus(lower, -1))
        if loop.kind == "unrolled":
            if lower.terms or upper.terms:
                raise UnsupportedError(f"unrolled loop {loop.var} has no constant bounds")
            for value in range(lower.constant, upper.constant, loop.step):
                self.indexing.env[loop.var] = fixed(value)
                self.body(loop.body)
        elif bounds is not None and bounds[1] <= 0:
            pass
        elif bounds is not None and bounds[0] > 0 and bounds[1] <= loop.step:
            self.indexing.env[loop.var] = lower
            self.body(loop.body)
        elif loop.kind == "parallel" and not self.inside_parallel and self.shared.kernel.threads > 1:
            self._parallel(loop, lower, upper)
        else:
            self._serial(loop, lower, upper, bounds)
        if outer is None:
            self.indexing.env.pop(loop.var, None)
        else:
            self.indexing.env[loop.var] = outer

    def _serial(self, loop: For, lower: Linear, upper: Linear, bounds: Range) -> None:
        out = self.out
        first, end = self.indexing.operand(lower), self.indexing.operand(upper)
        body, exit_ = out.label(f"{loop.var}.body"), out.label(f"{loop.var}.end")
        if bounds is not None and bounds[0] > 0:
            before = out.block
            out.branch(body)
        else:
            enter = out.let(f"icmp slt i64 {first}, {end}", "c")
            before = out.block
            out.branch_if(enter, body, exit_)
        counter, following = out.fresh(loop.var), out.fresh(f"{loop.var}.next")
        out.start(body)
        phi: list[str] = []  # printed when the latch's block is known
        out.lines.append(phi)
        depth = out.enter()
        out.depth[counter] = depth
        self.indexing.ranges[counter] = self._counter_range(lower, upper)
        self.indexing.env[loop.var] = Linear(0, ((counter, 1),))
        self.body(loop.body)
        out.line(f"  {following} = add nsw i64 {counter}, {loop.step}")
        again = out.let(f"icmp slt i64 {following}, {end}", "c")
        phi.append(f"  {counter} = phi i64 [ {first}, %{before} ], [ {following}, %{out.block} ]")
        out.branch_if(again, body, exit_)
        out.leave()
        out.start(exit_)

    def _counter_range(self, lower: Linear, upper: Linear) -> Range:
        low, high = self.indexing.range_of(lower), self.indexing.range_of(upper)
        return None if low is None or high is None else (low[0], max(low[0], high[1] - 1))

    def _parallel(self, loop: For, lower: Linear, upper: Linear) -> None:
        """Outline the body: `f(context, number)`; the context holds the arguments and the outer counters."""
        shared, out = self.shared, self.out
        shared.outlined += 1
        name = f"{self.function.name}.{loop.var}.{shared.outlined}"
        atoms = sorted(
            {t for value in self.indexing.env.values() for t, _ in (*value.terms, *lower.terms)}
            | {t for t, _ in lower.terms}
        )
        passed = [*self.arguments, *(f"i64 {a}" for a in atoms)]
        inner = Printer(shared, self.function, passed, inside_parallel=True)
        inner.out.skip_names_of(out)
        inner.indexing.env = dict(self.indexing.env)
        inner.indexing.ranges = dict(self.indexing.ranges)
        counter = "%iteration.0"
        inner.indexing.ranges[counter] = None
        scaled = lower.plus(Linear(0, ((counter, loop.step),)))
        value = inner.indexing.operand(scaled) if scaled.constant or len(scaled.terms) > 1 or loop.step > 1 else counter
        inner.indexing.ranges[value] = self._counter_range(lower, upper)
        inner.indexing.env[loop.var] = Linear(0, ((value, 1),))
        inner.body(loop.body)
        inner.out.line("  ret void")
        values = [a.split()[-1] for a in passed]
        for argument, value_name in self._registers_in(inner):
            passed.append(argument)
            values.append(value_name)
        signature = ", ".join([*passed, f"i64 {counter}"])
        head = f"define internal void @{quoted(name + '.body')}({signature}) #0"
        shared.functions.append(f"{head} {{\n{inner.text()}\n}}")
        shared.functions.append(thunk(name, passed, counter))

        context = f"%context.{shared.outlined}"
        out.entry.insert(0, f"  {context} = alloca [{max(1, len(passed))} x i64], align 64")
        for slot, (argument, value_name) in enumerate(zip(passed, values, strict=True)):
            where = out.let(f"getelementptr i8, ptr {context}, i64 {8 * slot}", "q")
            out.line(f"  store {argument.split()[0]} {value_name}, ptr {where}, align 8")
        extent = upper.plus(lower, -1).plus(Linear(loop.step - 1))
        count = self.indexing.operand(extent)
        if loop.step > 1:
            count = out.let(f"sdiv i64 {count}, {loop.step}")
        function = shared.declarations.need("void", PARALLEL_FOR, "ptr", "ptr", "i64", "i32")
        threads = shared.kernel.threads
        out.line(f"  call void {function}(ptr @{quoted(name)}, ptr {context}, i64 {count}, i32 {threads})")

    def _registers_in(self, inner: Printer) -> list[tuple[str, str]]:
        """Registers that an outlined body shares with the code around it: each iteration starts from a copy of what
        they hold before the loop. Answers (the body's argument, the pointer passed)."""
        result = []
        around = registers_around(self.function.body, self.buffers)
        for (name, number), register in inner.memory.registers.known.items():
            if name not in around:
                continue
            buffer, out = self.buffers[name], self.out
            kind, argument = self.memory.registers.register_type(buffer), f"{register}.in"
            copy = out.fresh("copy")
            out.entry.insert(0, f"  {copy} = alloca {kind}, align 64")
            held = out.let(f"load {kind}, ptr {self.memory.registers.numbered(buffer, number)}")
            out.line(f"  store {kind} {held}, ptr {copy}, align 64")
            inner.out.entry.append(f"  {argument}.value = load {kind}, ptr {argument}, align 64")
            inner.out.entry.append(f"  store {kind} {argument}.value, ptr {register}")
            result.append((f"ptr {argument}", copy))
        return result

    def _chosen(self, stmt: Chosen) -> None:
        """The number is there from here on: a scope of its own keeps what is made of it behind it."""
        out, last = self.out, stmt.extent - 1
        number = self.values.subscript(stmt.value, None, None).name
        # The greatest numbers of 64 bits have no sign: they are beyond the last, not before the first.
        held = (("umin", last),) if stmt.value.dtype.name == "u64" else (("smax", 0), ("smin", last))
        for op, bound in held:
            function = self.shared.declarations.need("i64", f"llvm.{op}.i64", "i64", "i64")
            number = out.let(f"call i64 {function}(i64 {number}, i64 {bound})", stmt.var)
        out.depth[number] = out.enter()
        self.indexing.ranges[number] = 0, last
        self.indexing.env[stmt.var] = Linear(0, ((number, 1),))
        self.body(stmt.body)
        del self.indexing.env[stmt.var]
        out.leave()

    # -- the rest -----------------------------------------------------------------------------------------------

    def _if(self, condition: bool | str, body: tuple[Stmt, ...]) -> None:
        if isinstance(condition, bool):
            if condition:
                self.body(body)
            return
        then, after = self.out.label("if"), self.out.label("endif")
        self.out.branch_if(condition, then, after)
        self.out.start(then)
        self.body(body)
        self.out.branch(after)
        self.out.start(after)

    def _choose(self, stmt: GuardedDispatch) -> None:
        out = self.out
        found = [out.let(f"load i32, ptr %{name}, align 4") for name in stmt.checks]
        broken = found[0]
        for other in found[1:]:
            broken = out.let(f"or i32 {broken}, {other}")
        holds = out.let(f"icmp eq i32 {broken}, 0", "holds")
        then, otherwise, after = out.label("holds"), out.label("fallback"), out.label("after")
        out.branch_if(holds, then, otherwise)
        out.start(then)
        self.body(stmt.body)
        out.branch(after)
        out.start(otherwise)
        if self.shared.fallback is not None and self.shared.fallback.choice is stmt:
            self._call_fallback(self.shared.fallback)
        else:
            self.body(stmt.fallback)
        out.branch(after)
        out.start(after)

    def _call_fallback(self, fallback: FallbackFunction) -> None:
        """What stands by is a function that takes the buffers it needs and the program's scalars."""
        scalars = [f"{scalar(s.dtype)} %{s.name}" for s in self.shared.kernel.program.scalars.values()]
        passed = [*(f"ptr %{b}" for b in fallback.buffers), *scalars]
        name = self.shared.declarations.need("void", fallback.name, *(a.split()[0] for a in passed))
        self.out.line(f"  call void {name}({', '.join(passed)})")

    def _assign(self, stmt: Assign) -> None:
        buffer = self.buffers[stmt.buffer]
        if self.matrices.there and (move := move_of(stmt, self.buffers)) is not None:
            self.matrices.move(move)
            return
        register = buffer.scope == "register"
        valid = True if stmt.valid == TRUE else self.indexing.mask(stmt.valid, stmt.lane, 8 * buffer.dtype.bytes)
        if isinstance(valid, Lanes):
            assert stmt.lane is not None
            mask = Mask(valid.name, stmt.valid)
            value = self.values.value(stmt.value, stmt.lane, mask)
            if register:
                zero = self.ops.literal(0, buffer.dtype)
                kept = self.ops.select(Val(valid.name, BOOL, stmt.lane.width), value, zero)
                self.memory.write(buffer, stmt.index, stmt.lane, kept, None)
            else:
                self.memory.write(buffer, stmt.index, stmt.lane, value, mask)
            return
        if valid is True:
            value = self.values.value(stmt.value, stmt.lane)
            self.memory.write(buffer, stmt.index, stmt.lane, value, None, stmt.stream)
            return
        zero = self.ops.literal(0, buffer.dtype)
        if valid is False:
            if register:
                self.memory.write(buffer, stmt.index, stmt.lane, zero, None)
            return
        # One condition for all lanes. A register takes zero first, and the branch then overwrites it. Where the value
        # is made of what it holds, zero has a branch of its own.
        in_place = register and any(r.tensor == stmt.buffer for r in reads(stmt.value))
        if register and not in_place:
            self.memory.write(buffer, stmt.index, stmt.lane, zero, None)
        then, after = self.out.label("if"), self.out.label("endif")
        other = self.out.label("else") if in_place else after
        self.out.branch_if(valid, then, other)
        self.out.start(then)
        self.memory.write(buffer, stmt.index, stmt.lane, self.values.value(stmt.value, stmt.lane), None)
        self.out.branch(after)
        if in_place:
            self.out.start(other)
            self.memory.write(buffer, stmt.index, stmt.lane, zero, None)
            self.out.branch(after)
        self.out.start(after)

    def _call(self, stmt: IntrinsicCall) -> None:
        intrinsic = stmt.intrinsic
        if intrinsic.scope != "thread" or "llvm" not in intrinsic.emit:
            raise UnsupportedError(
                f"{intrinsic.name} has no LLVM text of one thread", hint="add emit.llvm, or choose another intrinsic"
            )
        if intrinsic.matrices is not None:
            self.matrices.call(stmt)
            return
        if intrinsic.name not in self.shared.declared:
            self.shared.declared.add(intrinsic.name)
            self.shared.intrinsics |= dict.fromkeys(llvm_declarations(intrinsic))
        out, values, registers = self.out, dict[str, str](), self.memory.registers
        accumulator, target = intrinsic.accumulator, ""
        for name, ref in stmt.operands.items():
            buffer = self.buffers[ref.buffer]
            natural = registers.register_type(buffer)
            declared = intrinsic.operands[name].registers.get("llvm", natural)
            register = registers.register(buffer, ref.index)
            if name == accumulator.name:
                target = register
                if not intrinsic.accumulates:
                    continue  # nothing has been written there
            value = registers.held(buffer, register)
            values[name] = value if declared == natural else out.let(f"bitcast {natural} {value} to {declared}")
        lines, result = render_llvm(intrinsic, values, out.fresh)
        for line in lines:
            out.line(f"  {line}")
        ref = stmt.operands[accumulator.name]
        buffer = self.buffers[ref.buffer]
        natural = registers.register_type(buffer)
        declared = accumulator.registers.get("llvm", natural)
        if declared != natural:
            result = out.let(f"bitcast {declared} {result} to {natural}")
        registers.hold(buffer, target, result)

    def text(self) -> str:
        return "start.0:\n" + self.out.text()


def thunk(name: str, passed: list[str], counter: str) -> str:
    """The function that the pool calls: unpacks the context and calls the body."""
    lines, values = [], []
    for slot, argument in enumerate(passed):
        kind = argument.split()[0]
        lines.append(f"  %p{slot} = getelementptr i8, ptr %context.0, i64 {8 * slot}")
        lines.append(f"  %v{slot} = load {kind}, ptr %p{slot}, align 8")
        values.append(f"{kind} %v{slot}")
    values.append(f"i64 {counter}")
    body = "\n".join(lines)
    return (
        f"define internal void @{quoted(name)}(ptr %context.0, i64 {counter}) #0 {{\n{body}\n"
        f"  call void @{quoted(name + '.body')}({', '.join(values)})\n  ret void\n}}"
    )


def registers_around(body: tuple[Stmt, ...], buffers: dict[str, Buffer]) -> frozenset[str]:
    """Register buffers that statements outside parallel loops mention."""
    found: set[str] = set()
    for stmt in body:
        match stmt:
            case For(kind="parallel"):
                pass
            case For() | If() | Branch() | Chosen() | GuardedDispatch():
                if isinstance(stmt, Branch | Chosen):
                    found |= {r.tensor for r in reads(stmt.condition if isinstance(stmt, Branch) else stmt.value)}
                for inner in bodies(stmt):
                    found |= registers_around(inner, buffers)
            case Assign():
                found |= {stmt.buffer, *(r.tensor for r in reads(stmt.value))}
            case IntrinsicCall():
                found |= {ref.buffer for ref in stmt.operands.values()}
            case _:
                pass
    return frozenset(b for b in found if buffers[b].scope == "register")


def quoted(name: str) -> str:
    """A global name as LLVM spells it."""
    return name if name.replace("_", "").replace(".", "").isalnum() else f'"{name}"'
