"""`Slack`: how much wider the tolerances of a kernel's outputs are than the program's own arithmetic earns."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Slack:
    """`sums`: how many times larger the error of a float sum may be (an instruction keeps fewer bits than its
    accumulator has, or numbers may be rounded anew). `tensors`: of elements that an instruction approximates, by how
    much of each they may be off, by tensor, in order. One that a program does not name is a function within one of its
    expressions (adapter `apart`)."""

    sums: float = 1.0
    tensors: tuple[tuple[str, float], ...] = ()

    def joined(self, other: Slack) -> Slack:
        """What allows both."""
        shares = dict(self.tensors)
        for name, share in other.tensors:
            shares[name] = max(share, shares.get(name, 0.0))
        return Slack(max(self.sums, other.sums), tuple(sorted(shares.items())))

    def share(self, tensor: str) -> float:
        """Of each element of a tensor."""
        return dict(self.tensors).get(tensor, 0.0)

    def inside(self, known: Collection[str]) -> float:
        """Of each function, and quotient, within the expressions of a program whose tensors are `known`."""
        return max((s for name, s in self.tensors if name not in known), default=0.0)

    @property
    def key(self) -> str:
        """A short word for names of files."""
        if not self.tensors:
            return repr(self.sums)
        return f"{self.sums!r}-{hashlib.sha256(repr(self.tensors).encode()).hexdigest()[:12]}"


NO_SLACK = Slack()


def joined(all_of: Iterable[Slack]) -> Slack:
    """What allows all of them."""
    found = NO_SLACK
    for one in all_of:
        found = found.joined(one)
    return found


@dataclass(frozen=True, slots=True)
class Allowed:
    """What may be off of one assignment: whether a kernel may reassociate its sums and fuse its products (`fused`),
    with so many times the error (`sums`), and the shares that an instruction may be off: of an element (`share`), and
    of each function `inside` its expression."""

    fused: bool
    sums: float
    share: float
    inside: float
