"""Statements of a loop tree as lines of C."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import assert_never

from autosched.codegen import workarounds
from autosched.codegen.analysis.access import plain
from autosched.codegen.analysis.known import known
from autosched.codegen.analysis.matrix_moves import move_of
from autosched.codegen.c.assignments import CAssignPrinter, streamed
from autosched.codegen.c.matrices import CMatrixPrinter
from autosched.codegen.c.register_pressure import (
    adds,
    finishes,
    high_pressure_sums,
    repeats_memory,
    shared_operands,
    slides,
    sums_of,
)
from autosched.codegen.c.registers import is_mask
from autosched.codegen.c.scope import FunctionScope
from autosched.codegen.c_like.blocks import loop_head
from autosched.codegen.c_like.indices import INDEX_TYPE, loop_range
from autosched.codegen.tree.kernel import (
    CONCURRENT,
    WORKERS,
    Assign,
    Branch,
    Chosen,
    Comment,
    Concurrent,
    Configure,
    For,
    GuardedDispatch,
    If,
    IntrinsicCall,
    Prefetch,
    Stmt,
    StoreFence,
)
from autosched.errors import UsageError
from autosched.escape import in_comment
from autosched.logic import FALSE, TRUE, Const
from autosched.tensorize.spec.emit import render_c

INDENT = "  "


class CStatementPrinter:
    """Prints the body of one function; `scope` knows names, registers, ranges and the helpers used so far."""

    def __init__(self, scope: FunctionScope) -> None:
        self.scope = scope
        self.assigns = CAssignPrinter(scope)
        self.matrices = CMatrixPrinter(scope)
        self.high_pressure = high_pressure_sums(scope.kernel) if scope.function is scope.kernel.main else frozenset()
        operands = shared_operands(scope.kernel, self.high_pressure)
        self.shared = {name for name in operands if scope.registers[name].style == "vector"}

    def body(self, statements: tuple[Stmt, ...], depth: int) -> Iterator[str]:
        added = False
        for group in streamed(statements):
            if added and finishes(group[0], self.high_pressure, self.scope.kernel):
                yield INDENT * depth + self.scope.workaround(workarounds.SUMS_DONE)
            added = adds(group[0], self.high_pressure)
            stores = tuple(stmt for stmt in group if isinstance(stmt, Assign))
            lines = self.assigns.together(stores) if len(stores) > 1 else self._statement(group[0])
            for line in lines:
                yield INDENT * depth + line if line and not line.startswith("#") else line

    def _statement(self, stmt: Stmt) -> Iterator[str]:
        scope = self.scope
        match stmt:
            case For():
                yield from self._for(stmt)
            case If(condition, body):
                condition = known(condition, scope.ranges)
                if condition == TRUE:
                    yield from self.body(body, 0)
                elif condition != FALSE:
                    yield f"if ({scope.index.condition(condition)}) {{"
                    yield from self.body(body, 1)
                    yield "}"
            case Branch(data, body):
                yield f"if ({scope.values.condition(data)}) {{"
                yield from self.body(body, 1)
                yield "}"
            case Chosen():
                yield from self._chosen(stmt)
            case GuardedDispatch(checks, body, fallback, note):
                comment = f"  /* {in_comment(note)} */" if note else ""
                yield f"if ({' && '.join(f'{scope.names(name)}[0] == 0' for name in checks)}) {{{comment}"
                yield from self.body(body, 1)
                yield "} else {"
                yield from self.body(fallback, 1)
                yield "}"
            case Assign():
                move = move_of(stmt, scope.kernel.buffers) if self.matrices.there else None
                yield from self.assigns.lines(stmt) if move is None else self.matrices.move(move)
                if stmt.buffer in self.shared and repeats_memory(stmt, scope.kernel):
                    operand = scope.register(stmt.buffer, plain(stmt.buffer, stmt.index[:-1]))
                    yield scope.workaround(workarounds.HELD, operand)
            case IntrinsicCall():
                yield from self._call(stmt)
            case Prefetch(buffer, index, write):
                scope.use("prefetch_address")
                name = scope.names(buffer)
                offset = scope.flat(buffer, index)
                address = f"prefetch_address({name}, ({offset}) * ({INDEX_TYPE})sizeof *{name})"
                yield f"__builtin_prefetch({address}, {int(write)}, 3);"
            case StoreFence():
                scope.use("drain_stores")
                yield "drain_stores();"
            case Configure(matrices, on):
                yield from self.matrices.configure(matrices, on)
            case Comment(text):
                for line in text.splitlines():
                    yield f"/* {in_comment(line)} */"
            case _:
                if isinstance(stmt, Concurrent):
                    raise UsageError(CONCURRENT, hint="C can hold rows without them")
                assert_never(stmt)

    def _for(self, loop: For) -> Iterator[str]:
        scope = self.scope
        var = scope.names.local(loop.var)
        lower, upper = scope.index.number(loop.lower), scope.index.number(loop.upper, 5)
        notes = [n for n in (loop.note, loop.kind if "." in loop.kind or loop.kind in WORKERS else "") if n]
        comment = f"  /* {in_comment(', '.join(notes))} */" if notes else ""
        if loop.kind == "parallel":
            yield "#ifdef _OPENMP"
            yield f"#pragma omp parallel for schedule(static) num_threads({scope.kernel.threads})"
            yield "#endif"
        elif loop.kind == "unrolled":
            assert isinstance(loop.lower, Const)
            assert isinstance(loop.upper, Const)
            trips = -(-(loop.upper.value - loop.lower.value) // loop.step)
            if trips > 1:
                yield f"#pragma GCC unroll {trips}"
        sliding = slides(loop, self.high_pressure, scope.kernel)
        if sliding and loop.kind != "unrolled":
            yield workarounds.ROLLED_WINDOW.text
        yield f"{loop_head(INDEX_TYPE, var, upper, lower, loop.step)} {{{comment}"
        found = loop_range(loop.lower, loop.upper, loop.step, scope.ranges)
        if found is not None:
            scope.ranges[loop.var] = found
        body = list(self.body(loop.body, 1))
        if loop.kind == "parallel":
            yield from (INDENT + line for line in scope.declarations(loop, body))
        if sliding:
            yield INDENT + scope.workaround(workarounds.NEXT_ROUND)
        yield from body
        scope.ranges.pop(loop.var, None)
        yield "}"

    def _chosen(self, stmt: Chosen) -> Iterator[str]:
        scope = self.scope
        var, last = scope.names.local(stmt.var), stmt.extent - 1
        yield "{"
        yield f"{INDENT}{INDEX_TYPE} {var} = {scope.values.subscript(stmt.value)};"
        first = last if stmt.value.dtype.name == "u64" else 0  # its greatest numbers have no sign
        yield f"{INDENT}{var} = {var} < 0 ? {first} : {var} < {last} ? {var} : {last};"
        scope.ranges[stmt.var] = 0, last
        yield from self.body(stmt.body, 1)
        scope.ranges.pop(stmt.var, None)
        yield "}"

    def _call(self, stmt: IntrinsicCall) -> Iterator[str]:
        scope, intrinsic = self.scope, stmt.intrinsic
        if intrinsic.matrices is not None:
            yield self.matrices.call(stmt)
            return
        values = {}
        for name, ref in stmt.operands.items():
            register, text = scope.registers[ref.buffer], scope.register(ref.buffer, ref.index)
            wanted = scope.vectors.operand(register, intrinsic.operands[name].registers["c"])
            if is_mask(wanted):
                values[name] = f"{scope.vectors.mask(register, wanted)}({text})"
                continue
            cast = register.style == "vector" and register.type != wanted
            values[name] = f"({wanted}){text}" if cast else text
        result = render_c(intrinsic, values)
        target = stmt.operands[intrinsic.accumulator.name]
        register = scope.registers[target.buffer]
        if register.style == "vector" and register.type != intrinsic.accumulator.registers["c"]:
            # One call needs no parentheses; an expression with operators does.
            simple = re.fullmatch(r"\w+\(.*\)", result) and not re.search(r"\) [-+*/&|^<>]", result)
            result = f"({register.type}){result}" if simple else f"({register.type})({result})"
        sums = scope.register(target.buffer, target.index)
        yield f"{sums} = {result};"
        if sums_of(stmt) in self.high_pressure and register.style == "vector":
            order = workarounds.IN_ORDER if register.dtype.is_float else workarounds.IN_ORDER_INT
            yield scope.workaround(order, sums)
