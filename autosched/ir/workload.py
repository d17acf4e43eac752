"""Built-in workloads: language files in `workloads/`, chosen by name and by a few options.

An option (`ta=1`, `layout=nchw`) chooses among functions of a file; everything else is a size or dtype of the function.
The accumulator's dtype follows from the operands' where it is not given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources

from autosched.errors import UnknownNameError, UsageError
from autosched.ir.dtypes import DTYPES
from autosched.ir.parser import Define, parse
from autosched.ir.program import Program


@dataclass(frozen=True)
class Family:
    """Functions of one file under one name. `options` maps an option to its values, the first being the default;
    `function` names the function for chosen options. `converts`: a `_to` form with an output dtype exists."""

    file: str
    function: Callable[[Mapping[str, str]], str]
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    converts: bool = False


def _transposes(name: str) -> Callable[[Mapping[str, str]], str]:
    def function(chosen: Mapping[str, str]) -> str:
        suffix = {"00": "", "01": "_nt", "10": "_tn", "11": "_tt"}[chosen["ta"] + chosen["tb"]]
        return name + suffix

    return function


def _plain(name: str) -> Callable[[Mapping[str, str]], str]:
    return lambda chosen: name


_BITS = {"ta": ("0", "1"), "tb": ("0", "1")}
FAMILIES: dict[str, Family] = {
    "matmul": Family("matmul", _transposes("matmul"), _BITS, converts=True),
    "matmul_nt": Family("matmul", _plain("matmul_nt"), converts=True),
    "matmul_tn": Family("matmul", _plain("matmul_tn"), converts=True),
    "matmul_tt": Family("matmul", _plain("matmul_tt"), converts=True),
}


def workload_names() -> tuple[str, ...]:
    """The names that `workload` knows."""
    return tuple(sorted(FAMILIES))


def workload(name: str, /, **defines: Define) -> Program:
    """The built-in workload `name`, as `workload("matmul", m=1024, a="u8", b="s8", tb=1)`.

    UnknownNameError for a name, size or option that does not exist.
    """
    family = FAMILIES.get(name)
    if family is None:
        raise UnknownNameError("workload", name, FAMILIES)
    given = dict(defines)
    chosen = {o: _option(o, given.pop(o, values[0]), values) for o, values in family.options.items()}
    function = family.function(chosen)
    operands = [str(given.get(o, "f32")) for o in ("a", "b", "t") if o in given] or ["f32"]
    given.setdefault("acc", accumulator(*operands))
    if family.converts:
        if given.setdefault("out", given["acc"]) == given["acc"]:
            del given["out"]
        else:
            function += "_to"
    text = resources.files("autosched.ir.workloads").joinpath(f"{family.file}.py").read_text(encoding="utf-8")
    try:
        return parse(text, f"{family.file}.py", function, given)
    except UnknownNameError as e:
        if not e.message.startswith("unknown size"):
            raise
        wrong = next(n for n in defines if repr(n) in e.message)
        raise UnknownNameError(f"size, dtype or option of {name}", wrong, [*_known(text, function), *family.options]) from None


def _known(text: str, function: str) -> list[str]:
    program = parse(text, function=function)
    return [*program.sizes, *program.dtypes]


def _option(name: str, given: Define, values: tuple[str, ...]) -> str:
    text = str(given).lower()
    if text not in values:
        raise UsageError(f"{name}={given} is not an option", hint=f"{name} is one of {', '.join(values)}")
    return text


def accumulator(*operands: str) -> str:
    """The default accumulator of products: s32 for integers (s64 for 64-bit ones), f32 for floats, f64 for f64.

    >>> accumulator("u8", "s8"), accumulator("f16", "f16"), accumulator("f64", "f32")
    ('s32', 'f32', 'f64')
    """
    types = [DTYPES[o] for o in operands if o in DTYPES]
    if any(t.name == "f64" for t in types):
        return "f64"
    if any(t.is_float for t in types) or not types:
        return "f32"
    return "s64" if any(t.bits == 64 for t in types) else "s32"
