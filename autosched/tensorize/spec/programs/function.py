"""`kind: function`: an approximation of one of the language's functions, as steps in the language itself.

`semantics` says which function of which dtype it is, `implementation` computes it in polynomials and bit operations,
and `numerics: {ulp: …}` bounds the error, which `check.function` measures (`argument_ulp: …`
one of the argument beside).
"""

from __future__ import annotations

from collections.abc import Iterable

from autosched.errors import ProgramError
from autosched.ir.formula import Formula, Formulas, closed, in_steps
from autosched.ir.program import Program
from autosched.ir.value import Call, Read, Scalar, Value, map_value, walk
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.keys.models import IntrinsicKeys
from autosched.tensorize.spec.operands import printer_of
from autosched.tensorize.spec.programs.semantics import moved
from autosched.tensorize.spec.source import DocumentSource

KEY = "implementation"


def parse_function(
    keys: IntrinsicKeys, semantics: Program, name: str, requires: frozenset[str], source: DocumentSource
) -> Formula | None:
    """The formula of an entry of kind `function`, None for other kinds; SpecError where the keys do not fit."""
    if keys.kind != "function":
        if keys.implementation is not None:
            raise source.error("implementation: only a function has one", KEY, key=True, hint="set kind: function")
        if keys.numerics.argument_ulp is not None:
            raise source.error("argument_ulp: only a function has one", "numerics", hint="set kind: function")
        return None
    call = semantics.stages[0].assign.value
    if not isinstance(call, Call) or len(call.args) != 1 or not isinstance(call.args[0], Read):
        raise source.error("semantics: a function is one call of one element", "semantics", hint="y[0] = exp(x[0])")
    if keys.implementation is None or keys.numerics.ulp is None:
        missing = "implementation" if keys.implementation is None else "numerics: {ulp: …}"
        raise source.error(f"a function needs {missing}", "kind")
    value = _value(keys.implementation, call, source)
    steps, result = in_steps(value)
    flushed = keys.numerics.subnormals != "kept"
    bound = keys.numerics.ulp
    emit = keys.emit if isinstance(keys.emit, dict) else {printer_of(name.split("/")[0]): keys.emit}
    texts = tuple((printer, text.rstrip()) for printer, text in emit.items())
    argument = keys.numerics.argument_ulp or 0.0
    return Formula(name, call.function, call.dtype, "x", steps, result, bound, flushed, requires, texts, argument)


def _value(text: str, call: Call, source: DocumentSource) -> Value:
    """What the implementation assigns to its one output, its argument as the scalar `x`."""
    from autosched.ir.parser import parse

    try:
        program = parse(text, filename=source.document.file)
    except ProgramError as error:
        raise moved(error.message, error.hint, error.location, text, source, KEY) from None
    dtype = call.dtype
    outputs, scalars = program.outputs, tuple(program.scalars)
    stage = program.stages[0] if len(program.stages) == 1 else None
    fits = [program.scalars[s].dtype for s in scalars] == [dtype] and len(program.tensors) == 1
    if stage is None or not fits or len(outputs) != 1 or stage.assign.op != "=" or stage.assign.value.dtype != dtype:
        hint = f"def f(x: {dtype}, y: {dtype}[1]): locals, then y[0] = …"
        raise source.error(f"implementation: not a function of one {dtype}", KEY, hint=hint)
    value = stage.assign.value
    if any(isinstance(v, Read) for v in walk(value)):
        raise source.error("implementation: it reads its own output", KEY)
    name = scalars[0]
    return _renamed(value, name) if name != "x" else value


def _renamed(value: Value, name: str) -> Value:
    return map_value(value, lambda v: Scalar("x", v.dtype) if isinstance(v, Scalar) and v.name == name else v)


def formulas_of(intrinsics: Iterable[Intrinsic], anew: bool = False) -> Formulas:
    """The formulas of all functions among `intrinsics`, each with the steps of the others where it calls them. The
    first of several for one function is taken (with `anew`, one that rounds its argument may be it); what has a text of
    its own, or rounds its argument, does not lend its steps."""
    found: dict[tuple[str, str], Formula] = {}
    steps: dict[tuple[str, str], Formula] = {}
    for intrinsic in intrinsics:
        if (formula := intrinsic.formula) is not None and (anew or not formula.argument_ulp):
            found.setdefault((formula.function, formula.dtype.name), formula)
            if not formula.texts and not formula.argument_ulp:
                steps.setdefault((formula.function, formula.dtype.name), formula)
    return {key: closed(formula, steps) for key, formula in found.items()}
