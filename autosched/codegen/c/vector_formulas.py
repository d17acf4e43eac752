"""Formulas of a kernel as functions on vectors, a line a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from autosched.codegen import workarounds
from autosched.codegen.c.vector_helpers import LaneHelpers, NotVector
from autosched.codegen.c.vectors import VectorPrinter
from autosched.codegen.c_like.ctypes import literal
from autosched.codegen.c_like.formulas import Formulas
from autosched.codegen.c_like.names import Names
from autosched.codegen.passes.memory_constants import memory_constants
from autosched.ir.dtypes import BOOL
from autosched.ir.formula import Formula
from autosched.ir.value import Literal, Read, Value
from autosched.logic import Bool, Int


class VectorFormulas(Formulas):
    """Adds formulas on vectors. `scarce`: vector registers are few, so constants are memory operands where they can
    be."""

    def __init__(
        self, formulas: Mapping[str, Formula], names: Names, use: Callable[[str], None], scarce: bool
    ) -> None:
        super().__init__(formulas, names, use)
        self.scarce = scarce
        self.vectors: dict[tuple[str, int], tuple[str, str]] = {}  # name and text

    def vector(self, function: str, helpers: LaneHelpers) -> str | None:
        """The C name of a formula on vectors; None for a function of the language."""
        formula = self.formulas.get(function)
        if formula is None:
            return None
        key = function, helpers.width
        if key not in self.vectors:
            v = helpers.vector(formula.dtype)
            name = f"approximate_{formula.function}_{v}"
            constants = memory_constants(formula) if self.scarce else ()
            if constants:
                self.use(workarounds.FROM_MEMORY.macro)
            self.vectors[key] = name, _vector_text(formula, name, v, helpers, constants)
        return self.vectors[key][0]


def _vector_text(
    formula: Formula, name: str, vector: str, helpers: LaneHelpers, constants: tuple[Literal, ...]
) -> str:
    """Truth values of steps are masks as wide as the argument's elements. `constants` are taken from memory."""
    bits, x, table = formula.dtype.bits, formula.argument, f"{name}_constants"
    masks = {n: bits for n, step in formula.steps if step.dtype == BOOL}
    named = {c: f"constants[{n}]" for n, c in enumerate(constants)}
    values = VectorPrinter(_Steps(), helpers, helpers.width, None, masks, named)
    before, lines = list[str](), list[str]()
    if constants:
        before.append(f"static const {vector} {table}[{len(constants)}] = {{")
        before += [f"  {{{', '.join([literal(c.value, c.dtype)] * helpers.width)}}}," for c in constants]
        before += ["};", ""]
        lines += [f"  const {vector} *constants = {table};", f"  {workarounds.FROM_MEMORY.macro}(constants, {x});"]
    for n, step in formula.steps:
        if step.dtype == BOOL:
            lines.append(f"  const {helpers.signed(bits)} {n} = {values.mask_of(step, bits)};")
        else:
            lines.append(f"  const {helpers.vector(step.dtype)} {n} = {values.value(step)};")
    head = f"VECTOR_INLINE {vector} {name}({vector} {x}) {{  /* within {formula.ulp:g} ulp */"
    return "\n".join([*before, head, *lines, f"  return {values.value(formula.result)};", "}"])


class _Steps:
    """A formula's surroundings: none."""

    def in_memory(self, name: str) -> bool:
        return False

    def there(self, read: Read) -> bool:
        return False

    def read(self, read: Read, count: Int | None) -> str:
        raise NotVector

    def uniform(self, value: Value, count: Int | None) -> str:
        raise NotVector

    def mask(self, condition: Bool, bits: int) -> tuple[str, Int | None]:
        raise NotVector

    def choice(self, condition: Bool) -> str:
        raise NotVector

    def formula(self, function: str) -> str | None:
        return None
