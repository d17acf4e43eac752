"""Rows and lanes of vector registers change places, a bit of the row's number at a time.

A stage reads two registers whose numbers differ in one bit. That bit enters the lane's number at one place, another
leaves it at the same or another place and numbers the two registers that come out, and those between move by one.
Neighbours that stay together (a `group`: pairs of bf16) move like one element.

    stage(bit 0, enters 0, leaves 1)     registers 0 and 1      a0 a1 a2 a3   b0 b1 b2 b3
                                         become                 a0 b0 a1 b1   a2 b2 a3 b3
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from autosched.codegen.tree.kernel import Assign, Lane, Stmt
from autosched.ir.value import Read, Select
from autosched.logic import Const, Int, Var

QUICK_BYTES = 16
"""Stages within so many bytes, and of wholes of so many, are one quick instruction (x86: unpack, shuffle; Arm: zip)."""


@dataclass(frozen=True)
class Exchange:
    """`bit` of the register's number changes places with bits of the lane's number."""

    bit: int
    enters: int
    leaves: int


def riffles(rows: int, lanes: int) -> list[Exchange]:
    """Registers as one array of rows * lanes elements: riffling its two halves once for each bit of the row's number
    transposes it.

    >>> riffles(4, 8)
    [Exchange(bit=1, enters=0, leaves=2), Exchange(bit=0, enters=0, leaves=2)]
    """
    return [Exchange(bit, 0, _bits(lanes) - 1) for bit in reversed(range(_bits(rows)))]


def quick_square(lanes: int, group_bytes: int) -> list[Exchange]:
    """As many rows as lanes, in quick instructions.

    >>> quick_square(8, 4)
    [Exchange(bit=0, enters=0, leaves=1), Exchange(bit=1, enters=1, leaves=1), Exchange(bit=2, enters=2, leaves=2)]
    """
    count = _bits(lanes)
    inside = min(count, _bits(QUICK_BYTES // group_bytes))
    within = [Exchange(bit, bit, inside - 1) for bit in range(inside)]
    return within + [Exchange(bit, count - 1, count - 1 - (bit - inside)) for bit in range(inside, count)]


def exchanged(
    stages: Sequence[Exchange], registers: Sequence[Read], lane: Lane, buffers: tuple[str, str], group: int = 1
) -> tuple[list[Stmt], list[Read]]:
    """The statements of the stages, which fill two `buffers` of as many registers in turn, and where the result is. The
    last subscript of `registers` is the lane."""
    stmts, held = list[Stmt](), list(registers)
    for number, stage in enumerate(stages):
        name, dtype = buffers[number % 2], held[0].dtype
        index = [(Const(q), Var(lane.var)) for q in range(len(held))]
        stmts += [Assign(name, index[q], _chosen(stage, held, q, lane, group), lane) for q in range(len(held))]
        held = [Read(name, i, dtype) for i in index]
    return stmts, held


def column(stages: Sequence[Exchange], lanes: int, number: int) -> int:
    """Which lane's elements the register of this number holds after the stages, which have as many rows as lanes.

    >>> [column(quick_square(4, 4), 4, number) for number in range(4)]
    [0, 2, 1, 3]
    """
    places = list(range(_bits(lanes)))  # which bit of the first lane's number stands at each place
    found = 0
    for stage in stages:
        out = places.pop(stage.leaves)
        places.insert(stage.enters, -1)
        found |= (number >> stage.bit & 1) << out
    return found


def element(register: Read, number: Int) -> Read:
    """Another element of a register."""
    return replace(register, index=(*register.index[:-1], number))


def _chosen(stage: Exchange, held: Sequence[Read], q: int, lane: Lane, group: int) -> Select:
    """What register `q` holds after a stage."""
    at, inside = Var(lane.var) // group, Var(lane.var) % group
    out, enters, leaves = q >> stage.bit & 1, 1 << stage.enters, 1 << stage.leaves
    above, below = at // (2 * max(enters, leaves)) * (2 * max(enters, leaves)), at % min(enters, leaves)
    up, down = at % (2 * leaves) // (2 * enters) * enters, at % enters // leaves * (2 * leaves)
    source = above + (up if enters < leaves else down) + out * leaves + below
    a, b = (element(held[n], source * group + inside) for n in (q & ~(1 << stage.bit), q | 1 << stage.bit))
    return Select((at // enters % 2).eq(0), a, b, a.dtype)


def _bits(count: int) -> int:
    return count.bit_length() - 1
