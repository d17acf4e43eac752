"""Data at the ends of what they may be.

A random length is some number in the middle: what a kernel makes of the rows behind it, of an empty part or of a whole
one stays open; one of which nothing is assumed is beyond all rows, or negative. Random scores lie close together: a
running maximum hardly grows, and a kernel that forgot to rescale what it summed before is within its tolerance. So
integers that decide (in conditions, guards and subscripts) are at the ends of their ranges here, and what is compared
with axes or numbers is near these; where a program takes exponentials its floats are wider; where it takes a maximum
or a minimum, all floats of a tensor also have one sign, and none is near zero. Integers that are summed and multiplied
are at one end each row, floats of another size each row (`by_rows`), and run-time scalars have several values
(`scalar_values`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Stage
from autosched.ir.oracle.assumed import assumed_range, integer_range, is_free
from autosched.ir.oracle.distinct import with_distinct
from autosched.ir.oracle.numerics import in_dtype, round_float, store
from autosched.ir.oracle.sets.by_rows import IntegersByRows, floats_by_powers, turns, weaker
from autosched.ir.oracle.sets.deciding import compared, decisive, nodes
from autosched.ir.oracle.sets.scalar_values import scalar_sets, stored
from autosched.ir.program import Program
from autosched.ir.value import Arith, Call

WIDER, WIDEST = 4.0, 16.0
"""Times the usual range of floats: products of two have 16 times the spread, so that a few keys of a row decide. With
one sign, exponentials of sums of such products are all zero or infinite, unless their greatest is taken off first."""
EXPONENTIALS = frozenset({"exp", "sigmoid", "tanh", "erf"})
GREATEST, IN_TURN, SWAPPED = 0, 1, 2
"""All at their greatest; the ends in turn, tensor by tensor shifted by one; the same with the ends swapped."""
INSIDE = 2.0**-20
"""How far floats of an assumed range stay from its ends, as a part of it: a logarithm is finite there."""
Arrays: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class EndData:
    """A data set beside random ones: `said` is what to call it. `at` gives arrays and scalars in place of those drawn,
    of the same shapes; with a strength below 1 they are nearer to the middle of what they may be. `plain`: it counts
    only where outputs hold no more NaN and infinities than random data give."""

    said: str
    at: Callable[[float], Arrays] = field(repr=False)
    plain: bool = False


def end_inputs(program: Program, drawn: Mapping[str, Any]) -> Iterator[EndData]:
    """Data sets beside random ones (`random_inputs`); none where nothing decides, and there is no arithmetic."""
    for made in _end_inputs(program, drawn):
        yield replace(made, at=partial(_distinct_at, program, made.at))


def _distinct_at(program: Program, at: Callable[[float], Arrays], strength: float) -> Arrays:
    return with_distinct(program, at(strength))


def _end_inputs(program: Program, drawn: Mapping[str, Any]) -> Iterator[EndData]:
    limits = decisive(program)
    called = {node.function for s in program.stages for node in nodes(s) if isinstance(node, Call)}
    floats = [n for n in program.inputs if _widens(program, n)]
    taken = floats if called & EXPONENTIALS else []
    wide = _wider(program, taken, drawn, 1.0)
    if wide and not limits:
        yield EndData(f"{and_last(wide)} reach {WIDER:g}", partial(_wider, program, taken, drawn))
    seen: list[Arrays] = []
    for way, said in ((GREATEST, "greatest"), (IN_TURN, "ends"), (SWAPPED, "other ends")) if limits else ():
        at = partial(_all_at_ends, program, limits, drawn, way, wide)
        arrays = at(1.0)
        if not any(all(np.array_equal(arrays[n], old[n]) for n in limits) for old in seen):
            seen.append(arrays)
            yield EndData(f"{and_last(limits)} at their {said}", at)
    beside = compared(program)
    if near := _all_near(program, beside.axes, drawn):
        yield EndData(f"{and_last(near)} near the axes that they are compared with", _always(near | wide))
    if near := _all_near(program, beside.others, drawn):
        yield EndData(f"{and_last(near)} near what they are compared with", _always(near), True)
    if floats and any(map(_chooses, program.stages)):
        yield EndData(f"{and_last(floats)} of one sign each", partial(_signed, program, floats, drawn))
    yield from _of_arithmetic(program, drawn, floats, limits, bool(called & EXPONENTIALS))
    for number, values in enumerate(scalar_sets(program, beside.others | beside.axes)):
        said = ", ".join(f"{n} = {float(v):g}" for n, v in values.items())
        said = said if len(said) < 80 else f"scalars have other values{_numbered(number)}"
        yield EndData(said, partial(_towards_zero, program, values), True)


def _of_arithmetic(
    program: Program, drawn: Mapping[str, Any], floats: list[str], limits: Mapping[str, Any], exponentials: bool
) -> Iterator[EndData]:
    """Integers at one end each row, floats of another size each row, floats at the ends of what is assumed of them."""
    integers = [n for n in program.inputs if program.tensors[n].dtype.is_integer and n not in program.data]
    by_rows = IntegersByRows.of(program, [n for n in integers if n not in limits], drawn)
    for number in range(by_rows.sets):
        said = f"{and_last(by_rows.ends)} at one end each row{_numbered(number)}"
        yield EndData(said, partial(by_rows.arrays, drawn, number), True)
    if floats:
        signed = not exponentials and any(map(_chooses, program.stages))
        for turn in range(turns(program, floats, drawn)):
            at = partial(_by_powers, program, floats, drawn, turn, signed)
            yield EndData(f"{and_last(floats)} scaled by another power of two in each row{_numbered(turn)}", at, True)
    ranged = [n for n in program.inputs if _ranged(program, n)]
    if ranged:
        found = {n: _in_range(program, n, drawn[n]) for n in ranged}
        yield EndData(f"{and_last(ranged)} near the ends of what is assumed", _always(found), True)


def _by_powers(
    program: Program, names: list[str], drawn: Mapping[str, Any], turn: int, signed: bool, strength: float
) -> Arrays:
    return floats_by_powers(program, names, drawn, strength, turn, signed)


def _numbered(number: int) -> str:
    return f" ({number + 1})" if number else ""


def _wider(program: Program, names: list[str], drawn: Mapping[str, Any], strength: float) -> Arrays:
    return _floats(program, names, drawn, lambda x, _: x * WIDER**strength)


def _signed(program: Program, names: list[str], drawn: Mapping[str, Any], strength: float) -> Arrays:
    """One sign a tensor, in turn."""
    return _floats(program, names, drawn, lambda x, n: (1.0 + abs(x) * WIDEST * strength) * (1.0 if n % 2 else -1.0))


def _always(arrays: Arrays) -> Callable[[float], Arrays]:
    return lambda strength: arrays


def _towards_zero(program: Program, values: Mapping[str, Any], strength: float) -> Arrays:
    """Scalars, nearer to zero the less the strength is, within what is assumed."""
    if strength == 1.0:
        return dict(values)
    found = {}
    for name, value in values.items():
        low, high = assumed_range(program, name)
        less = float(value) * strength
        less = less if program.scalars[name].dtype.is_float else int(less)
        less = less if low is None else max(low, less)
        found[name] = stored(program, name, less if high is None else min(high, less))
    return found


def _all_at_ends(
    program: Program, limits: Mapping[str, tuple[int, int]], drawn: Mapping[str, Any], way: int, wide: Arrays,
    strength: float,
) -> Arrays:  # fmt: skip
    """Integers at their ends; with less strength nearer to zero, or to the end that is next to it."""
    found = {}
    for number, (name, ends) in enumerate(limits.items()):
        shape, dtype = np.shape(drawn[name]), program.tensors[name].dtype
        found[name] = _at_ends(dtype, shape, weaker(ends, strength), number + way, way)
    return found | wide


def and_last(names: Iterable[str]) -> str:
    """Names for people: `A`, `A and B`, `A, B and C`."""
    *rest, last = names
    return f"{', '.join(rest)} and {last}" if rest else last


def _at_ends(dtype: DType, shape: tuple[int, ...], ends: tuple[int, int], first: int, way: int) -> Any:
    """One end or the other, in turn, for `way` other than `GREATEST`; `first` is even where the least comes first."""
    least, most = ends
    places = np.arange(int(np.prod(shape))).reshape(shape)
    low = np.zeros(shape, bool) if way == GREATEST else (places + first) % 2 == 0
    kind = np.uint64 if dtype.name == "u64" else np.int64
    return store(np.where(low, kind(least), kind(most)), dtype)


def _all_near(program: Program, values: Mapping[str, tuple[int | float, ...]], drawn: Mapping[str, Any]) -> Arrays:
    """Tensors that hold the values in turn, as far as they may."""
    tensors = {n: _near(program, n, drawn[n], near) for n, near in values.items() if n in program.tensors}
    return {n: found for n, found in tensors.items() if found is not None}


def _near(program: Program, name: str, drawn: Any, values: Iterable[int | float]) -> Any:
    """Values that a tensor may hold, all in turn; None where it may hold none of them."""
    dtype = program.tensors[name].dtype
    least, most = integer_range(program, name) if dtype.is_integer else assumed_range(program, name)
    whole = [v for v in values if dtype.is_float or v == int(v)]
    kept = [v for v in whole if (least is None or v >= least) and (most is None or v <= most)]
    if not kept:
        return None
    step = next((s for s in (7, 5, 3) if len(kept) % s), 1)  # rows beside each other differ by more than one
    places = (np.arange(int(np.prod(np.shape(drawn)))) * step + len(kept) // 2) % len(kept)
    spread = np.asarray(kept)[places].reshape(np.shape(drawn))
    if dtype.is_float:
        return in_dtype(spread.astype(np.float64), dtype)
    return store(spread.astype(np.uint64 if dtype.name == "u64" else np.int64), dtype)


def _ranged(program: Program, name: str) -> bool:
    """Whether a range of a tensor's floats is assumed."""
    low, high = assumed_range(program, name)
    dtype = program.tensors[name].dtype
    return dtype.is_float and not dtype.finite and name not in program.data and None not in (low, high)


def _in_range(program: Program, name: str, drawn: Any) -> Any:
    """Every third element near the least that is assumed, every third near the greatest."""
    low, high = (float(v or 0) for v in assumed_range(program, name))
    dtype, values = program.tensors[name].dtype, np.asarray(drawn)
    edges = [round_float(np.float64(end), dtype) for end in (low + (high - low) * INSIDE, high - (high - low) * INSIDE)]
    if not all(low <= float(edge) <= high for edge in edges):
        return drawn
    third = np.arange(values.size).reshape(values.shape) % 3
    wide = values.astype(np.float64)
    spread = np.where(third == 0, float(edges[0]), np.where(third == 1, float(edges[1]), wide))
    return in_dtype(spread, dtype)


def _floats(
    program: Program, names: Iterable[str], drawn: Mapping[str, Any], to: Callable[[Any, int], Any]
) -> dict[str, Any]:
    """What `to` makes of drawn floats, by tensor: it takes their values, and the tensor's number."""
    found = {}
    for number, name in enumerate(names):
        dtype = program.tensors[name].dtype
        found[name] = in_dtype(to(np.asarray(drawn[name]).astype(np.float64), number), dtype)
    return found


def _widens(program: Program, name: str) -> bool:
    """Whether a tensor has floats of which nothing is assumed or known, of a type with more than a few values."""
    dtype = program.tensors[name].dtype
    return dtype.is_float and not dtype.finite and is_free(program, name)


def _chooses(stage: Stage) -> bool:
    """Whether a stage takes the greater or the lesser of floats."""
    chosen = (node for node in nodes(stage) if isinstance(node, Arith) and node.op in ("max", "min"))
    return stage.assign.op in ("max=", "min=") or any(node.dtype.is_float for node in chosen)
