"""Executes a mapping tile by tile, by the intrinsic's semantics, with zero padding: an oracle that shares no code with
the matcher's proofs. What a mapping claims is wrong if the answer differs from the interpreter's."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from autosched.ir.oracle.interpreter import run
from autosched.ir.value import Comparison, Literal, Read
from autosched.logic import And, Bool, Int, evaluate
from autosched.logic.expr import COMPARE
from autosched.tensorize import Mapping


class Inconsistent(AssertionError):
    """Two lanes with the same coordinates of an operand want different elements in it."""


def index_of(read: Read, env: dict[str, int], arrays: dict[str, Any]) -> tuple[int, ...]:
    parts = []
    for part in read.index:
        if isinstance(part, Int):
            parts.append(int(evaluate(part, env)))
        else:
            assert isinstance(part, Read), "tests use plain gathers only"
            parts.append(int(arrays[part.tensor][index_of(part, env, arrays)]))
    return tuple(parts)


def truth(condition: Any, env: dict[str, int], arrays: dict[str, Any]) -> bool:
    if isinstance(condition, Comparison):  # a guard on data: an element against a literal
        assert isinstance(condition.left, Read)
        assert isinstance(condition.right, Literal)
        element = arrays[condition.left.tensor][index_of(condition.left, env, arrays)]
        return bool(COMPARE[condition.op](int(element), condition.right.value))
    return bool(evaluate(condition, env))


def execute(mapping: Mapping, arrays: dict[str, Any]) -> Any:
    """The written tensor, starting from `arrays[target]`, initialised here where the stage has an initial zero."""
    stage, intrinsic = mapping.stage, mapping.intrinsic
    accumulator = intrinsic.accumulator.name
    lower: dict[str, int] = {}
    extent: dict[str, int] = {}
    for a in stage.axes:  # the hull of bounds that depend on outer axes
        corners = [
            dict(zip(lower, c, strict=True)) for c in product(*((lower[n], lower[n] + extent[n] - 1) for n in lower))
        ]
        lower[a.name] = min(int(evaluate(a.lower, c)) for c in corners)
        extent[a.name] = max(int(evaluate(a.upper, c)) for c in corners) - lower[a.name]
    inner = {y for fused in mapping.axes.values() for y in fused}
    conditions = []
    for g in stage.guards:
        conditions += list(g.parts) if isinstance(g, And) else [g]
    for a in stage.axes:
        conditions += [a.lower <= _var(a.name), _var(a.name) < a.upper]
    staged = {c for cs in mapping.guards.values() for g in cs for c in (g.parts if isinstance(g, And) else (g,))}
    loose = [c for c in conditions if c not in staged and isinstance(c, Bool)]
    tiles = {x: intrinsic_extent(mapping, x) for x in mapping.axes}
    numbers = {
        x: int(np.prod([extent[y] for y in fused], dtype=np.int64)) if fused else 1 for x, fused in mapping.axes.items()
    }
    for x in mapping.axes:
        assert mapping.padding[x] == (numbers[x], -(-numbers[x] // tiles[x]) * tiles[x])
    target = arrays[stage.assign.tensor]
    if stage.init is not None:
        assert isinstance(stage.init, Literal | Read), "tests start from a number or from an element"
        for point in product(*(range(lower[a.name], lower[a.name] + extent[a.name]) for a in stage.spatial)):
            env = {a.name: v for a, v in zip(stage.spatial, point, strict=True)}
            first: Any = stage.init.value if isinstance(stage.init, Literal) else None
            if isinstance(stage.init, Read):
                first = arrays[stage.init.tensor][index_of(stage.init, env, arrays)]
            target[index_of(stage.target, env, arrays)] = first
    spatial = {a.name for a in intrinsic.spatial}
    counts = [range(-(-numbers[x] // tiles[x])) for x in mapping.axes]
    for outside in product(*(range(lower[y], lower[y] + extent[y]) for y in mapping.outer)):
        outer = dict(zip(mapping.outer, outside, strict=True))
        for tile in product(*counts):
            held: dict[str, Any] = {}
            stored: dict[tuple[int, ...], tuple[int, ...]] = {}
            for name, operand in intrinsic.operands.items():
                cells: dict[tuple[int, ...], Any] = {}
                pattern = intrinsic_read(mapping, name)
                used = used_axes(pattern)
                moving = [x for x in mapping.axes if x in used]
                for lanes in product(*(range(tiles[x]) for x in moving)):
                    lane = dict.fromkeys(mapping.axes, 0) | dict(zip(moving, lanes, strict=True))
                    cell = tuple(int(evaluate(p, lane)) for p in pattern)
                    env, inside = decode(
                        mapping, lane, dict(zip(mapping.axes, tile, strict=True)), tiles, numbers, extent, lower
                    )
                    env |= outer
                    # What lies past the end of a spatial axis may hold anything: its result is not stored.
                    if name != accumulator and not all(inside[x] for x in used if x in spatial):
                        continue
                    value: Any = None
                    if all(inside[x] for x in used):
                        known = {
                            y: v for y, v in env.items() if y not in inner or any(y in mapping.axes[x] for x in used)
                        }
                        read = mapping.operands[name]
                        keep = [c for c in loose if free(c) <= known.keys()]
                        if name == accumulator:
                            if all(truth(c, known, arrays) for c in keep):
                                value = index_of(read, known, arrays)
                        elif all(truth(c, known, arrays) for c in mapping.guards.get(name, ())) and all(
                            truth(c, known, arrays) for c in keep if free(c) <= set(mapping.outer)
                        ):
                            value = arrays[read.tensor][index_of(read, known, arrays)]
                    if cell in cells and not _same(cells[cell], value):
                        raise Inconsistent(f"{name}{cell}: {cells[cell]} and {value}")
                    cells[cell] = value
                fill = mapping.fills[name].value if name in mapping.fills else 0
                block = np.full(operand.shape, fill, operand.dtype.numpy)
                for cell, value in cells.items():
                    if value is not None:
                        block[cell] = target[value] if name == accumulator else value
                        if name == accumulator:
                            stored[cell] = value
                held[name] = block
            answer = run(intrinsic.program, held)[accumulator]
            assert len(set(stored.values())) == len(stored), "two lanes write one element"
            for cell, element in stored.items():
                target[element] = answer[cell]
    return target


def _same(a: Any, b: Any) -> bool:
    return (a is None) == (b is None) and (a is None or np.all(a == b))


def _var(name: str) -> Any:
    from autosched.logic import Var

    return Var(name)


def free(condition: Any) -> frozenset[str]:
    from autosched.logic import free_vars

    return free_vars(condition)


def used_axes(pattern: tuple[Any, ...]) -> frozenset[str]:
    from autosched.logic import free_vars

    return frozenset().union(*(free_vars(p) for p in pattern)) if pattern else frozenset()


def intrinsic_extent(mapping: Mapping, axis: str) -> int:
    return {a.name: a.extent for a in mapping.intrinsic.axes}[axis]


def intrinsic_read(mapping: Mapping, operand: str) -> tuple[Any, ...]:
    """The operand's subscripts, with constant dimensions as their axes; loops of extent one are at 0."""
    from autosched.logic import Const, Var
    from autosched.logic.walk import substitute_int

    stage = mapping.intrinsic.stage
    reads = [*stage.reads, stage.target]
    index = next(r.index for r in reads if r.tensor == operand)
    ones = {a.name: 0 for a in stage.axes if a.extent == 1}
    named = mapping.intrinsic.operand_axes[operand]
    return tuple(
        Var(n) if isinstance(p, Const) and n is not None else substitute_int(p, ones)  # type: ignore[arg-type]
        for p, n in zip(index, named, strict=True)
    )


def decode(
    mapping: Mapping,
    lane: dict[str, int],
    tile: dict[str, int],
    tiles: dict[str, int],
    numbers: dict[str, int],
    extent: dict[str, int],
    lower: dict[str, int],
) -> tuple[dict[str, int], dict[str, bool]]:
    """The program's axes at a lane of a tile, and which intrinsic axes are inside (not padding)."""
    env: dict[str, int] = {}
    inside: dict[str, bool] = {}
    for x, fused in mapping.axes.items():
        number = tile[x] * tiles[x] + lane[x]
        inside[x] = number < numbers[x]
        for y in reversed(fused):
            number, digit = divmod(number, extent[y])
            env[y] = lower[y] + digit
    return env, inside
