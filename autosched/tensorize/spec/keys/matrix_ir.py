"""LLVM IR of one function on registers that hold matrices: its lines, and what they declare."""

from __future__ import annotations

from autosched.errors import SpecError
from autosched.tensorize.matrices import Matrices
from autosched.tensorize.spec.emit import declaration


class Uses:
    """Makes the lines; `declared` are the functions that they call."""

    def __init__(self, matrices: Matrices) -> None:
        self.matrices = matrices
        self._declared: dict[str, str] = {}

    @property
    def declared(self) -> list[str]:
        return list(self._declared.values())

    def __call__(self, use: str, **fields: object) -> str:
        """The line of a use. SpecError where the description has no text for it."""
        text = self.matrices.said("llvm", use, **fields)
        if text is None:
            raise SpecError(f"registers that hold matrices have no llvm.{use}", hint="add it to state.matrices")
        return self.line(text)

    def line(self, text: str) -> str:
        """The line of one call."""
        name, line = declaration(text)
        self._declared.setdefault(name, line)
        return f"  {text}"

    def constant(self, name: str) -> str:
        """The definition of what registers are configured with, under a name."""
        data = self.matrices.configuration
        text = "".join(f"\\{byte:02X}" for byte in data)
        return f'{name} = private unnamed_addr constant [{len(data)} x i8] c"{text}", align 64'
