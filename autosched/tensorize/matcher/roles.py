"""Operand roles: which element of the program each operand of an intrinsic holds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from autosched.ir.value import Read
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.match_types import Reason
from autosched.tensorize.reduction.update import Update

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
    for choice in product(reads, repeat=len(operands)):
        if len(set(choice)) == most:
            count += 1
            if count > ROLE_LIMIT:
                return
            yield dict(zip(operands, choice, strict=True))


def dtype_reason(intrinsic: Update, roles: dict[str, Read]) -> Reason | None:
    """DTYPE where an operand and its element differ in type."""
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
        counterexample = {"inputs": {show_leaf(read): stored}, "program": stored, "intrinsic": seen}
        text += f": {stored} would be read as {seen}"
    return Reason("DTYPE", text, counterexample, fix, len(wrong))
