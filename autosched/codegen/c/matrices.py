"""Registers that hold matrices in C, by the texts that the instruction's description has for them."""

from __future__ import annotations

from collections.abc import Iterator

from autosched.codegen import workarounds
from autosched.codegen.analysis.matrix_moves import MatrixMove, ref_number
from autosched.codegen.c.scope import FunctionScope
from autosched.codegen.c_like.helpers import ASKING
from autosched.codegen.tree.kernel import IntrinsicCall
from autosched.errors import SpecError
from autosched.tensorize.matrices import Matrices
from autosched.tensorize.spec.emit import render


class CMatrixPrinter:
    """Prints what concerns them in one function."""

    def __init__(self, scope: FunctionScope) -> None:
        self.scope = scope
        self.there = any(b.scope == "matrix" for b in scope.kernel.buffers.values())

    def configure(self, matrices: Matrices, on: bool) -> Iterator[str]:
        if not on:
            yield self._text(matrices, "release")
            return
        needed = {feature for i in self.scope.kernel.intrinsics if matrices.same(i.matrices) for feature in i.requires}
        for helper in permission_helpers(needed):
            self.scope.use(helper)
            yield f"{helper}();"
        name = self.scope.names.local("configuration")
        values = ", ".join(str(byte) for byte in matrices.configuration)
        yield "{"
        yield f"  static const uint8_t {name}[{len(matrices.configuration)}] = {{{values}}};"
        yield "  " + self._text(matrices, "configure", configuration=name)
        yield "}"

    def move(self, move: MatrixMove) -> Iterator[str]:
        matrices = move.buffer.matrices
        assert matrices is not None
        if move.memory is None:
            yield self._text(matrices, "zero", register=move.number)
            return
        address = f"&{self.scope.element(move.memory.name, move.place)}"
        line = self._text(matrices, move.use, register=move.number, address=address, stride=move.stride)
        if move.use == "load":
            apart = self.scope.workaround(workarounds.AS_WRITTEN)
            line = f"{apart} {line} {apart}"
        yield line

    def call(self, stmt: IntrinsicCall) -> str:
        numbers = {name: str(ref_number(ref, self.scope.kernel.buffers)) for name, ref in stmt.operands.items()}
        return render(stmt.intrinsic, "c", numbers) + ";"

    def _text(self, matrices: Matrices, use: str, **fields: object) -> str:
        text = matrices.said("c", use, **fields)
        if text is None:
            raise SpecError(f"registers that hold matrices have no c.{use}", hint="add it to state.matrices")
        return text + ";"


def permission_helpers(features: set[str]) -> list[str]:
    """The functions that ask the system for registers that code of these features uses."""
    return [name for feature, name in sorted(ASKING.items()) if feature in features]
