"""Numbers that go round with a loop: `(slice + 2) % 3` is counted on from trip to trip, not divided for.

Remainders by powers of two are masks already. A number is declared in front of its loop and counted on at the end of
the loop's body, once the body has asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from autosched.codegen.c_like.names import Names
from autosched.codegen.cuda.simplify import Simplifier, Sum
from autosched.logic import Binary, Const, Int, Var, free_vars


@dataclass
class Ring:
    """The numbers of one loop over `var` from 0 on, by what is added to it and by their size; `known` are the variables
    in front of it."""

    var: str
    known: frozenset[str]
    names: dict[tuple[Int, int], str] = field(default_factory=dict)

    def advance(self) -> Iterator[str]:
        """Lines at the end of the loop's body."""
        for (_, size), name in self.names.items():
            yield f"    {name} = {name} == {size - 1} ? 0 : {name} + 1;"


class Rings:
    """Of the loops around what is being printed."""

    def __init__(self, names: Names, simplifier: Callable[[], Simplifier]) -> None:
        self.names, self.simplifier = names, simplifier
        self.open: list[Ring] = []

    @contextmanager
    def around(self, var: str, known: frozenset[str], counted: bool) -> Iterator[Ring]:
        """A loop whose body is printed meanwhile; `counted`: trip by trip from 0 on."""
        ring = Ring(var, known - {var})
        if not counted:
            yield ring
            return
        self.open.append(ring)
        yield ring
        self.open.pop()

    def text(self, left: Int, size: int) -> str | None:
        """`left % size` where it goes round with a loop; None elsewhere."""
        if size & (size - 1) == 0:
            return None
        match left:
            case Binary("min", inner, Const(most)) if (bounded := self._find(inner)) is not None:
                ring, rest = bounded  # at the end of the loop
                if rest.terms:
                    return None
                last = most - rest.constant
                return f"({self.names.local(ring.var)} < {last} ? {self._name(ring, rest, size)} : {most % size})"
        found = self._find(left)
        return None if found is None else self._name(*found, size)

    def _find(self, left: Int) -> tuple[Ring, Sum] | None:
        """The loop whose variable is one of the sum's terms, and the rest, which does not change in the loop."""
        total = self.simplifier().sum(left)
        for ring in reversed(self.open):
            if total.terms.get(Var(ring.var)) == 1:
                rest = total.plus(Sum({Var(ring.var): 1}), -1)
                return (ring, rest) if all(free_vars(t) <= ring.known for t in rest.terms) else None
        return None

    def _name(self, ring: Ring, rest: Sum, size: int) -> str:
        key = rest.node(), size
        if key not in ring.names:
            plain = rest.terms or not rest.constant
            ring.names[key] = self.names.fresh("slot" if plain else f"slot_{rest.constant}")
        return ring.names[key]
