"""Formulas of a kernel as `static inline` functions of one number, a line a step, which compilers vectorise."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from autosched.codegen.c_like.ctypes import compute_type
from autosched.codegen.c_like.indices import IndexPrinter
from autosched.codegen.c_like.names import Names
from autosched.codegen.c_like.values import CLikeValuePrinter
from autosched.ir.dtypes import BOOL, DType
from autosched.ir.formula import Formula
from autosched.ir.value import Read


class Formulas:
    """The formulas that a kernel may call. `texts` prints those called, by the `printer`'s own text where there is
    one."""

    def __init__(
        self, formulas: Mapping[str, Formula], names: Names, use: Callable[[str], None], printer: str = "c"
    ) -> None:
        self.formulas, self.names, self.use, self.printer = formulas, names, use, printer
        self.called: dict[str, str] = {}
        self._named: dict[str, str] = {}  # also what was asked for and is not called in the end

    def name(self, function: str) -> str | None:
        """The C name of a formula, which is then printed; None for a function of the language."""
        formula = self.formulas.get(function)
        if formula is None:
            return None
        if function not in self._named:
            self._named[function] = self.names.fresh(f"approximate_{formula.function}_{formula.dtype}")
        return self.called.setdefault(function, self._named[function])

    def texts(self) -> list[str]:
        """The definitions of the formulas called."""
        return [self._text(self.formulas[function], name) for function, name in self.called.items()]

    def _text(self, formula: Formula, name: str) -> str:
        values = CLikeValuePrinter(IndexPrinter({}, {}, self.use), _no_memory, lambda scalar: scalar, self.use)
        t = compute_type(formula.dtype)
        head = f"static inline {t} {name}({t} {formula.argument}) {{  /* {formula.bound} */"
        own = dict(formula.texts).get(self.printer)
        if own is not None:
            return "\n".join([head, *(f"  {line}" for line in own.replace("{x}", formula.argument).splitlines()), "}"])
        lines = [f"  const {_type(step.dtype)} {n} = {values.value(step)};" for n, step in formula.steps]
        return "\n".join([head, *lines, f"  return {values.value(formula.result)};", "}"])


def _type(dtype: DType) -> str:
    return "int" if dtype == BOOL else compute_type(dtype)


def _no_memory(read: Read) -> str:
    raise AssertionError(f"a formula reads {read.tensor}")
