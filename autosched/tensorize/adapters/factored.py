"""An operand's expression as a stage of its own: an intermediate whose coordinates are those that it depends on.

    C[i, j] += X[i, p] * rsqrt(S[i]) * G[p] * W[p, j]      X_factor[i, p] = X[i, p] * rsqrt(S[i]) * G[p]
                                                           C[i, j] += X_factor[i, p] * W[p, j]

What is computed once for each of its own coordinates is not computed again for every other axis, and what is left is a
term of elements, which instructions take. `factorings` lists the ways, `factored` makes the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Assign, Axis, Guard, Loop, Statement, Tensor
from autosched.ir.prepared import assigns
from autosched.ir.value import (
    Arith,
    Call,
    Cast,
    Logical,
    Read,
    Select,
    Unary,
    Value,
    converted,
    is_value,
    map_value,
    reads,
    walk,
)
from autosched.logic import Bool, Const, Int, Var, interval
from autosched.logic.walk import substitute_int
from autosched.tensorize.adapters.proposal import Adapted, NoPlace, adapted, lemma
from autosched.tensorize.adapters.site import fresh, holds, names_of, nest
from autosched.tensorize.addresses.axes import index_axes, value_axes
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.body.exact import holds as holds_all
from autosched.tensorize.body.intervals import exact_range
from autosched.tensorize.conditions.stated import stated_ranges
from autosched.tensorize.reduction.update import operand_reads

MOST_FACTORS = 8
ELSEWHERE = " wherever the stage reads it"
"""How a statement ends that says what an intermediate holds."""


def factorings(facts: StageFacts) -> Iterator[tuple[Value, tuple[Value, ...]]]:
    """Ways to write what the stage adds, each with the parts of it to compute beforehand: as it stands, then with the
    factors of a product grouped by the axes that they depend on."""
    value = facts.original.assign.value
    seen = set()
    for written in (value, _grouped(value, facts)):
        parts = () if written is None else tuple(dict.fromkeys(_parts(written, facts)))
        if written is not None and parts and parts not in seen:
            seen.add(parts)
            yield written, parts


def sides(facts: StageFacts) -> tuple[Value, ...]:
    """The factors of what the stage adds, a product, that are more than an element addressed by axes: those too that
    depend on all axes of the stage, as the weights of a product of one row."""
    value = facts.original.assign.value
    if not (isinstance(value, Arith) and value.op == "*"):
        return ()
    bare = (_bare(side) for side in (value.left, value.right) if operand_reads(side))
    return tuple(dict.fromkeys(side for side in bare if not _plain(side)))


def both_sides(facts: StageFacts) -> tuple[Value, ...]:
    """The two factors of what the stage adds, where that is a product of two, without conversions that lose nothing."""
    value = facts.original.assign.value
    if facts.original.assign.op != "+=" or not (isinstance(value, Arith) and value.op == "*"):
        return ()
    return _bare(value.left), _bare(value.right)


def factored(
    facts: StageFacts, written: Value, parts: Sequence[Value], types: Mapping[Value, DType] | None = None
) -> Adapted:
    """The program with each part in an intermediate of its own, computed in front of the loops that use it; `types` are
    those that are not held in their own type, which the caller answers for. Raises NoPlace where what a part reads is
    written in these loops, or where it might read what the stage does not."""
    stage = facts.original
    taken = names_of(facts.program)
    tensors = dict(facts.program.tensors)
    body: tuple[Statement, ...] = facts.program.body
    moved: dict[Value, Value] = {}
    said, names = [], list[str]()
    for part in parts:
        stays_inside(facts, part)
        axes = _coordinates(facts, part)
        into = (types or {}).get(part, part.dtype)
        kind = str(into) if _plain(part) else "rows" if isinstance(part, Read) else "factor"
        name = fresh(f"{_main(part).tensor}_{kind}", taken)
        shape = tuple(Const(facts.extents[a.name]) for a in axes) or (Const(1),)
        tensors[name] = Tensor(name, into, shape, intermediate=True)
        low = {a.name: facts.ranges[a.name][0] for a in axes}
        index: tuple[Int, ...] = tuple(Var(a.name) - low[a.name] for a in axes) or (Const(0),)
        held = Read(name, index, into)
        moved[part] = converted(held, part.dtype)
        own = {a.name: fresh(f"{a.name}_f", taken) for a in axes}
        made = partial(_computed, Assign(name, index, "=", converted(part, into)), axes, own)
        body = _in_front(body, stage.assign, {r.tensor for r in reads(part)}, made, frozenset())
        typed = f" in {into}" if into != part.dtype else ""
        names.append(f"round {_main(part).tensor} to {into}" if _plain(part) else f"factor {show_leaf(held)}{typed}")
        what = converted(part, into)
        said.append(lemma(f"{show_leaf(held)} is {show_leaf(what)}{ELSEWHERE}", "structure"))
    value = map_value(written, lambda v: moved.get(v, v))
    core = replace(stage.assign, value=value)
    program = replace(facts.program, tensors=tensors, body=_exchanged(body, stage.assign, core), source="")
    return adapted(facts.program, program, core, tuple(names), said)


def _coordinates(facts: StageFacts, part: Value) -> list[Axis]:
    """The axes that a part depends on, in the order in which its main element has them. Raises NoPlace where their
    bounds depend on others."""
    names = value_axes(part)
    first = [n for i in _main(part).index for n in sorted(index_axes((i,)))]
    axes = [a for a in facts.original.axes if a.name in names]
    if not {a.name for a in axes} <= facts.exact:
        raise NoPlace("bounds of loops depend on others")
    return sorted(axes, key=lambda a: first.index(a.name) if a.name in first else -1)


def _computed(assign: Assign, axes: list[Axis], own: dict[str, str], outer: frozenset[str]) -> Statement:
    """The nest that computes a part, in loops of its own but for the axes of those around it."""
    loops = [replace(a, name=own[a.name]) for a in axes if a.name not in outer]
    at: dict[str, Int] = {a.name: Var(own[a.name]) for a in axes if a.name not in outer}
    value = map_value(assign.value, on_int=lambda e: substitute_int(e, at))
    index = tuple(substitute_int(i, at) for i in assign.index if isinstance(i, Int))
    return nest(loops, (replace(assign, index=index, value=value),))


def _parts(value: Value, facts: StageFacts) -> Iterator[Value]:
    """The largest parts that depend on fewer axes than the whole, and are more than an element addressed by axes."""
    own = set(facts.extents)
    whole = value_axes(value) & own

    def visit(v: Value) -> Iterator[Value]:
        found = operand_reads(v)
        if found and value_axes(v) & own < whole:
            inner = _bare(v)
            if not _plain(inner):
                yield inner
            return
        for child in _children(v):
            yield from visit(child)

    yield from visit(value)


def _children(value: Value) -> tuple[Value, ...]:
    match value:
        case Arith(_, left, right, _):
            return left, right
        case Unary(_, operand, _) | Cast(operand, _, _):
            return (operand,)
        case Select(_, chosen, other):
            return chosen, other
        case Call(_, arguments, _):
            return arguments
    return ()


def _bare(value: Value) -> Value:
    """Without conversions that lose nothing: the intermediate holds the narrower type."""
    while isinstance(value, Cast) and not value.saturate and holds_all(value.operand.dtype, value.dtype):
        value = value.operand
    return value


def _plain(value: Value) -> bool:
    return isinstance(value, Read) and not any(is_value(i) for i in value.index)


def _grouped(value: Value, facts: StageFacts) -> Value | None:
    """A product of many factors as one of two: each stands with the one before it, where that side has all its axes."""
    factors = _factors(value)
    if not 2 < len(factors) <= MOST_FACTORS:
        return None
    axes = [value_axes(f) & set(facts.extents) for f in factors]
    heads = [k for k, mine in enumerate(axes) if not any(mine < other for other in axes)]
    heads = [k for n, k in enumerate(heads) if axes[k] not in [axes[h] for h in heads[:n]]]
    if len(heads) != 2:
        return None
    sides: list[list[Value]] = [[], []]
    last = 0
    for factor, mine in zip(factors, axes, strict=True):
        last = last if mine <= axes[heads[last]] else 1 - last
        sides[last].append(factor)
    left, right = (reduce(lambda a, b: Arith("*", a, b, value.dtype), side) for side in sides)
    return Arith("*", left, right, value.dtype)


def _factors(value: Value) -> list[Value]:
    if isinstance(value, Arith) and value.op == "*":
        return [*_factors(value.left), *_factors(value.right)]
    return [value]


def stays_inside(facts: StageFacts, part: Value) -> None:
    """Raises NoPlace where an address may leave its tensor without the guards and choices that the stage has."""
    chosen = facts.update.guards or any(isinstance(v, Select) for v in walk(facts.original.assign.value))
    for v in walk(part):
        conditions = (v.condition,) if isinstance(v, Select) else v.parts if isinstance(v, Logical) else ()
        if any(isinstance(c, Bool) for c in conditions):
            raise NoPlace("it chooses by its axes")
        if not isinstance(v, Read):
            continue
        for index, extent in zip(v.index, facts.program.tensors[v.tensor].shape, strict=True):
            if not isinstance(index, Int):
                known = exact_range(index, stated_ranges(facts.program, operand_reads(index)))
                within = isinstance(extent, Const) and known.within((0, extent.value - 1))
                if chosen and not within:
                    raise NoPlace("a guard may keep an address from data inside")
                continue
            low, high = interval(index, facts.ranges)
            if low < 0 or not isinstance(extent, Const) or high >= extent.value:
                raise NoPlace("an address may lie outside without the stage's guards")


def _in_front(
    body: tuple[Statement, ...],
    assign: Assign,
    used: set[str],
    made: Callable[[frozenset[str]], Statement],
    outer: frozenset[str],
) -> tuple[Statement, ...]:
    """The body with a nest in front of the outermost statement that holds `assign` and writes nothing of what is
    `used`. `made` makes it, given the axes around it."""
    found: list[Statement] = []
    for stmt in body:
        if not holds(stmt, assign):
            found.append(stmt)
        elif not any(a.tensor in used for a in assigns(stmt)):
            found += [made(outer), stmt]
        elif isinstance(stmt, Loop):
            found.append(replace(stmt, body=_in_front(stmt.body, assign, used, made, outer | {stmt.axis.name})))
        elif isinstance(stmt, Guard):
            found.append(replace(stmt, body=_in_front(stmt.body, assign, used, made, outer)))
        else:
            raise NoPlace("what it reads is written by the same statement")
    return tuple(found)


def _exchanged(body: tuple[Statement, ...], old: Assign, new: Assign) -> tuple[Statement, ...]:
    return tuple(
        (new if s is old else s) if isinstance(s, Assign) else replace(s, body=_exchanged(s.body, old, new))
        for s in body
    )


def _main(part: Value) -> Read:
    """The element that names the intermediate: the one of most axes."""
    return max(operand_reads(part), key=lambda r: len(value_axes(r)))
