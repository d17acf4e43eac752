"""Sums that the program writes out, as loops: products of pairs, of complex numbers, of a few taps.

    C[i, j] += R[i, p] * U[p, j] - I[i, p] * V[p, j]      for s in range(2): C[i, j] += X[i, p, s] * Y[p, j, s]
                                                          X holds R and I, Y holds U and -V

Elements that one tensor holds side by side (`A[i, p, 0]`, `A[i, p, 1]`) are read where they are. Integers are the same
modulo 2^w; floats are summed in another order, so those are for levels that allow it. A minus goes to a factor of a
product of floats, where the sign is a bit of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from autosched.ir.nodes import Assign, Axis, Tensor
from autosched.ir.value import Arith, Cast, Index, Read, Unary, Value, map_value, substitute_index
from autosched.ir.variables import index_vars
from autosched.logic import Const, Int, Var, free_vars
from autosched.tensorize.adapters.proposal import Adapted, NoPlace, Proposal, adapted, lemma
from autosched.tensorize.adapters.site import Site, nest
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.reduction.update import operand_reads

MOST = 16
"""Terms of one sum."""


@dataclass(frozen=True)
class Rolled:
    """`template` at each of the `rows`: what stands in its places, and whether the term counts negative."""

    template: Value
    rows: tuple[tuple[tuple[Read, ...], bool], ...]
    turned: int | None
    """The place that takes a minus; None where no term has one."""


def rolled(facts: StageFacts, intrinsic: Intrinsic) -> Sequence[Proposal]:
    """The stage with a loop over the terms of its sum, for an instruction that sums by itself."""
    update = facts.update
    if update.combine != "+" or update.saturate or update.fused or prod(a.extent for a in intrinsic.reduction) < 2:
        return []
    found = _rolled(update.term)
    return [] if found is None else [Proposal(("roll",), lambda: _adapted(facts, found))]


def _rolled(term: Value) -> Rolled | None:
    """None where the terms are not one function of their elements."""
    signed = _signed(term)
    if not 2 <= len(signed) <= MOST:
        return None
    signed.sort(key=lambda part: (part[1], repr(operand_reads(part[0]))))
    first = _template(signed[0][0])
    if first is None:
        return None
    rows = []
    for part, minus in signed:
        ways = [w for p in (part, _commuted(part)) if (w := _template(p)) is not None and w[0] == first[0]]
        if not ways:
            return None
        rows.append((max(ways, key=lambda w: _alike(w[1], first[1]))[1], minus))
    rows.sort(key=lambda row: repr(row[0]))
    negative = any(minus for _, minus in rows)
    turned = _factor(first[0]) if negative else None
    if negative and (turned is None or first[0].dtype.is_integer):
        return None
    return Rolled(first[0], tuple(rows), turned)


def _signed(value: Value, minus: bool = False) -> list[tuple[Value, bool]]:
    match value:
        case Arith("+" | "-" as op, left, right):
            return _signed(left, minus) + _signed(right, minus != (op == "-"))
        case Unary("-", operand):
            return _signed(operand, not minus)
    return [(value, minus)]


def _template(part: Value) -> tuple[Value, tuple[Read, ...]] | None:
    """The term with numbered places for its elements, and these; None where data address one."""
    found: list[Read] = []

    def place(v: Value) -> Value:
        if not isinstance(v, Read):
            return v
        found.append(v)
        return Read(f"?{len(found) - 1}", (), v.dtype)

    made = map_value(part, place)
    plain = all(isinstance(i, Int) for r in found for i in r.index)
    return (made, tuple(found)) if found and plain else None


def _commuted(part: Value) -> Value:
    return replace(part, left=part.right, right=part.left) if isinstance(part, Arith) and part.op == "*" else part


def _alike(mine: tuple[Read, ...], first: tuple[Read, ...]) -> tuple[int, int]:
    """How many places hold elements that move alike, and are of one tensor."""
    pairs = list(zip(mine, first, strict=True))
    return (
        sum(index_vars(a.index) == index_vars(b.index) for a, b in pairs),
        sum(a.tensor == b.tensor for a, b in pairs),
    )


def _factor(template: Value) -> int | None:
    """A place that is a factor of the whole, of a float whose sign is a bit of its own."""
    match template:
        case Read(name, _, dtype) if dtype.is_float and dtype.special == "ieee":
            return int(name[1:])
        case Cast(operand, dtype, _) if dtype.is_float and dtype.special == "ieee":
            return _factor(operand)
        case Arith("*", left, right, dtype) if dtype.is_float:
            found = _factor(right)
            return _factor(left) if found is None else found
    return None


def _adapted(facts: StageFacts, found: Rolled) -> Adapted:
    update = facts.update
    site = Site(facts.program, facts.original, update)
    axis = Axis(site.fresh("s"), Const(0), Const(len(found.rows)))
    held: dict[str, Read] = {}
    packed: list[str] = []
    for n in range(len(found.rows[0][0])):
        column = [row[n] for row, _ in found.rows]
        minus = [m and n == found.turned for _, m in found.rows]
        index = None if any(minus) else _along(column, axis.name)
        if index is None:
            held[f"?{n}"] = _packed(facts, site, column, minus, axis.name)
            packed.append(held[f"?{n}"].tensor)
        else:
            held[f"?{n}"] = replace(column[0], index=index)
    value = map_value(found.template, lambda v: held.get(v.tensor, v) if isinstance(v, Read) else v)
    target = update.target
    core = Assign(target.tensor, target.index, "+=", value, facts.original.assign.location)
    order = ", summed in another order" if value.dtype.is_float else ""
    said = f"{show_leaf(update.term)} is {show_leaf(value)} at {axis.name} = 0 … {len(found.rows) - 1}{order}"
    names = f"roll {len(found.rows)} terms" + (f" ({', '.join(packed)})" if packed else "")
    made = adapted(facts.program, site.with_loop(axis, core), core, (names,), [lemma(said, "structure")])
    return replace(made, reorders=value.dtype.is_float)


def _along(column: list[Read], axis: str) -> tuple[Index, ...] | None:
    """The subscripts of elements that lie evenly along one dimension of one tensor."""
    first = column[0]
    if len({r.tensor for r in column}) > 1:
        return None
    if len(set(column)) == 1:
        return first.index
    moving = [d for d, parts in enumerate(zip(*(r.index for r in column), strict=True)) if len(set(parts)) > 1]
    if len(moving) != 1:
        return None
    numbers = [p.value for r in column if isinstance(p := r.index[moving[0]], Const)]
    steps = {b - a for a, b in pairwise(numbers)}
    if len(numbers) < len(column) or len(steps) != 1:
        return None
    (step,) = steps
    part: Int = Var(axis) * step + numbers[0]
    return tuple(part if d == moving[0] else p for d, p in enumerate(first.index))


def _packed(facts: StageFacts, site: Site, column: list[Read], minus: list[bool], axis: str) -> Read:
    """An element of a new tensor that holds one of them for each term, over the loops that move them.

    Raises NoPlace where a guard or the bounds of a loop say which elements there are."""
    used = frozenset[str]().union(*(index_vars(r.index) for r in column))
    axes = [a for a in facts.stage.axes if a.name in used]
    sizes = {*facts.program.symbolic}
    if facts.guards or any(a.lower != Const(0) or not free_vars(a.upper) <= sizes for a in axes):
        raise NoPlace("which elements are read depends on more than whole loops")
    dtype = column[0].dtype
    name = site.fresh(f"{column[0].tensor}_terms")
    shape = (*(a.upper for a in axes), Const(len(column)))
    site.tensors[name] = Tensor(name, dtype, shape, intermediate=True)
    loops = [Axis(site.fresh(f"q{d}"), a.lower, a.upper) for d, a in enumerate(axes)]
    inside = {a.name: Var(q.name) for a, q in zip(axes, loops, strict=True)}
    stores = []
    for s, (read, turned) in enumerate(zip(column, minus, strict=True)):
        element: Value = _moved(read, inside)
        element = Unary("-", element, dtype) if turned else element
        stores.append(Assign(name, (*(Var(q.name) for q in loops), Const(s)), "=", element))
    site.before.append(nest(loops, tuple(stores)))
    return Read(name, (*(Var(a.name) for a in axes), Var(axis)), dtype)


def _moved(read: Read, to: dict[str, Var]) -> Read:
    return replace(read, index=tuple(substitute_index(i, to) for i in read.index))
