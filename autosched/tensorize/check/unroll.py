"""A small program as formulas: what each element of its output is, in terms of the elements at entry.

Loops are run, so it is for programs of an instruction's size. The value of an element is an expression over reads with
constant subscripts; a sum of four products becomes one expression of four products.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from autosched.ir.nodes import Assign, Guard, Loop, Statement
from autosched.ir.program import Program
from autosched.ir.value import Arith, Call, FromIndex, Literal, Read, Select, Value, is_value, map_value
from autosched.logic import Bool, Const, Int, Var
from autosched.logic.readings import evaluate

MAX_STEPS = 1 << 16
Element = tuple[str, tuple[int, ...]]


class NotUnrolled(Exception):
    """The program is too long, or does something that depends on data."""


def unroll(program: Program, output: str) -> dict[tuple[int, ...], Value]:
    """Each element of `output` after one run; NotUnrolled where that cannot be said."""
    memory: dict[Element, Value] = {}
    steps = _Budget()
    _run(program.body, program, {}, memory, steps)
    tensor = program.tensors[output]
    found = {}
    for place in product(*(range(n) for n in tensor.extents)):
        found[place] = memory.get((output, place), _entry(program, output, place))
    return found


class _Budget:
    def __init__(self) -> None:
        self.left = MAX_STEPS

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise NotUnrolled(f"more than {MAX_STEPS:,} steps")


def _entry(program: Program, name: str, place: tuple[int, ...]) -> Value:
    """An element nothing has been stored to yet."""
    tensor = program.tensors[name]
    if tensor.intermediate:
        raise NotUnrolled(f"{name} is read before it is written")
    return Read(name, tuple(Const(n) for n in place), tensor.dtype)


def _run(
    body: tuple[Statement, ...], program: Program, at: Mapping[str, int], memory: dict[Element, Value], steps: _Budget
) -> None:
    for statement in body:
        match statement:
            case Loop(axis, inner):
                for n in range(_number(axis.lower, at), _number(axis.upper, at)):
                    _run(inner, program, {**at, axis.name: n}, memory, steps)
            case Guard(condition, inner):
                if not isinstance(condition, Bool):
                    raise NotUnrolled("a guard that depends on data")
                if bool(evaluate(condition, at)):
                    _run(inner, program, at, memory, steps)
            case Assign(tensor, index, op, value):
                steps.spend()
                place = _place(index, at)
                new = _value(value, program, at, memory)
                if op != "=":
                    old = memory.get((tensor, place)) or _entry(program, tensor, place)
                    new = _combined(op.removesuffix("="), old, new)
                memory[tensor, place] = new


def _combined(op: str, old: Value, new: Value) -> Value:
    if op in ("min", "max"):
        return Call(op, (old, new), new.dtype)
    return Arith(op, old, new, new.dtype)


def _value(value: Value, program: Program, at: Mapping[str, int], memory: Mapping[Element, Value]) -> Value:
    def element(node: Value) -> Value:
        match node:
            case Read(tensor, index, _):
                place = _place(index, at)
                return memory.get((tensor, place)) or _entry(program, tensor, place)
            case FromIndex(index, dtype):
                return Literal(_number(index, at), dtype)
            case Select(condition, then, other, _) if isinstance(condition, Bool):
                return then if bool(evaluate(condition, at)) else other
        return node

    return map_value(value, element)


def _place(index: tuple[object, ...], at: Mapping[str, int]) -> tuple[int, ...]:
    if any(is_value(part) for part in index):
        raise NotUnrolled("a subscript that depends on data")
    return tuple(_number(part, at) for part in index if isinstance(part, Int))


def _number(part: Int, at: Mapping[str, int]) -> int:
    match part:
        case Const(value):
            return value
        case Var(name):
            return at[name]
    return int(evaluate(part, at))


def renumbered(*values: Value) -> tuple[Value, ...]:
    """The values with their reads numbered as they come: equal for elements that differ only in which lane they are."""
    numbers: dict[Value, Value] = {}

    def rename(node: Value) -> Value:
        if isinstance(node, Read):
            return numbers.setdefault(node, Read(node.tensor, (Const(len(numbers)),), node.dtype))
        return node

    return tuple(map_value(v, rename) for v in values)
