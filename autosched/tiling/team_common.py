"""What several members of a team compute alike along a row, which stays in registers where the row does.

for j: S[i] += exp(X[i, j] - M[i])            S_kept = exp(X_now - M_row);  S_acc += S_kept
for j: Y[i, j] = exp(X[i, j] - M[i]) / S[i]   Y = S_kept / S_row
"""

from __future__ import annotations

from collections.abc import Iterator

from autosched.ir.dtypes import DType
from autosched.ir.program import Stage
from autosched.ir.reuse import COSTLY
from autosched.ir.value import Call, Value, reads, walk
from autosched.tiling.plan import TeamPart
from autosched.tiling.teams import along_lanes, numbered


def kept_values(part: TeamPart) -> dict[str, tuple[Value, ...]]:
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


def kept_types(part: TeamPart) -> list[DType]:
    """The dtypes of these values, each once."""
    members = {m.name: m for m in part.members}
    values = [numbered(part, members[name], v) for name, some in kept_values(part).items() for v in some]
    return [v.dtype for v in dict.fromkeys(values)]


def _costly(part: TeamPart, member: Stage) -> Iterator[Value]:
    for node in walk(member.assign.value):
        if isinstance(node, Call) and node.function in COSTLY and along_lanes(part, member, node):
            yield node


def _outermost(values: list[Value]) -> list[Value]:
    """Each once, without those inside others."""
    distinct = list(dict.fromkeys(values))
    return [v for v in distinct if not any(v != w and v in set(walk(w)) for w in distinct)]
