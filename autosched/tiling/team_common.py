"""What several members of a team compute alike along a row, which stays in registers where the row does.

for j: S[i] += exp(X[i, j] - M[i])            S_kept = exp(X_now - M_row);  S_acc += S_kept
for j: Y[i, j] = exp(X[i, j] - M[i]) / S[i]   Y = S_kept / S_row
"""

from __future__ import annotations

from collections.abc import Iterator

from autosched.ir.program import Stage
from autosched.ir.reuse import COSTLY
from autosched.ir.value import Call, Value, map_value, reads, walk
from autosched.logic import Int, Var
from autosched.logic.walk import substitute_int
from autosched.tiling.plan import TeamPart
from autosched.tiling.teams import inner_axes


def kept_values(part: TeamPart) -> dict[str, tuple[Value, ...]]:
    """For each member the costly parts of its value, largest first, that another member computes alike."""
    found: dict[str, list[Value]] = {m.name: [] for m in part.members}
    for number, first in enumerate(part.members):
        mine = {_renamed(part, first, v): v for v in _costly(first)}
        for later in part.members[number + 1 :]:
            between = part.members[number : part.members.index(later)]
            written = {m.assign.tensor for m in between}
            for value in _costly(later):
                same = mine.get(_renamed(part, later, value))
                if same is not None and not written & {r.tensor for r in reads(same)}:
                    found[first.name].append(same)
                    found[later.name].append(value)
    return {name: tuple(_outermost(values)) for name, values in found.items() if values}


def _costly(member: Stage) -> Iterator[Value]:
    for node in walk(member.assign.value):
        if isinstance(node, Call) and node.function in COSTLY and reads(node):
            yield node


def _renamed(part: TeamPart, member: Stage, value: Value) -> Value:
    """The value with the axes of the lanes by number."""
    names: dict[str, Int] = {a.name: Var(f".{n}") for n, a in enumerate(inner_axes(part, member))}
    return map_value(value, on_int=lambda i: substitute_int(i, names))


def _outermost(values: list[Value]) -> list[Value]:
    """Each once, without those inside others."""
    distinct = list(dict.fromkeys(values))
    return [v for v in distinct if not any(v != w and v in set(walk(w)) for w in distinct)]
