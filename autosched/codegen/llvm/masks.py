"""Which lanes are wanted: an i1 vector, and the formula behind it where there is one.

With the formula a load can ask again about some of its lanes: a group of bytes under `4 * k + lane % 4 < K` needs four
truth values, not sixty-four.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from autosched.codegen.analysis.access import classify, split_divisible
from autosched.codegen.tree.kernel import Lane
from autosched.logic import And, Binary, Bool, Compare, Const, Int, Not, Or, Var, free_vars
from autosched.logic.expr import all_of, any_of, binary, compare, negate


@dataclass(frozen=True, slots=True)
class Mask:
    """`name` is an i1 vector; `formula` says the same of the lane variable, None where data decide."""

    name: str
    formula: Bool | None


def only_lane(name: str) -> int | None:
    """The one lane of a constant mask, None for other masks.

    For a masked store of a truncated vector under such a mask LLVM 22 stores the element as it was before (four bytes
    of an i8 that was an i32), over its neighbours; so it is written as the scalar store that it is.

    >>> only_lane("<i1 false, i1 true>"), only_lane("<i1 true, i1 true>"), only_lane("%m.3")
    (1, None, None)
    """
    lanes = [part.split()[-1] == "true" for part in name.strip("<>").split(",")] if name.startswith("<") else []
    return lanes.index(True) if sum(lanes) == 1 else None


def periodic(formula: Bool, lane: Lane, group: int) -> bool:
    """Whether the formula holds in lane e as in lane e % group (proved; False where not found)."""
    match formula:
        case Compare(_, a, b):
            offsets = classify((a - b,), (1,), lane).offsets
            return offsets is not None and all(o == offsets[e % group] for e, o in enumerate(offsets))
        case And(parts) | Or(parts):
            return all(periodic(p, lane, group) for p in parts)
        case Not(part):
            return periodic(part, lane, group)
        case _:
            return True


def at_lanes(formula: Bool, lane: Lane, first: int, step: int) -> Bool:
    """The formula of lane `first + step * lane`."""

    def integer(node: Int) -> Int:
        if lane.var not in free_vars(node):
            return node
        match node:
            case Var(_):
                return node * step + first
            case Binary("//" | "%" as op, a, Const(divisor)) if (
                split := split_divisible(integer(a), divisor)
            ) is not None:
                quotient, rest = split
                return quotient + rest // divisor if op == "//" else rest % divisor
            case Binary(op, a, b):
                return binary(op, integer(a), integer(b))
            case _:
                from autosched.logic.walk import substitute_int

                return substitute_int(node, {lane.var: Var(lane.var) * step + first})

    match formula:
        case Compare(op, a, b):
            return compare(op, integer(a), integer(b))
        case And(parts):
            return all_of(*(at_lanes(p, lane, first, step) for p in parts))
        case Or(parts):
            return any_of(*(at_lanes(p, lane, first, step) for p in parts))
        case Not(part):
            return negate(at_lanes(part, lane, first, step))
        case _:
            return formula


@dataclass(frozen=True, slots=True)
class VectorRun:
    """Neighbouring elements that one vector load brings: `lanes[p]` takes the element at `offset + p`."""

    offset: int
    lanes: tuple[tuple[int, ...], ...]

    def progression(self) -> tuple[int, int] | None:
        """(first lane, step) where every element goes to one lane, in even steps."""
        if any(len(x) != 1 for x in self.lanes):
            return None
        flat = [x[0] for x in self.lanes]
        steps = {b - a for a, b in pairwise(flat)} or {0}
        return (flat[0], steps.pop()) if len(steps) == 1 else None


def runs(offsets: tuple[int, ...]) -> list[VectorRun]:
    """The accessed offsets as maximal runs of neighbours."""
    takers: dict[int, list[int]] = {}
    for e, o in enumerate(offsets):
        takers.setdefault(o, []).append(e)
    result: list[list[int]] = []
    for o in sorted(takers):
        if result and result[-1][-1] == o - 1:
            result[-1].append(o)
        else:
            result.append([o])
    return [VectorRun(r[0], tuple(tuple(takers[o]) for o in r)) for r in result]


def overlapping(run: VectorRun) -> tuple[VectorRun, ...]:
    """The run as vectors of a power of two elements: itself, or two that overlap. (Of 34 bytes LLVM makes a load of 32,
    one of 2, and moves between register files.)

    >>> [(r.offset, len(r.lanes)) for r in overlapping(Run(0, ((),) * 34))]
    [(0, 32), (2, 32)]
    """
    n = len(run.lanes)
    size = 1 << (n.bit_length() - 1)
    if n == size:
        return (run,)
    rest = ((),) * (2 * size - n) + run.lanes[size:]
    return VectorRun(run.offset, run.lanes[:size]), VectorRun(run.offset + n - size, rest)


def windows(offsets: tuple[int, ...]) -> list[VectorRun]:
    """Whole vectors over the span of strided offsets, the last one ending where the span does; what lies between the
    elements is loaded too, which is safe as both ends are. Empty where the span is no longer than a vector or thinner
    than a quarter.

    >>> [r.offset for r in windows((0, 2, 4, 6))]
    [0, 3]
    """
    n, reach = len(offsets), max(offsets) + 1
    if min(offsets) < 0 or not n < reach <= 4 * n:
        return []
    starts = [*range(0, reach - n, n), reach - n]
    takers: list[list[list[int]]] = [[[] for _ in range(n)] for _ in starts]
    for e, o in enumerate(offsets):
        k = next(k for k, start in enumerate(starts) if start <= o < start + n)
        takers[k][o - starts[k]].append(e)
    return [VectorRun(s, tuple(tuple(t) for t in lanes)) for s, lanes in zip(starts, takers, strict=True)]
