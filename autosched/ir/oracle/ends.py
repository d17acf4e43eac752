"""Data at the ends of what they may be.

A random length is some number in the middle: what a kernel makes of the rows behind it, of an empty part or of a whole
one stays open; one of which nothing is assumed is beyond all rows, or negative. Random scores lie close together: a
running maximum hardly grows, and a kernel that forgot to rescale what it summed before is within its tolerance. So
integers that decide (in conditions, guards and subscripts) are at the ends of their ranges here, and what is compared
with axes is near these; where a program takes exponentials its floats are wider; where it takes a maximum or a minimum,
all floats of a tensor also have one sign, and none is near zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Stage
from autosched.ir.oracle.assumed import assumed_range, integer_range, is_free
from autosched.ir.oracle.indexed import axis_ranges, indexed_range, subscripts
from autosched.ir.oracle.numerics import round_float, store
from autosched.ir.program import Program
from autosched.ir.value import Arith, Call, Comparison, FromIndex, Value, is_value, reads, walk
from autosched.logic import interval

WIDER, WIDEST = 4.0, 16.0
"""Times the usual range of floats: products of two have 16 times the spread, so that a few keys of a row decide. With
one sign, exponentials of sums of such products are all zero or infinite, unless their greatest is taken off first."""
EXPONENTIALS = frozenset({"exp", "sigmoid", "tanh", "erf"})
GREATEST, IN_TURN, SWAPPED = 0, 1, 2
"""All at their greatest; the ends in turn, tensor by tensor shifted by one; the same with the ends swapped."""


def end_inputs(program: Program, drawn: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Data sets beside random ones (`random_inputs`): what to call each, and the arrays in place of those drawn, of the
    same shapes. None where nothing decides."""
    limits = decisive(program)
    called = {node.function for s in program.stages for node in _nodes(s) if isinstance(node, Call)}
    floats = [n for n in program.inputs if _widens(program, n)]
    wide = _floats(program, floats, drawn, lambda x, _: x * WIDER) if called & EXPONENTIALS else {}
    if wide and not limits:
        yield f"{and_last(wide)} reach {WIDER:g}", wide
    seen: list[dict[str, Any]] = []
    for way, said in ((GREATEST, "greatest"), (IN_TURN, "ends"), (SWAPPED, "other ends")) if limits else ():
        arrays = {
            n: _at_ends(program.tensors[n].dtype, np.shape(drawn[n]), ends, number + way, way)
            for number, (n, ends) in enumerate(limits.items())
        }
        if not any(all(np.array_equal(arrays[n], old[n]) for n in arrays) for old in seen):
            seen.append(arrays)
            yield f"{and_last(arrays)} at their {said}", arrays | wide
    near = {n: _near(program, n, drawn[n], *span) for n, span in compared(program).items()}
    if near:
        yield f"{and_last(near)} near the axes that they are compared with", near | wide
    if any(map(_chooses, program.stages)):
        signed = _floats(program, floats, drawn, lambda x, n: (1.0 + abs(x) * WIDEST) * (1.0 if n % 2 else -1.0))
        if signed:
            yield f"{and_last(signed)} of one sign each", signed


def compared(program: Program) -> dict[str, tuple[int, int]]:
    """Inputs that conditions compare with axes, with the least and the greatest that those are; none whose assumed
    range is hardly wider."""
    found: dict[str, tuple[int, int]] = {}
    for stage in program.stages:
        ranges = axis_ranges(program, stage)
        nodes = [*_nodes(stage), *(node for g in stage.guards if is_value(g) for node in walk(g))]
        for node in nodes:
            if not isinstance(node, Comparison):
                continue
            for data, axes in ((node.left, node.right), (node.right, node.left)):
                names = {r.tensor for r in reads(data)} & set(program.inputs)
                known = [interval(v.index, ranges) for v in walk(axes) if isinstance(v, FromIndex)]
                if len(names) != 1 or not known or reads(axes):
                    continue
                (name,) = names
                span = min(low for low, _ in known) - 1, max(high for _, high in known) + 2
                old = found.get(name, span)
                found[name] = min(span[0], old[0]), max(span[1], old[1])
    return {n: span for n, span in found.items() if n not in program.data and _wider_than(program, n, span)}


def decisive(program: Program) -> dict[str, tuple[int, int]]:
    """Integer inputs that conditions, guards and subscripts read, with the least and the greatest that each may be."""
    named = {n for s in program.stages for n in _deciding(s)}
    found = {}
    for name in (n for n in program.inputs if n in named and n not in program.data):
        if not program.tensors[name].dtype.is_integer:
            continue
        least, most = integer_range(program, name)
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


def _at_ends(dtype: DType, shape: tuple[int, ...], ends: tuple[int, int], first: int, way: int) -> Any:
    """One end or the other, in turn, for `way` other than `GREATEST`; `first` is even where the least comes first."""
    least, most = ends
    places = np.arange(int(np.prod(shape))).reshape(shape)
    low = np.zeros(shape, bool) if way == GREATEST else (places + first) % 2 == 0
    kind = np.uint64 if dtype.name == "u64" else np.int64
    return store(np.where(low, kind(least), kind(most)), dtype)


def _near(program: Program, name: str, drawn: Any, low: int, high: int) -> Any:
    """Whole numbers of a span that a tensor may hold, all in turn."""
    dtype = program.tensors[name].dtype
    least, most = integer_range(program, name) if dtype.is_integer else assumed_range(program, name)
    kept = [v for v in range(low, high + 1) if (least is None or v >= least) and (most is None or v <= most)]
    if not kept:
        return drawn
    step = next((s for s in (7, 5, 3) if len(kept) % s), 1)  # rows beside each other differ by more than one
    places = (np.arange(int(np.prod(np.shape(drawn)))) * step + len(kept) // 2) % len(kept)
    spread = np.asarray(kept)[places].reshape(np.shape(drawn))
    if dtype.is_float:
        return store(np.asarray(round_float(spread.astype(np.float64), dtype)), dtype)
    return store(spread.astype(np.uint64 if dtype.name == "u64" else np.int64), dtype)


def _floats(
    program: Program, names: Iterable[str], drawn: Mapping[str, Any], to: Callable[[Any, int], Any]
) -> dict[str, Any]:
    """What `to` makes of drawn floats, by tensor: it takes their values, and the tensor's number."""
    found = {}
    for number, name in enumerate(names):
        dtype = program.tensors[name].dtype
        rounded = round_float(to(np.asarray(drawn[name]).astype(np.float64), number), dtype)
        found[name] = store(np.asarray(rounded), dtype)
    return found


def _widens(program: Program, name: str) -> bool:
    """Whether a tensor has floats of which nothing is assumed or known, of a type with more than a few values."""
    dtype = program.tensors[name].dtype
    return dtype.is_float and not dtype.finite and is_free(program, name)


def _chooses(stage: Stage) -> bool:
    """Whether a stage takes the greater or the lesser of floats."""
    nodes = (node for node in _nodes(stage) if isinstance(node, Arith) and node.op in ("max", "min"))
    return stage.assign.op in ("max=", "min=") or any(node.dtype.is_float for node in nodes)


def _wider_than(program: Program, name: str, span: tuple[int, int]) -> bool:
    """Whether random elements mostly lie outside of a span."""
    low, high = assumed_range(program, name)
    return low is None or high is None or high - low > 4 * (span[1] - span[0])

