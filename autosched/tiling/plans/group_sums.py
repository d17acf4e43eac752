"""Sums of groups that are never stored: a nest sums a group in registers, and another stage adds what it has, with the
group's factors, to sums that stay in registers, too.

    P[q, i, j] += A[i, 128 q + r] B[128 q + r, j]             r < 128, on the instruction
    C[i, j] += P[q, i, j] R[i, q] S[q, j]                     as soon as group q is summed

One nest does both: q becomes an axis of its reduction, and partial sums are added up as in a promotion
(`tiling.steps.gpu.promotion`). What was proved of P's stage (axes, addresses, the body of a step) holds as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from autosched.ir.nodes import Stage
from autosched.ir.value import Read, Value, reads, walk


@dataclass(frozen=True)
class GroupSums:
    """`stage` would fill the intermediate `tensor` with the sums of groups; `adding` adds them up. `axes` maps the axes
    of `adding` to the nest's, of which `groups` count groups."""

    tensor: str
    stage: str
    adding: Stage
    axes: dict[str, str]
    groups: tuple[str, ...]

    @property
    def factors(self) -> tuple[Read, ...]:
        """What else the addition of a group's sum reads, each once."""
        own = {self.tensor, self.adding.assign.tensor}
        return tuple(dict.fromkeys(r for r in reads(self.adding.assign.value) if r.tensor not in own))

    @cached_property
    def known(self) -> tuple[Value, ...]:
        """The largest parts of what is added that are known before a group is summed: its factors."""
        own = {self.tensor, self.adding.assign.tensor}
        read = [(v, {r.tensor for r in reads(v)}) for v in walk(self.adding.assign.value)]
        free = [v for v, tensors in read if tensors and not own & tensors]
        inside = {id(part) for whole in free for part in walk(whole) if part is not whole}
        return tuple(dict.fromkeys(v for v in free if id(v) not in inside and v.dtype.bits >= 8))

    @property
    def title(self) -> str:
        return f"adding up {self.tensor}"
