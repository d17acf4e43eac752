"""Formulas of a kernel as functions on vectors, a line a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from autosched.codegen import workarounds
from autosched.codegen.c.vector_helpers import F32, U16, U32, LaneHelpers, NotVector
from autosched.codegen.c.vectors import VectorPrinter
from autosched.codegen.c_like.ctypes import literal
from autosched.codegen.c_like.formulas import Formulas
from autosched.codegen.c_like.names import Names
from autosched.codegen.passes.memory_constants import memory_constants
from autosched.codegen.passes.small_floats import Conversion, narrowing, widening
from autosched.ir.dtypes import BOOL, DType
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

    def widening(self, dtype: DType, helpers: LaneHelpers) -> str:
        """The C name of the function from the bits of a small float to f32: from a vector of them as they are stored,
        if they are 16, else from words."""
        steps, own = widening(dtype), U32 if dtype.bits <= 8 else dtype
        name, v, words = f"wide_{dtype}x{helpers.width}", helpers.vector(own), helpers.vector(U32)
        if (key := (name, helpers.width)) not in self.vectors:
            lines = [*_steps(steps, helpers), f"return {_result(steps, helpers)};"]
            argument = steps.argument.name if own == U32 else "stored"
            if own != U32:
                lines.insert(0, f"const {words} {steps.argument.name} = {helpers.converted(U16, U32, argument)};")
            lines = helpers.widened(dtype, argument, lines)
            self.vectors[key] = name, _function(f"{helpers.vector(F32)} {name}({v} {argument})", lines)
        return name

    def narrowing(self, dtype: DType, helpers: LaneHelpers) -> str:
        """The C name of the function from f32, rounded, to such bits."""
        steps, own = narrowing(dtype), U32 if dtype.bits <= 8 else dtype
        name = f"narrow_{dtype}x{helpers.width}"
        if (key := (name, helpers.width)) not in self.vectors:
            found = _result(steps, helpers)
            found = found if own == U32 else helpers.converted(U32, U16, found)
            lines = [*_steps(steps, helpers), f"return {found};"]
            head = f"{helpers.vector(own)} {name}({helpers.vector(F32)} {steps.argument.name})"
            self.vectors[key] = name, _function(head, helpers.narrowed(dtype, steps.argument.name, lines))
        return name


def _steps(conversion: Conversion, helpers: LaneHelpers) -> list[str]:
    values = VectorPrinter(_Steps(), helpers, helpers.width, None, {})
    return [f"const {helpers.vector(step.dtype)} {n} = {values.value(step)};" for n, step in conversion.steps]


def _result(conversion: Conversion, helpers: LaneHelpers) -> str:
    return VectorPrinter(_Steps(), helpers, helpers.width, None, {}).value(conversion.result)


def _function(head: str, lines: list[str]) -> str:
    body = (line if line.startswith("#") else f"  {line}" for line in lines)
    return "\n".join([f"VECTOR_INLINE {head} {{", *body, "}"])


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
    head = f"VECTOR_INLINE {vector} {name}({vector} {x}) {{  /* {formula.bound} */"
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

    def read_where(self, read: Read, mask: str, count: Int | None) -> str:
        raise NotVector

    def maskable(self, read: Read) -> bool:
        return False

    def within(self, index: Int, limit: int) -> bool:
        return False

    def from_index(self, index: Int, dtype: DType) -> str:
        raise NotVector

    def widening(self, dtype: DType) -> str:
        raise NotVector

    def narrowing(self, dtype: DType) -> str:
        raise NotVector

    def formula(self, function: str) -> str | None:
        return None
