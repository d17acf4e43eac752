"""Sums of products of integers through BLAS: exact in float64, as long as every partial sum stays below 2**53."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from autosched.ir.oracle.evaluate import Frame, both, condition, value
from autosched.ir.oracle.numerics import wrap
from autosched.ir.oracle.spans import Span
from autosched.ir.value import Arith, Condition, Logical, Value, is_value
from autosched.ir.variables import condition_vars
from autosched.logic import Bool, conjuncts

LARGEST, PIECE = 2**24, 2**22
"""Elements of one factor that are computed at once; where it has more, an axis is cut such that pieces have about
`PIECE`."""


@dataclass(frozen=True)
class Factor:
    """Values over the axes in `axes` (slab order); float64."""

    axes: tuple[str, ...]
    data: Any


def product(node: Value) -> list[Value]:
    """The factors of a product; modulo 2**bits (and over the reals) their order does not matter."""
    if isinstance(node, Arith) and node.op == "*":
        return product(node.left) + product(node.right)
    return [node]


def taken_apart(conditions: list[Condition]) -> list[Condition]:
    """The conditions with conjunctions taken apart, those of data too."""
    found: list[Condition] = []
    for c in conditions:
        if isinstance(c, Bool):
            found += conjuncts(c)
        elif isinstance(c, Logical) and c.op == "and":
            found += taken_apart(list(c.parts))
        else:
            found.append(c)
    return found


def integer_sum(
    node: Value, conditions: list[Condition], frame: Frame, summed: list[Span], kept: list[Span]
) -> Any | None:
    """The sum of `node` over `summed` at each point of `kept`, wrapped into its dtype; None where BLAS cannot do it."""
    total = sum_of_products(node, conditions, frame, summed, kept, exact=True)
    return None if total is None else wrap(total.astype(np.int64), node.dtype)


def sum_of_products(
    node: Value,
    conditions: list[Condition],
    frame: Frame,
    summed: list[Span],
    kept: list[Span],
    exact: bool,
    magnitude: bool = False,
) -> Any | None:
    """The sum in float64, shape of `kept`; with `magnitude` of absolute values. None where it is no product of two
    factors or (with `exact`) could round."""
    if any(is_value(c) for c in conditions):
        return None
    parts = product(node)
    groups = _two_groups(parts, taken_apart(conditions), [s.name for s in (*kept, *summed)])
    if groups is None:
        return None
    sizes = [prod(s.count for s in (*kept, *summed) if s.name in axes) for axes, _, _ in groups]
    if max(sizes) > LARGEST:
        axes = groups[sizes.index(max(sizes))][0]
        cut = [k for k, s in enumerate(kept) if s.name in axes and s.count > 1]
        if not cut:
            return None
        at = max(cut, key=lambda k: kept[k].count)
        pieces = []
        for piece in _pieces(kept[at], -(-max(sizes) // PIECE)):
            part = sum_of_products(
                node, conditions, frame, summed, [*kept[:at], piece, *kept[at + 1 :]], exact, magnitude
            )
            if part is None:
                return None
            pieces.append(part)
        return np.concatenate(pieces, axis=at)
    spans = {s.name: s for s in (*kept, *summed)}
    factors = [_factor(axes, values, tests, frame, spans, magnitude) for axes, values, tests in groups]
    terms = prod(s.count for s in summed)
    if exact:
        limits = [float(np.max(np.abs(f.data), initial=0.0)) for f in factors]
        if max(limits) >= 2**53 or terms * prod(max(x, 1.0) for x in limits) >= 2**53:
            return None
        if terms * prod(max(x, 1.0) for x in limits) < 2**24:
            factors = [Factor(f.axes, f.data.astype(np.float32)) for f in factors]
    unused = prod(s.count for s in summed if not any(s.name in f.axes for f in factors))
    return _matmul(factors[0], factors[1], [s.name for s in kept], spans).astype(np.float64) * unused


def _pieces(span: Span, count: int) -> Iterator[Span]:
    """The span in so many parts, as far as it has elements."""
    length = -(-span.count // min(count, span.count))
    for first in range(0, span.count, length):
        yield Span(span.name, span.first + first, min(length, span.count - first))


_Group = tuple[frozenset[str], list[Value], list[Condition]]


def _two_groups(parts: list[Value], tests: list[Condition], names: list[str]) -> list[_Group] | None:
    """Factors and guards gathered into two groups by the axes they need; None where that takes more than two."""
    known = set(names)
    groups: list[_Group] = []
    for part in parts:
        axes = condition_vars(part) & known
        for k, (mine, values, _) in enumerate(groups):
            if axes <= mine or mine <= axes:
                groups[k] = (mine | axes, [*values, part], [])
                break
        else:
            groups.append((axes, [part], []))
    if len(groups) == 1:
        groups.append((frozenset(), [], []))
    if len(groups) != 2:
        return None
    for test in tests:
        axes = condition_vars(test) & known
        home = next((g for g in groups if axes <= g[0]), None)
        if home is None:
            return None
        home[2].append(test)
    return groups


def _factor(
    axes: frozenset[str],
    values: list[Value],
    tests: list[Condition],
    frame: Frame,
    spans: Mapping[str, Span],
    magnitude: bool,
) -> Factor:
    order = [n for n in spans if n in axes]
    here = frame.with_slab([(n, spans[n].first, spans[n].count) for n in order], {})
    here.lenient = True  # guards that another factor carries may keep some of these addresses from being read
    shape = tuple(spans[n].count for n in order)
    mask: Any = None
    for test in tests:
        mask = both(mask, condition(test, here, mask))
    data: Any = None
    for v in values:
        factor = np.asarray(value(v, here, mask)).astype(np.float64)
        data = factor if data is None else data * factor
    if data is None:
        data = np.ones(shape)
    data = np.asarray(data)  # a product of two numbers is no array
    data = np.broadcast_to(np.abs(data, out=data) if magnitude else data, shape)
    return Factor(tuple(order), data if mask is None else np.where(mask, data, 0.0))


def _matmul(a: Factor, b: Factor, kept: list[str], spans: Mapping[str, Span]) -> Any:
    """Contract over all axes not in `kept`, by one (batched) matrix product."""
    a, b = _reduce_private(a, b, kept), _reduce_private(b, a, kept)
    batch = [n for n in kept if n in a.axes and n in b.axes]
    rows = [n for n in kept if n in a.axes and n not in b.axes]
    columns = [n for n in kept if n in b.axes and n not in a.axes]
    inner = [n for n in a.axes if n in b.axes and n not in kept]
    size = {n: s.count for n, s in spans.items()}

    def shaped(f: Factor, first: list[str], second: list[str]) -> Any:
        data = f.data.transpose([f.axes.index(n) for n in (*batch, *first, *second)])
        return data.reshape(*(size[n] for n in batch), prod(size[n] for n in first), prod(size[n] for n in second))

    found = shaped(a, rows, inner) @ shaped(b, inner, columns)
    have = [*batch, *rows, *columns]
    found = found.reshape([size[n] for n in have])
    present = [n for n in kept if n in have]
    found = found.transpose([have.index(n) for n in present])
    found = found[tuple(slice(None) if n in have else None for n in kept)]
    return np.broadcast_to(found, [size[n] for n in kept])


def _reduce_private(f: Factor, other: Factor, kept: list[str]) -> Factor:
    gone = tuple(d for d, n in enumerate(f.axes) if n not in kept and n not in other.axes)
    return Factor(tuple(n for d, n in enumerate(f.axes) if d not in gone), f.data.sum(axis=gone)) if gone else f
