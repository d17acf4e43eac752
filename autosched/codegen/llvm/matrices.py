"""Registers that hold matrices, by the texts that the instruction's description has for them."""

from __future__ import annotations

from autosched.codegen.analysis.matrix_moves import MatrixMove, ref_number
from autosched.codegen.llvm.accesses.memory import MemoryPrinter
from autosched.codegen.llvm.emitter import Emitter
from autosched.codegen.tree.kernel import Buffer, IntrinsicCall
from autosched.tensorize.matrices import Matrices
from autosched.tensorize.spec.emit import declaration, render
from autosched.tensorize.spec.keys.matrix_ir import Uses


class LlvmMatrixPrinter:
    """Prints what concerns them in one function."""

    def __init__(self, out: Emitter, memory: MemoryPrinter, buffers: dict[str, Buffer]) -> None:
        self.out, self.memory, self.buffers = out, memory, buffers
        self.there = any(b.scope == "matrix" for b in buffers.values())

    def configure(self, matrices: Matrices, on: bool) -> None:
        if not on:
            self._line(Uses(matrices)("release"))
            return
        name = f"@configuration.{matrices.configuration.hex()}"
        self.out.declarations.lines.setdefault(name, Uses(matrices).constant(name))
        self._line(Uses(matrices)("configure", configuration=name))

    def move(self, move: MatrixMove) -> None:
        matrices = move.buffer.matrices
        assert matrices is not None
        if move.memory is None:
            self._line(Uses(matrices)("zero", register=move.number))
            return
        pointer = self.memory.places.place(move.memory, move.place, None, None).pointer
        self._line(Uses(matrices)(move.use, register=move.number, address=pointer, stride=move.stride))

    def call(self, stmt: IntrinsicCall) -> None:
        numbers = {name: str(ref_number(ref, self.buffers)) for name, ref in stmt.operands.items()}
        self._line(f"  {render(stmt.intrinsic, 'llvm', numbers)}")

    def _line(self, text: str) -> None:
        """One call, its function declared."""
        name, line = declaration(text.strip())
        self.out.declarations.lines.setdefault(name, line)
        self.out.line(text)
