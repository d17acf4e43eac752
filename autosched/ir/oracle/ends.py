"""Data at the ends of what they may be.

A random length is some number in the middle: what a kernel makes of the rows behind it, of an empty part or of a whole
one stays open. Random scores lie close together: a running maximum hardly grows, and a kernel that forgot to rescale
what it summed before is within its tolerance. So integers that decide (in conditions, guards and subscripts) are at the
ends of their ranges here, and where a program takes exponentials its floats are wider.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import ceil, floor
from typing import Any

import numpy as np

from autosched.ir.nodes import Stage
from autosched.ir.oracle.assumed import assumed_range
from autosched.ir.oracle.indexed import indexed_range, subscripts
from autosched.ir.oracle.numerics import round_float, store
from autosched.ir.program import Program
from autosched.ir.value import Call, Comparison, Value, is_value, reads, walk

WIDER = 4.0
"""Times the usual range of floats: products of two have 16 times the spread, so that a few keys of a row decide."""
EXPONENTIALS = frozenset({"exp", "sigmoid", "tanh", "erf"})
GREATEST, IN_TURN, SWAPPED = 0, 1, 2
"""All at their greatest; the ends in turn, tensor by tensor shifted by one; the same with the ends swapped."""


def end_inputs(program: Program, drawn: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Data sets beside random ones (`random_inputs`): what to call each, and the arrays in place of those drawn, of the
    same shapes. None where nothing decides."""
    limits = decisive(program)
    called = {node.function for s in program.stages for node in _nodes(s) if isinstance(node, Call)}
    wide = _wider(program, drawn) if called & EXPONENTIALS else {}
    if not limits:
        if wide:
            yield f"{and_last(wide)} reach {WIDER:g}", wide
        return
    seen: list[dict[str, Any]] = []
    for way, said in ((GREATEST, "greatest"), (IN_TURN, "ends"), (SWAPPED, "other ends")):
        arrays = {n: _at_ends(program, n, np.shape(drawn[n]), number + way, way) for number, n in enumerate(limits)}
        if not any(all(np.array_equal(arrays[n], old[n]) for n in arrays) for old in seen):
            seen.append(arrays)
            yield f"{and_last(arrays)} at their {said}", arrays | wide


def decisive(program: Program) -> dict[str, tuple[int, int]]:
    """Integer inputs that conditions, guards and subscripts read, with the least and the greatest that each may be."""
    named = {n for s in program.stages for n in _deciding(s)}
    found = {}
    for name in (n for n in program.inputs if n in named and n not in program.data):
        dtype = program.tensors[name].dtype
        if not dtype.is_integer:
            continue
        (least, most), (low, high) = dtype.limits, assumed_range(program, name)
        least = least if low is None else max(least, ceil(low))
        most = most if high is None else min(most, floor(high))
        inside = indexed_range(program, name)
        if inside is not None and max(least, inside[0]) <= min(most, inside[1]):
            least, most = max(least, inside[0]), min(most, inside[1])
        if least < most:
            found[name] = least, most
    return found


def and_last(names: Iterable[str]) -> str:
    """Names for people: `A`, `A and B`, `A, B and C`."""
    *rest, last = names
    return f"{', '.join(rest)} and {last}" if rest else last


def _deciding(stage: Stage) -> Iterator[str]:
    """Tensors that a stage's conditions, guards and subscripts read."""
    asked: list[Value] = [g for g in stage.guards if is_value(g)]
    asked += [node for node in _nodes(stage) if isinstance(node, Comparison)]
    asked += [index for _, _, index in subscripts(stage)]
    for value in asked:
        yield from (r.tensor for r in reads(value))


def _nodes(stage: Stage) -> Iterator[Value]:
    """Of a stage's value and of its start."""
    for root in (stage.assign.value, stage.init):
        if root is not None:
            yield from walk(root)


def _at_ends(program: Program, name: str, shape: tuple[int, ...], first: int, way: int) -> Any:
    """One end or the other, in turn, for `way` other than `GREATEST`; `first` is even where the least comes first."""
    dtype, (least, most) = program.tensors[name].dtype, decisive(program)[name]
    places = np.arange(int(np.prod(shape))).reshape(shape)
    low = np.zeros(shape, bool) if way == GREATEST else (places + first) % 2 == 0
    kind = np.uint64 if dtype.name == "u64" else np.int64
    return store(np.where(low, kind(least), kind(most)), dtype)


def _wider(program: Program, drawn: Mapping[str, Any]) -> dict[str, Any]:
    """Float inputs of which nothing is assumed or known, `WIDER` times as wide as they were drawn."""
    found = {}
    for name, tensor in program.tensors.items():
        known = name in program.data or assumed_range(program, name) != (None, None)
        if name in program.inputs and tensor.dtype.is_float and not tensor.dtype.finite and not known:
            wider = round_float(np.asarray(drawn[name]).astype(np.float64) * WIDER, tensor.dtype)
            found[name] = store(np.asarray(wider), tensor.dtype)
    return found
