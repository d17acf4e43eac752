"""Signs that a program rules out: `abs(f32(S[i]))` of an instruction is `f32(S[i])` where `assume(0 <= S)`."""

from __future__ import annotations

from collections.abc import Collection

from autosched.ir.program import Program
from autosched.ir.value import Call, Cast, Read, Value, map_value, walk
from autosched.tensorize.body.exact import holds


def not_negative(program: Program) -> frozenset[str]:
    """Tensors of floats that the program only reads, and whose elements it assumes to be zero or more."""
    stated = {a.subject for a in program.lasting_assumptions if a.low is not None and a.low >= 0}
    return frozenset(n for n in stated if n in program.tensors and program.tensors[n].dtype.is_float)


def without_signs(term: Value, tensors: Collection[str]) -> Value:
    """The term without the magnitudes of these tensors' elements. A zero keeps its sign: nothing else differs."""

    def bare(v: Value) -> Value:
        match v:
            case Call("abs", (inner,), _) if (element := _element(inner)) is not None and element.tensor in tensors:
                return inner
        return v

    return map_value(term, bare)


def under_magnitudes(term: Value) -> tuple[str, ...]:
    """The tensors of whose elements, exactly converted, the term takes the magnitude."""
    calls = (v.args[0] for v in walk(term) if isinstance(v, Call) and v.function == "abs")
    return tuple(dict.fromkeys(e.tensor for inner in calls if (e := _element(inner)) is not None))


def _element(value: Value) -> Read | None:
    """The element that a value is, exactly converted."""
    while isinstance(value, Cast) and holds(value.operand.dtype, value.dtype):
        value = value.operand
    return value if isinstance(value, Read) else None
