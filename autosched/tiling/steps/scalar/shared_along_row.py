"""What several members of a team compute alike along a row, which stays in registers where the row does.

for j: S[i] += exp(X[i, j] - M[i])            S_kept = exp(X_now - M_row);  S_acc += S_kept
for j: Y[i, j] = exp(X[i, j] - M[i]) / S[i]   Y = S_kept / S_row
"""

from __future__ import annotations

from collections.abc import Iterator

from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.ir.rewrites.reuse import COSTLY
from autosched.ir.value import Call, Value, blank, map_value, reads, walk
from autosched.tiling.plans.plan import WarpCooperativePart
from autosched.tiling.plans.teams import along_lanes, inner_axes, numbered

WORD = 32
"""Bits of a register."""


def kept_values(part: WarpCooperativePart) -> dict[str, tuple[Value, ...]]:
    """For each member the costly parts of its value, largest first, that another member computes alike."""
    found: dict[str, list[Value]] = {m.name: [] for m in part.members}
    for number, first in enumerate(part.members):
        mine = {numbered(part, first, v): v for v in _costly(part, first)}
        for later in part.members[number + 1 :]:
            between = part.members[number : part.members.index(later)]
            written = {m.assign.tensor for m in between}
            for value in _costly(part, later):
                same = mine.get(numbered(part, later, value))
                if same is not None and not written & {r.tensor for r in reads(same)}:
                    found[first.name].append(same)
                    found[later.name].append(value)
    return {name: tuple(_outermost(values)) for name, values in found.items() if values}


def row_bits(part: WarpCooperativePart, program: Program) -> int:
    """Bits of registers that one element of a row takes at most between two members: of tensors, and of values, that
    one before has read or computed and one behind takes. Narrow ones take a whole register, since compilers keep what
    they were widened to."""
    kept = kept_values(part)
    tensors: list[set[str]] = []
    values: list[set[Value]] = []
    for member in part.members:
        mine = kept.get(member.name, ())
        before = set[Value]().union(*values)
        again = {v for v in mine if numbered(part, member, v) in before}
        own = {r.tensor for r in reads(_without(member.assign.value, again)) if along_lanes(part, member, r)}
        made = {member.assign.tensor} if inner_axes(part, member) and not member.reduction else set()
        tensors.append(own | made)
        values.append({numbered(part, member, v) for v in mine})
    most = 0
    for n in range(1, len(part.members)):
        held = set[str]().union(*tensors[:n]) & set[str]().union(*tensors[n:])
        common = set[Value]().union(*values[:n]) & set[Value]().union(*values[n:])
        bits = [*(program.tensors[t].dtype.bits for t in held), *(v.dtype.bits for v in common)]
        most = max(most, sum(max(WORD, b) for b in bits))
    return most


def _without(value: Value, parts: set[Value]) -> Value:
    return map_value(value, lambda v: blank(v.dtype) if v in parts else v)


def _costly(part: WarpCooperativePart, member: Stage) -> Iterator[Value]:
    for node in walk(member.assign.value):
        if isinstance(node, Call) and node.function in COSTLY and along_lanes(part, member, node):
            yield node


def _outermost(values: list[Value]) -> list[Value]:
    """Each once, without those inside others."""
    distinct = list(dict.fromkeys(values))
    return [v for v in distinct if not any(v != w and v in set(walk(w)) for w in distinct)]
