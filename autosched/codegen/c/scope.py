"""What a function's statements need to know: names, element access, registers, ranges, and the helpers used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from autosched.codegen.analysis.access import flat_offset, plain
from autosched.codegen.c.registers import Register, VectorHelpers
from autosched.codegen.c.vector_formulas import VectorFormulas
from autosched.codegen.c.vector_helpers import NotVector
from autosched.codegen.c_like.ctypes import storage_type
from autosched.codegen.c_like.indices import IndexPrinter
from autosched.codegen.c_like.names import Names, Spelling
from autosched.codegen.c_like.values import CLikeValuePrinter
from autosched.codegen.tree.kernel import (
    PRIVATE_SCOPES,
    Assign,
    Branch,
    Chosen,
    For,
    Function,
    GuardedDispatch,
    If,
    IntrinsicCall,
    Kernel,
    Prefetch,
    Stmt,
    bodies,
)
from autosched.codegen.tree.uses import used_scalars
from autosched.codegen.workarounds import Workaround
from autosched.ir.value import Index, Read, reads, walk
from autosched.logic import Int


@dataclass
class FunctionScope:
    """One function being printed. `used` collects helpers over all functions of a kernel, `macros` element
    macros, `formulas` functions of the kernel's own."""

    kernel: Kernel
    function: Function
    names: Names
    registers: dict[str, Register]
    vectors: VectorHelpers
    used: set[str]
    macros: dict[str, str]
    formulas: VectorFormulas
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    lanes: dict[tuple[str, tuple[Int, ...]], str] = field(default_factory=dict)
    """Vector copies of registers that a lane loop reads element by element."""

    def __post_init__(self) -> None:
        self.index = IndexPrinter(Spelling(self.names), self.ranges, self.used.add)
        self.values = CLikeValuePrinter(self.index, self.read, self.names, self.used.add, self.formulas.name)
        self.homes = _homes(self.kernel, self.function)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Inside, a value is printed on vectors; where that raises `NotVector`, the file has nothing of it."""
        vectors, formulas = self.vectors, self.formulas
        texts = (vectors.typedefs, vectors.functions, vectors.tables, vectors.picks, vectors.operands, self.macros)
        noted: list[Any] = [*texts, formulas.vectors, formulas.called, vectors.helpers, self.used]
        before = [x.copy() for x in noted]
        try:
            yield
        except NotVector:
            for now, then in zip(noted, before, strict=True):
                now.clear()
                now.update(then)
            raise

    def use(self, helper: str) -> None:
        self.used.add(helper)

    def workaround(self, workaround: Workaround, *arguments: str) -> str:
        """A line that calls a workaround's macro."""
        self.use(workaround.macro)
        return f"{workaround.macro}({', '.join(arguments)});"

    def element(self, buffer: str, index: tuple[Index, ...]) -> str:
        """An element of memory as an lvalue: `A_at(i, p)`, or `x[i]` for a vector."""
        shape = self.kernel.buffers[buffer].shape
        name = self.names(buffer)
        subscripts = [self.values.subscript(i) for i in index]
        if len(shape) < 2:
            return f"{name}[{subscripts[0] if subscripts else 0}]"
        if buffer not in self.macros:
            self._define(buffer)
        return f"{self._macro(buffer)}({', '.join(subscripts)})"

    def _macro(self, buffer: str) -> str:
        return self.names(f"{self.names(buffer)}.at")  # no buffer has this name, so the macro's is its own

    def _define(self, buffer: str) -> None:
        name, shape = self.names(buffer), self.kernel.buffers[buffer].shape
        stem = "at" if name[0] == "i" and name[1:].isdigit() else "i"  # a macro replaces its parameters' names alone
        arguments = [f"{stem}{d}" for d in range(len(shape))]
        offset = f"({arguments[0]})"
        for d, (argument, n) in enumerate(zip(arguments[1:], shape[1:], strict=True)):
            offset = f"{f'({offset})' if d else offset} * {n} + ({argument})"
        self.macros[buffer] = f"#define {self._macro(buffer)}({', '.join(arguments)}) {name}[{offset}]"

    def register(self, buffer: str, index: tuple[Int, ...]) -> str:
        """A whole register: `acc[r][v]`."""
        return self.names(buffer) + "".join(f"[{self.index.number(i)}]" for i in index)

    def read(self, read: Read) -> str:
        """An element as an rvalue, of memory or of a register."""
        register = self.registers.get(read.tensor)
        if register is None:
            return self.element(read.tensor, read.index)
        *outer, last = read.index
        key = (read.tensor, plain(read.tensor, tuple(outer)))
        if register.style == "scalar":
            return self.register(*key)
        name = self.lanes.get(key)
        if name is None:
            name = self.register(*key)
            if register.style == "vector":
                vector = self.vectors.vector(register)
                name = name if register.type == vector else f"(({vector}){name})"
        return f"{name}[{self.values.subscript(last)}]"

    def flat(self, buffer: str, index: tuple[Int, ...]) -> str:
        """The offset of an element, in elements."""
        return self.index.number(flat_offset(self.kernel.buffers[buffer], index))

    def declarations(self, at: For | None, body: Sequence[str]) -> list[str]:
        """Declarations of the private buffers that live in the parallel loop `at` (None: in the whole function), as far
        as its lines name them: statements that never run are not printed."""
        lines, named = [], set(re.findall(r"\w+", "\n".join(body)))
        for name in self.homes.get(id(at) if at is not None else None, ()):
            buffer, register = self.kernel.buffers[name], self.registers.get(name)
            if buffer.scope == "matrix":
                continue  # numbered, and nobody's to declare
            if not named & {self.names(name), self.names(f"{name}.at")}:
                continue
            if register is None:
                lines.append(f"{storage_type(buffer.dtype)} {self.names(name)}[{buffer.elements}];")
                continue
            shape = buffer.shape if register.style == "array" else buffer.shape[:-1]
            lines.append(f"{self.vectors.declared(register)} {self.names(name)}{''.join(f'[{n}]' for n in shape)};")
            if not _is_read(self.names(name), body):
                lines.append(f"(void){self.names(name)};")
        return lines

    def scalars(self) -> list[str]:
        """The run-time scalars that the function's values name, in the program's order."""
        used = used_scalars(self.function.body)
        return [name for name in self.kernel.program.scalars if name in used]


def _is_read(name: str, lines: Sequence[str]) -> bool:
    """Whether a line names a variable other than to set it."""
    used = rf"\b{name}\b"
    return any(re.search(used, re.sub(rf"^\s*{name}[^;=()]* = ", "", line)) for line in lines)


def _homes(kernel: Kernel, function: Function) -> dict[int | None, tuple[str, ...]]:
    """The private buffers to declare in each parallel loop (by its id) and in the function (None).

    A parallel loop that writes a register has its own; one that only reads it sees the surrounding one. The interpreter
    holds kernels to the same rule.
    """
    homes: dict[int | None, tuple[str, ...]] = {}

    def visit(body: tuple[Stmt, ...]) -> tuple[dict[str, None], set[str]]:
        """Buffers used, in order, and those written, less what nested parallel loops declare."""
        used: dict[str, None] = {}
        written: set[str] = set()
        for stmt in body:
            match stmt:
                case For() | If() | Branch() | Chosen():
                    inner, wrote = visit(stmt.body)
                    if isinstance(stmt, For) and stmt.kind == "parallel":
                        homes[id(stmt)] = tuple(n for n in inner if n in wrote)
                        inner = {n: None for n in inner if n not in wrote}
                        wrote = set()
                    used |= inner
                    written |= wrote
                    if isinstance(stmt, Branch):
                        used |= {r.tensor: None for r in reads(stmt.condition)}
                    if isinstance(stmt, Chosen):
                        used |= {r.tensor: None for r in reads(stmt.value)}
                case GuardedDispatch():
                    for branch in bodies(stmt):
                        inner, wrote = visit(branch)
                        used |= inner
                        written |= wrote
                case Assign():
                    written.add(stmt.buffer)
                    used[stmt.buffer] = None
                    used |= {n.tensor: None for n in walk(stmt.value) if isinstance(n, Read)}
                case IntrinsicCall():
                    written.add(stmt.operands[stmt.intrinsic.accumulator.name].buffer)
                    used |= {ref.buffer: None for ref in stmt.operands.values()}
                case Prefetch():
                    used[stmt.buffer] = None
                case _:
                    pass
        return {n: None for n in used if kernel.buffers[n].scope in PRIVATE_SCOPES}, written

    homes[None] = tuple(visit(function.body)[0])
    return homes
