"""`print_c`: a kernel as a header and a source file that a person would ship."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from autosched.backends import backend_of
from autosched.codegen import workarounds
from autosched.codegen.c.register_pressure import high_pressure_sums
from autosched.codegen.c.registers import VectorHelpers, registers_of
from autosched.codegen.c.scope import FunctionScope
from autosched.codegen.c.statements import INDENT, CStatementPrinter
from autosched.codegen.c.vector_formulas import VectorFormulas
from autosched.codegen.c_like.ctypes import storage_type
from autosched.codegen.c_like.helpers import ordered
from autosched.codegen.c_like.names import Names
from autosched.codegen.c_like.source import WORKSPACE, CSource, about, function_text, right_where
from autosched.codegen.passes.memory_constants import scarce
from autosched.codegen.passes.narrow import narrow
from autosched.codegen.passes.scalarize_intrinsics import scalarize_intrinsics
from autosched.codegen.tree.kernel import Buffer, Function, GuardedDispatch, Kernel, Stmt, statements
from autosched.codegen.tree.uses import called_functions
from autosched.codegen.tree.workspace import CPU_ALIGNMENT as ALIGNMENT
from autosched.codegen.tree.workspace import room, workspace_bytes, workspaces
from autosched.escape import comment_lines, in_comment
from autosched.ir.value import Call, walk

RESTRICT_IN_CPP = ("#ifdef __cplusplus", "#define restrict __restrict", "#endif")
"""C++ has no `restrict`. The header takes its definition back at its end; the source has one of its own."""


def print_c(kernel: Kernel) -> CSource:
    """C11 with GCC's vector types (GCC and Clang). SpecError for an intrinsic that has no C text.

    Build with `-std=gnu11 -O2 -ffp-contract=off` and the features named in the header's comment (or `-march=native`).
    """
    return _CFiles(kernel).files()


class _CFiles:
    def __init__(self, kernel: Kernel) -> None:
        kernel = narrow(scalarize_intrinsics(kernel))
        self.kernel, self.backend = kernel, backend_of(kernel.isa)
        self.names = Names()
        self.name = self.names.function(kernel.name)
        for name in (*kernel.buffers, *kernel.program.scalars):
            self.names(name)
        self.registers = registers_of(kernel)
        self.vectors = VectorHelpers()
        self.used: set[str] = set()
        self.macros: dict[str, str] = {}
        self.formulas = VectorFormulas(kernel.formulas, self.names, self.used.add, scarce(kernel))
        self.constants: dict[str, str] = {}
        self.workspaces = workspaces(kernel)

    def files(self) -> CSource:
        functions = [self._scope(f) for f in (*self.kernel.prepare, self.kernel.main)]
        bodies = ["\n".join(self._function(scope)) for scope in functions]
        prototypes = [self._prototype(scope) for scope in functions]
        if self._spills_wide():
            self.used.add(workarounds.ALIGNED_STACK.macro)
            bodies[-1] = f"{workarounds.ALIGNED_STACK.macro} {bodies[-1]}"
        self.used |= self.vectors.helpers
        calls = tuple((self._function_name(scope.function), tuple(self._arguments(scope))) for scope in functions)
        header, source = "\n".join(self._header(prototypes)), "\n".join(self._source(bodies))
        return CSource(header, source, self.name, calls, self._flags(), workspace_bytes(self.kernel, ALIGNMENT))

    def _arguments(self, scope: FunctionScope) -> Iterator[str]:
        function = scope.function
        yield from (b for b in function.buffers if self.kernel.buffers[b].scope != "workspace")
        yield from self._scalars(scope)
        if function is self.kernel.main and self.workspaces:
            yield WORKSPACE

    def _scope(self, function: Function) -> FunctionScope:
        return FunctionScope(
            self.kernel, function, self.names, self.registers, self.vectors, self.used, self.macros, self.formulas
        )

    # Functions

    def _prototype(self, scope: FunctionScope) -> str:
        function = scope.function
        parameters = []
        for name in function.buffers:
            buffer = self.kernel.buffers[name]
            if buffer.scope != "workspace":
                const = "" if self._written(buffer, function) else "const "
                parameters.append(f"{const}{storage_type(buffer.dtype)} *restrict {self.names(name)}")
        scalars = [self.kernel.program.scalars[name] for name in self._scalars(scope)]
        parameters += [f"{storage_type(s.dtype)} {self.names(s.name)}" for s in scalars]
        if function is self.kernel.main and self.workspaces:
            parameters.append("void *restrict workspace")
        head = f"void {self._function_name(function)}("
        line = head + ", ".join(parameters or ["void"]) + ")"
        if len(line) <= 118:
            return line
        return head + "\n    " + ",\n    ".join(parameters) + ")"

    def _scalars(self, scope: FunctionScope) -> list[str]:
        """Main takes all of the program's scalars, so that its prototype does not depend on the schedule."""
        return list(self.kernel.program.scalars) if scope.function is self.kernel.main else scope.scalars()

    def _written(self, buffer: Buffer, function: Function) -> bool:
        if buffer.scope == "packed":
            return function is not self.kernel.main and buffer.name == function.buffers[-1]
        return buffer.name in self.kernel.program.written and function is self.kernel.main

    def _function_name(self, function: Function) -> str:
        return self.name if function is self.kernel.main else self.names.local(f"{self.name}_{function.name}")

    def _function(self, scope: FunctionScope) -> Iterator[str]:
        printer = CStatementPrinter(scope)
        # The body comes first: it says which registers, helpers and macros there are.
        body = list(printer.body(scope.function.body, 1))
        yield self._prototype(scope) + " {"
        if scope.function is self.kernel.main:
            yield from self._workspace_pointers()
        yield from (INDENT + line for line in scope.declarations(None, body))
        yield from self._unused(scope, "\n".join(body))
        yield from body
        yield "}"

    def _workspace_pointers(self) -> Iterator[str]:
        offset = 0
        for buffer in self.workspaces:
            t = storage_type(buffer.dtype)
            yield f"{INDENT}{t} *const {self.names(buffer.name)} = ({t} *)((char *)workspace + {offset});"
            offset += room(buffer, ALIGNMENT)

    def _unused(self, scope: FunctionScope, body: str) -> Iterator[str]:
        """`(void)x;` for parameters that the body does not name."""
        names = [self.names(b) for b in scope.function.buffers] + [self.names(s) for s in self._scalars(scope)]
        for name in names:
            if not re.search(rf"\b{name}\b|\b{self.names(f'{name}.at')}\(", body):
                yield f"{INDENT}(void){name};"

    # Files

    def _header(self, prototypes: list[str]) -> Iterator[str]:
        kernel, guard = self.kernel, f"{self.name.upper()}_H_INCLUDED"
        yield "/*"
        yield from self._describe()
        yield " */"
        yield from (f"#ifndef {guard}", f"#define {guard}", "", "#include <stddef.h>", "#include <stdint.h>", "")
        yield from (*RESTRICT_IN_CPP[:2], 'extern "C" {', "#endif", "")
        constants = [f"{self._constant(name)} = {value}" for name, value in kernel.program.sizes.items()]
        if constants:
            yield "/* Sizes that the code was made for. */"
            yield from _enum(constants)
            yield ""
        packed = [b for b in kernel.buffers.values() if b.scope == "packed"]
        sizes = [f"{self._constant(f'{b.name}_bytes')} = {b.elements * b.dtype.bytes}" for b in packed]
        if self.workspaces:
            sizes.append(f"{self._constant('workspace_bytes')} = {workspace_bytes(kernel, ALIGNMENT)}")
        if sizes:
            what = f"as malloc returns it; aligned to {ALIGNMENT} bytes it is fastest"
            yield f"/* Memory that the caller provides: {what}. */"
            yield from _enum(sizes)
            yield ""
        for function, prototype in zip((*kernel.prepare, kernel.main), prototypes, strict=True):
            yield from self._comment(function)
            yield prototype + ";"
            yield ""
        yield from ("#ifdef __cplusplus", "}", "#undef restrict", "#endif", "", "#endif", "")

    def _constant(self, name: str) -> str:
        """The constant of a size or a byte count: `GEMM_M`."""
        if name not in self.constants:  # sizes may differ in case only
            self.constants[name] = self.names.fresh(f"{self.name}_{name}".upper())
        return self.constants[name]

    def _describe(self) -> Iterator[str]:
        """The comment on top of the header: what, how, and how to build."""
        kernel = self.kernel
        yield from _text(about(self.name, kernel.program))
        text = function_text(kernel.program)
        if text:
            yield " *"
            yield from (f" *   {in_comment(line)}".rstrip() for line in text.splitlines())
        if kernel.schedule:
            yield " *"
            yield " * Schedule:"
            yield from _text(", ".join(f"{name} = {value}" for name, value in kernel.schedule.items()), "  ")
        if said := right_where(kernel):
            yield " *"
            yield from _text(said)
        used = dict.fromkeys(i.name for i in kernel.intrinsics)
        if used:
            yield " *"
            yield from _text("Instructions: " + ", ".join(used) + ".")
        threads = f" ({kernel.threads} threads)" if kernel.threads > 1 else ""
        yield " *"
        yield from _text(f"Build: {self._flags()}{threads}")

    def _flags(self) -> str:
        kernel = self.kernel
        features = {f for i in kernel.intrinsics for f in i.requires}
        switches = self.backend.c_flags(features | self._vector_features() | self._fused_features())
        openmp = "-fopenmp" if kernel.threads > 1 else ""
        if openmp and self._spills_wide():
            openmp += f" {workarounds.ALIGNED_THREADS.text}"
        apart = workarounds.NO_SLP.text if self.vectors.typedefs and not kernel.intrinsics else ""
        wider = workarounds.NO_PSABI.text if self._widest() > kernel.vector_bytes else ""
        return " ".join(f for f in ("-std=gnu11 -O2 -ffp-contract=off", apart, switches, openmp, wider) if f)

    def _spills_wide(self) -> bool:
        """Whether what does not fit into registers is wider than the stack's alignment."""
        return 0 < self.backend.stack_bytes < self._widest()

    def _by_priority(self) -> bool:
        """Whether sums of floats that leave few registers to spare take an operand in turn. (Of integers priorities
        cost more copies than they save.)"""
        floats = any(self.kernel.buffers[name].dtype.is_float for name in high_pressure_sums(self.kernel))
        return self.backend.memory_operands and floats and workarounds.HELD.macro in self.used

    def _widest(self) -> int:
        """The bytes of the widest vector that is named."""
        texts = [*self.vectors.typedefs.values(), *self.vectors.operands]
        found = re.findall(r"vector_size\(([\d *]+)\)", " ".join(texts))
        return max((prod(int(n) for n in size.split("*")) for size in found), default=0)

    def _vector_features(self) -> set[str]:
        """What the widest vectors need, of what the target has: compilers cut those that are wider still."""
        needed = self.backend.c.vector_feature(min(self._widest(), self.kernel.vector_bytes))
        if self.kernel.vector_bytes > 32:
            asked = " ".join(self.vectors.functions.values())
            needed |= {f for f in self.backend.c.tails if f"__{f.upper()}__" in asked}
        return needed

    def _fused_features(self) -> set[str]:
        """Where the schedule, and not the program, fuses products with additions: it does so on targets that have
        the instruction, and without it each is a call."""
        kernel = self.kernel
        asked = any(
            isinstance(v, Call) and v.function == "fma" for s in kernel.program.stages for v in walk(s.assign.value)
        )
        called = kernel.formulas or "fma" in called_functions(kernel.main.body)
        fused = self.backend.c.fused
        return {fused} if fused and called and not asked else set()

    def _comment(self, function: Function) -> Iterator[str]:
        kernel = self.kernel
        if function is not kernel.main:
            target = function.buffers[-1]
            origin = kernel.buffers[target].origin
            what = f"Lay out {origin or 'the constants'} as {self.names(target)}"
            if target in _checks(kernel.main.body):
                what = f"Check {origin}: {self.names(target)} is 0 where {self.name} may take the fast way"
            yield f"/* {in_comment(what)}, once, before any call of {self.name}. */"
            return
        yield "/*"
        for name in function.buffers:
            buffer = kernel.buffers[name]
            if buffer.scope == "workspace":
                continue
            shape = "".join(f"[{n}]" for n in buffer.shape)
            role = self._role(buffer.name)
            if buffer.scope == "packed":
                filler = next(f for f in kernel.prepare if f.buffers[-1] == name)
                role = f"as filled by {self._function_name(filler)}"
            yield f" * {self.names(name)}: {buffer.dtype}{shape}, {role}"
        for name, scalar in kernel.program.scalars.items():
            yield f" * {self.names(name)}: {scalar.dtype}, by value, behind the arrays"
        if self.workspaces:
            size = f"{self._constant('workspace_bytes')} bytes"
            yield f" * workspace: {size}; its contents do not matter"
        yield " * Arrays are row-major, must not overlap, and need no alignment beyond that of their elements."
        yield " */"

    def _role(self, name: str) -> str:
        program = self.kernel.program
        return "read and written" if name in program.inouts else "written" if name in program.outputs else "read"

    def _source(self, bodies: list[str]) -> Iterator[str]:
        kernel = self.kernel
        yield f'#include "{self.name}.h"'
        yield ""
        headers = {i.header for i in kernel.intrinsics if i.header}
        for header in sorted({"float.h", "math.h", "stdbool.h", "string.h"} | headers):
            yield f"#include <{header}>"
        vectors = [text for _, text in self.formulas.vectors.values()]
        called = " ".join((*ordered(self.used).values(), *self.vectors.functions.values(), *vectors))
        if "immintrin.h" not in headers and "_mm" in called:
            yield from ("#ifdef __x86_64__", "#include <immintrin.h>", "#endif")
        yield ""
        yield from (*RESTRICT_IN_CPP, "")
        if self._by_priority():
            yield from (workarounds.BY_PRIORITY.explained, "")
        for title, texts in (
            ("Vectors of elements.", list(self.vectors.typedefs.values())),
            ("Elements of row-major arrays.", list(self.macros.values())),
        ):
            if texts:
                yield f"/* {title} */"
                yield from texts
                yield ""
        if self.vectors.functions:
            yield from (workarounds.VECTORS_INLINED.explained, "")
        own = self.formulas.texts()  # first: they use helpers
        for text in (*ordered(self.used).values(), *own, *self.vectors.functions.values(), *vectors):
            yield from (text, "")
        for body in bodies:
            yield from (body, "")


def _checks(body: tuple[Stmt, ...]) -> set[str]:
    """The buffers that choices look at."""
    return {name for stmt in statements(body) if isinstance(stmt, GuardedDispatch) for name in stmt.checks}


def _enum(constants: list[str]) -> Iterator[str]:
    line = f"enum {{ {', '.join(constants)} }};"
    if len(line) <= 118:
        yield line
        return
    yield "enum {"
    yield from (f"  {c}," for c in constants)
    yield "};"


def _text(text: str, indent: str = "") -> Iterator[str]:
    yield from (f" * {indent}{line}" for line in comment_lines(text, 112))
