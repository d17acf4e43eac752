"""`Slack`: how much wider the tolerances of a kernel's outputs are than the program's own arithmetic earns."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Slack:
    """`sums`: how many times larger the error of a float sum may be (an instruction keeps fewer bits than its
    accumulator has, or numbers may be rounded anew). `tensors`: of elements that an instruction approximates, by how
    much of each they may be off, by tensor, in order. One that a program does not name is a function within one of its
    expressions (adapter `apart`)."""

    sums: float = 1.0
    tensors: tuple[tuple[str, float], ...] = ()
    numbers: tuple[tuple[str, float], ...] = ()
    """As `tensors`: by how much they may be off beside that, whatever they are."""

    def joined(self, other: Slack) -> Slack:
        """What allows both."""
        numbers = _greatest(self.numbers, other.numbers)
        return Slack(max(self.sums, other.sums), _greatest(self.tensors, other.tensors), numbers)

    def share(self, tensor: str) -> float:
        """Of each element of a tensor."""
        return dict(self.tensors).get(tensor, 0.0)

    def number(self, tensor: str) -> float:
        """Beside that, of any of its elements."""
        return dict(self.numbers).get(tensor, 0.0)

    def inside(self, known: Collection[str]) -> float:
        """Of each function, and quotient, within the expressions of a program whose tensors are `known`."""
        return max((s for name, s in self.tensors if name not in known), default=0.0)

    @property
    def key(self) -> str:
        """A short word for names of files."""
        if not self.tensors and not self.numbers:
            return repr(self.sums)
        said = repr(self.tensors) + (repr(self.numbers) if self.numbers else "")
        return f"{self.sums!r}-{hashlib.sha256(said.encode()).hexdigest()[:12]}"


_Bounds: TypeAlias = tuple[tuple[str, float], ...]


def _greatest(mine: _Bounds, other: _Bounds) -> _Bounds:
    found = dict(mine)
    for name, bound in other:
        found[name] = max(bound, found.get(name, 0.0))
    return tuple(sorted(found.items()))


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
    with so many times the error (`sums`), and the shares that an instruction may be off: of an element (`share`, and
    `number` beside), and of each function `inside` its expression."""

    fused: bool
    sums: float
    share: float
    inside: float
    number: float = 0.0
