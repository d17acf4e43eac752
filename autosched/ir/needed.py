"""At which points of its axes a stage has something to compute that a result needs: what guards, loop bounds and masks
leave. A mask is a choice between a term and what the reduction starts from, also where the choice stands in what an
intermediate holds:

    S[i, j] += Q[i, p] * K[j, p]                     needed where j <= i: no other stage reads S
    P[i, j] = exp((S[i, j] if j <= i else -inf) - M[i])      is 0 elsewhere
    O[i, e] += P[i, j] * V[j, e]                             adds 0 elsewhere

For counting work, not for proofs: 0 * V is 0 here, and minus infinity stays what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import exp, inf

from autosched.ir.nodes import Axis, Stage
from autosched.ir.program import Program
from autosched.ir.rewrites.algebra.cases import TooManyCases, cases_of
from autosched.ir.value import Arith, Call, Cast, Condition, Index, Literal, Read, Select, Unary, Value, map_value
from autosched.logic import TRUE, Bool, Const, Int, Var, all_of, any_of, conjuncts, free_vars
from autosched.logic.walk import substitute_bool

NEUTRAL = {"+=": 0.0, "-=": 0.0, "max=": -inf, "min=": inf, "*=": 1.0}
Masks = Mapping[str, Bool]
"""Of intermediates, where they are not zero, over `at(dimension)`."""


def needed(program: Program) -> list[Bool]:
    """Of each stage, a condition on its axes outside of which nothing of it is needed."""
    stages = program.stages
    inside = frozenset(a.name for s in stages for a in s.axes)
    nonzero: dict[str, Bool] = {}
    own = []
    for stage in stages:
        own.append(all_of(*_bounds(stage.axes), *_axis_guards(stage), _unmasked(stage, nonzero)))
        if _alone(program, stage) and stage.assign.op == "=":
            nonzero[stage.assign.tensor] = _of_tensor(_nonzero(stage, nonzero), stage.assign.index, inside)
    found = list(own)
    for number in reversed(range(len(stages))):
        wanted = _wanted(program, number, found, inside)
        names = {at(d): axis for d, axis in enumerate(stages[number].assign.index) if isinstance(axis, Var)}
        if len(names) == len(stages[number].assign.index):
            found[number] = all_of(found[number], substitute_bool(wanted, names))
    return found


def at(dimension: int) -> str:
    """The variable that stands for an index of a tensor."""
    return f"@{dimension}"


def _bounds(axes: Sequence[Axis]) -> list[Bool]:
    """What bounds that depend on other axes say."""
    said = []
    for axis in axes:
        said += [] if isinstance(axis.lower, Const) else [axis.lower <= Var(axis.name)]
        said += [] if isinstance(axis.upper, Const) else [Var(axis.name) < axis.upper]
    return said


def _axis_guards(stage: Stage) -> list[Bool]:
    return [g for g in stage.guards if isinstance(g, Bool)]


def _alone(program: Program, stage: Stage) -> bool:
    """Whether the stage alone writes its intermediate, element by element."""
    name = stage.assign.tensor
    once = sum(s.assign.tensor == name for s in program.stages) == 1
    return once and program.tensors[name].intermediate and _distinct(stage.assign.index) and not stage.guards


def _distinct(index: tuple[Index, ...]) -> bool:
    names = [i.name for i in index if isinstance(i, Var)]
    return len(set(names)) == len(index)


def _of_tensor(condition: Bool, index: tuple[Index, ...], inside: frozenset[str]) -> Bool:
    """What a condition on axes says of the element at the index: parts that speak of other axes of the program, which
    are `inside`, nothing. What is outside (sizes, loops around a body) is the same for all of them."""
    names: dict[str, Int] = {i.name: Var(at(d)) for d, i in enumerate(index) if isinstance(i, Var)}
    parts = [p for p in conjuncts(condition) if not (free_vars(p) - names.keys()) & inside]
    return substitute_bool(all_of(*parts), names) if parts else TRUE


def _wanted(program: Program, number: int, found: Sequence[Bool], inside: frozenset[str]) -> Bool:
    """Where another stage reads what a stage writes, over `at(dimension)`."""
    name = program.stages[number].assign.tensor
    if not program.tensors[name].intermediate:
        return TRUE
    said: list[Bool] = []
    for reader, stage in enumerate(program.stages):
        for read in (r for r in stage.reads if r.tensor == name):
            if reader <= number or not _distinct(read.index):
                return TRUE
            said.append(_of_tensor(found[reader], read.index, inside))
    return any_of(*said) if said else TRUE


def _unmasked(stage: Stage, nonzero: Masks) -> Bool:
    """Where the term is more than what the reduction starts from; of an assignment, more than a number."""
    neutral = NEUTRAL.get(stage.assign.op)
    return _where(stage.assign.value, nonzero, lambda v: v is not None and neutral in (None, v))


def _nonzero(stage: Stage, nonzero: Masks) -> Bool:
    return _where(stage.assign.value, nonzero, lambda v: v == 0)


def _where(value: Value, nonzero: Masks, nothing: Callable[[float | None], bool]) -> Bool:
    """The conditions on axes of all cases of the value but those whose number (None: it is none) is `nothing`."""

    def masked(node: Value) -> Value:
        if isinstance(node, Read) and node.tensor in nonzero and _distinct(node.index):
            names = {at(d): axis for d, axis in enumerate(node.index) if isinstance(axis, Var)}
            condition = substitute_bool(nonzero[node.tensor], names)
            return node if condition == TRUE else Select(condition, node, Literal(0, node.dtype), node.dtype)
        return node

    try:
        cases = cases_of(map_value(value, masked))
    except TooManyCases:
        return TRUE
    return any_of(*(_axes_of(case.when) for case in cases if not nothing(_number(case.value))))


def _axes_of(when: tuple[tuple[Condition, bool], ...]) -> Bool:
    return all_of(*(c if side else ~c for c, side in when if isinstance(c, Bool)))


def _number(value: Value) -> float | None:
    """The number that a value is whatever its elements are, if these are finite."""
    match value:
        case Literal(number):
            return float(number)
        case Cast(operand):
            return _number(operand)
        case Unary("-", operand):
            inner = _number(operand)
            return None if inner is None else -inner
        case Call("exp", (operand,)):
            inner = _number(operand)
            return None if inner is None or inner > 0 else exp(inner)
        case Call("sigmoid", (operand,)):
            return 0.0 if _number(operand) == -inf else None
        case Arith(op, left, right):
            return _of_two(op, _number(left), _number(right))
    return None


def _of_two(op: str, one: float | None, two: float | None) -> float | None:
    match op:
        case "*" if 0 in (one, two):
            return 0.0
        case "/" if one == 0:
            return 0.0
        case "+" if one in (-inf, inf) or two == 0:
            return one
        case "+" if two in (-inf, inf) or one == 0:
            return two
        case "-" if one in (-inf, inf) or two == 0:
            return one
        case "-" if two in (-inf, inf):
            return -two if two is not None else None
        case "max" if inf in (one, two):
            return inf
        case "min" if -inf in (one, two):
            return -inf
    return None
