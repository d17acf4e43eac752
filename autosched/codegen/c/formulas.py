"""Formulas of a kernel as `static inline` functions of one number, a line a step, which compilers vectorise."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from autosched.codegen.c.ctypes import compute_type, literal
from autosched.codegen.c.indices import IndexPrinter
from autosched.codegen.c.names import Names
from autosched.codegen.c.values import CValuePrinter
from autosched.codegen.c.vector_helpers import LaneHelpers, NotVector
from autosched.codegen.c.vectors import VectorPrinter
from autosched.codegen.passes.memory_constants import memory_constants
from autosched.ir.dtypes import BOOL, DType
from autosched.ir.formula import Formula
from autosched.ir.value import Literal, Read, Value
from autosched.logic import Bool, Int


class Formulas:
    """The formulas that a kernel may call; those it does call are printed."""

    def __init__(
        self,
        formulas: Mapping[str, Formula],
        names: Names,
        use: Callable[[str], None],
        printer: str = "c",
        scarce: bool = False,
    ) -> None:
        """`scarce`: vector registers are, so that constants are taken from memory where they can be."""
        self.formulas, self.names, self.use, self.printer, self.scarce = formulas, names, use, printer, scarce
        self.called: dict[str, str] = {}
        self.vectors: dict[tuple[str, int], tuple[str, str]] = {}  # name and text

    def name(self, function: str) -> str | None:
        """The C name of a formula, which is then printed; None for a function of the language."""
        formula = self.formulas.get(function)
        if formula is None:
            return None
        if function not in self.called:
            self.called[function] = self.names.fresh(f"approximate_{formula.function}_{formula.dtype}")
        return self.called[function]

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
                self.use("from_memory")
            self.vectors[key] = name, _vector_text(formula, name, v, helpers, constants)
        return self.vectors[key][0]

    def texts(self) -> list[str]:
        """The definitions of those called."""
        return [self._text(self.formulas[function], name) for function, name in self.called.items()]

    def _text(self, formula: Formula, name: str) -> str:
        values = CValuePrinter(IndexPrinter({}, {}, self.use), _no_memory, lambda scalar: scalar, self.use)
        t = compute_type(formula.dtype)
        head = f"static inline {t} {name}({t} {formula.argument}) {{  /* within {formula.ulp:g} ulp */"
        own = dict(formula.texts).get(self.printer)
        if own is not None:
            return "\n".join([head, *(f"  {line}" for line in own.replace("{x}", formula.argument).splitlines()), "}"])
        lines = [f"  const {_type(step.dtype)} {n} = {values.value(step)};" for n, step in formula.steps]
        return "\n".join([head, *lines, f"  return {values.value(formula.result)};", "}"])


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
        lines += [f"  const {vector} *constants = {table};", f"  from_memory(constants, {x});"]
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

    def read(self, read: Read, count: Int | None) -> str:
        raise NotVector

    def uniform(self, value: Value) -> str:
        raise NotVector

    def mask(self, condition: Bool, bits: int) -> tuple[str, Int | None]:
        raise NotVector

    def choice(self, condition: Bool) -> str:
        raise NotVector

    def formula(self, function: str) -> str | None:
        return None


def _type(dtype: DType) -> str:
    return "int" if dtype == BOOL else compute_type(dtype)


def _no_memory(read: Read) -> str:
    raise AssertionError(f"a formula reads {read.tensor}")
