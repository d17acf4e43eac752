"""Operand roles: which element of the program each operand of an intrinsic holds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from autosched.ir.oracle import numerics
from autosched.ir.value import Cast, Read
from autosched.tensorize.body.arrays import evaluate
from autosched.tensorize.body.counterexample import leaves, show_leaf
from autosched.tensorize.match_types import Reason
from autosched.tensorize.reduction.update import Update

_MOST_OTHERS = 3
FEW = 3
"""Operands of which elements of other types are looked at, too, for what is said of them."""
ROLE_LIMIT = 256
"""Role assignments looked at; two operands and two reads have four."""


def role_assignments(intrinsic: Update, program: Update) -> Iterator[dict[str, Read]]:
    """Every way to give the intrinsic's operands program elements, covering as many of these as can be: the order as
    written first, swaps after it; one element may fill two operands."""
    operands = tuple(dict.fromkeys(r.tensor for r in intrinsic.operands))
    reads = program.operands
    if not operands or not reads:
        return
    most = min(len(operands), len(reads))
    count = 0
    for choice in _choices(intrinsic, operands, reads):
        if len(set(choice)) == most:
            count += 1
            if count > ROLE_LIMIT:
                return
            yield dict(zip(operands, choice, strict=True))


def _choices(intrinsic: Update, operands: tuple[str, ...], reads: tuple[Read, ...]) -> Iterator[tuple[Read, ...]]:
    """Elements for the operands. Of many operands those of the right types alone, or one to say what is wrong."""
    if len(operands) <= FEW:
        yield from product(reads, repeat=len(operands))
        return
    wanted = {r.tensor: r.dtype for r in intrinsic.operands}
    fitting = [[r for r in reads if r.dtype == wanted[o]] for o in operands]
    shared = intrinsic.combine is None and len(operands) == FEW + 1  # C[j] + B[j] if M[j] != 0 else C[j]
    if all(fitting) and (len(reads) >= len(operands) or (shared and len(reads) == FEW)):
        yield from product(*fitting)
    else:
        yield tuple(reads[min(n, len(reads) - 1)] for n in range(len(operands)))


def dtype_reason(intrinsic: Update, roles: dict[str, Read], program: Update) -> Reason | None:
    """DTYPE where an operand and its element differ in type, with elements for which the terms then differ."""
    wanted = {r.tensor: r.dtype for r in intrinsic.operands}
    wrong = [(o, wanted[o], read) for o, read in roles.items() if read.dtype != wanted[o]]
    if not wrong:
        return None
    _, dtype, read = wrong[0]
    text = "; ".join(f"operand {o} is {d}, {r.tensor} is {r.dtype}" for o, d, r in wrong)
    fix = "declare " + " and ".join(dict.fromkeys(f"{r.tensor} as {d}" for _, d, r in wrong))
    counterexample = None
    if dtype.is_integer and read.dtype.is_integer and dtype.bits == read.dtype.bits and len(wrong) == 1:
        half = 1 << (dtype.bits - 1)
        fix += f", or shift it by {half} (a ^ {half:#x}, with a compensation term)"
        # The same bits, read as the other type: the least value that the two do not share.
        stored = -1 if read.dtype.signed else read.dtype.limits[1]
        seen = dtype.limits[1] if read.dtype.signed else -1
        counterexample = _read_otherwise(intrinsic, roles, program, wrong[0][0], stored, seen)
        text += f": {stored} would be read as {seen}"
    return Reason("DTYPE", text, counterexample, fix, len(wrong))


def _read_otherwise(
    intrinsic: Update, roles: dict[str, Read], program: Update, operand: str, stored: int, seen: int
) -> dict[str, Any] | None:
    """What each adds where an element's bits are read as another type, with others for which that shows."""
    read = roles[operand]
    others = tuple(r for r in program.operands if r != read)
    leaves_known = set(leaves(program.term)) <= {read, *others}
    if not leaves_known or sum(r == read for r in roles.values()) > 1 or len(others) > _MOST_OTHERS:
        return None
    for values in product((1, 2, 0), repeat=len(others)):
        elements = {r: numerics.container(r.dtype)(v) for r, v in zip(others, values, strict=True)}
        held = {p: elements[roles[p.tensor]] for p in intrinsic.operands if p.tensor != operand}
        held |= {p: numerics.container(p.dtype)(seen) for p in intrinsic.operands if p.tensor == operand}
        mine = evaluate(program.term, {**elements, read: numerics.container(read.dtype)(stored)})
        theirs = evaluate(Cast(intrinsic.term, program.term.dtype), held)
        if mine != theirs:
            inputs = {show_leaf(read): stored, **{show_leaf(r): v for r, v in zip(others, values, strict=True)}}
            return {"inputs": inputs, "program": mine.item(), "intrinsic": theirs.item()}
    return None
