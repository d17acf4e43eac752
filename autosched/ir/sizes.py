"""Filling in sizes that a program keeps symbolic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from autosched.errors import UsageError
from autosched.ir.nodes import Assign, Axis, Guard, Loop, Statement
from autosched.ir.program import Program
from autosched.ir.value import Condition, Index, map_value
from autosched.logic import TRUE, Bool, Const, Int, Var, affine, evaluate
from autosched.logic.walk import substitute_bool, substitute_int


def with_sizes(program: Program, values: Mapping[str, int]) -> Program:
    """`program` with symbolic sizes given values; UsageError for one outside its range or its
    assumptions."""
    for name, size in values.items():
        low, high = program.symbolic[name]
        if not low <= size <= high:
            raise UsageError(f"{name} = {size} is outside its range {low}..{high}")
    for a in program.assumptions:
        if a.subject in values:
            size = values[a.subject]
            fits = (a.low is None or size >= a.low) and (a.high is None or size <= a.high)
            if not fits or (a.multiple is not None and size % a.multiple):
                raise UsageError(f"{a.subject} = {size} is not what the program assumes", location=a.location)
    known = {n: Const(v) for n, v in values.items()}

    def integer(e: Int) -> Int:
        return substitute_int(e, known)

    def truth(e: Bool) -> Bool:
        return substitute_bool(e, known)

    def index(x: Index) -> Index:
        return integer(x) if isinstance(x, Int) else map_value(x, on_int=integer, on_bool=truth)

    def condition(x: Condition) -> Condition:
        return truth(x) if isinstance(x, Bool) else map_value(x, on_int=integer, on_bool=truth)

    def block(nodes: tuple[Statement, ...]) -> tuple[Statement, ...]:
        found: list[Statement] = []
        for node in nodes:
            match node:
                case Loop(axis, inner):
                    found.append(Loop(Axis(axis.name, integer(axis.lower), integer(axis.upper)), block(inner)))
                case Guard(test, inner):
                    kept = condition(test)
                    found += block(inner) if kept == TRUE else (Guard(kept, block(inner)),)
                case Assign():
                    spot = tuple(index(i) for i in node.index)
                    found.append(replace(node, index=spot, value=map_value(node.value, on_int=integer, on_bool=truth)))
        return tuple(found)

    return replace(
        program,
        tensors={n: replace(t, shape=tuple(integer(s) for s in t.shape)) for n, t in program.tensors.items()},
        sizes={**program.sizes, **values},
        symbolic={n: r for n, r in program.symbolic.items() if n not in values},
        body=block(program.body),
    )


def sizes_from_shapes(program: Program, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """The values of symbolic sizes, read off the shapes of arrays; UsageError where they do not fix them."""
    found: dict[str, int] = {}
    for name, tensor in program.tensors.items():
        if name in shapes and len(shapes[name]) == len(tensor.shape):
            for size, extent in zip(tensor.shape, shapes[name], strict=True):
                if isinstance(size, Var):
                    found.setdefault(size.name, extent)
    for name, tensor in program.tensors.items():
        if name in shapes and len(shapes[name]) == len(tensor.shape):
            for size, extent in zip(tensor.shape, shapes[name], strict=True):
                form = affine(size)
                unknown = [v for v in form.coefficients if v not in found] if form else []
                if form and len(unknown) == 1:
                    rest = form.constant + sum(c * found[v] for v, c in form.coefficients.items() if v in found)
                    found[unknown[0]] = (extent - rest) // form.coefficients[unknown[0]]
    missing = [n for n in program.symbolic if n not in found]
    if missing:
        raise UsageError(f"no array's shape gives the size {missing[0]}", hint=f"set it: -D {missing[0]}=…")
    return {n: int(evaluate(Var(n), found)) for n in program.symbolic}
