"""The space of a group of decisions that share no rule with others, by itself; equal ones are one object.

A dozen plans of two products combine a few ways of each. Decisions and quantities go by their places here, not by their
names, so a product's way is the same space in all of these plans, and in both products where their sizes agree: what
is found out about it once (`Space.count`) is known in all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from weakref import WeakValueDictionary

from autosched.logic import Int, Var, all_of, evaluate, free_vars
from autosched.logic.walk import substitute_bool, substitute_int
from autosched.tiling.space.base import RulePart, SpaceBase, once_per_space
from autosched.tiling.step import Decision, Rule, Step

_KNOWN: WeakValueDictionary[object, SpaceBase] = WeakValueDictionary()


@dataclass(frozen=True)
class Subspace:
    """`space` has the decisions at `positions` of another one, and of that one's rules those numbered `rules`, as far
    as they speak of these decisions."""

    space: SpaceBase
    positions: tuple[int, ...]
    rules: tuple[int, ...]


@once_per_space
def subspaces(space: SpaceBase) -> tuple[Subspace, ...]:
    """Those that the rules of a space leave independent of each other, in the order of their first positions; decisions
    that no rule reads are in none. Empty where a rule that nothing is left to decide of forbids all rows."""
    settled = [p for p in space.parts if all(space.radices[d] == 1 for d in p.depends)]
    row = {n: c[0] for n, c in space.values([0]).items()} if settled else {}
    if not all(evaluate(p.holds, row) for p in settled):
        return ()
    found = []
    for group in groups_of(space):
        parts = [p for p in space.parts if p.depends & group]
        if parts:
            found.append(_subspace(space, parts))
    return tuple(found)


def _subspace(space: SpaceBase, parts: Sequence[RulePart]) -> Subspace:
    positions = tuple(sorted(frozenset[int]().union(*(p.depends for p in parts))))
    wanted = _derived(space, parts)
    named: dict[str, Int | int] = dict(space.constants)
    named |= {space.decisions[p].name: Var(f"d{n}") for n, p in enumerate(positions)}
    named |= {name: Var(f"q{n}") for n, name in enumerate(wanted)}
    decisions = tuple(Decision(f"d{n}", space.decisions[p].domain) for n, p in enumerate(positions))
    derived = {f"q{n}": substitute_int(space.derived[name], named) for n, name in enumerate(wanted)}
    numbers = tuple(dict.fromkeys(p.rule for p in parts))
    held = [all_of(*(substitute_bool(p.holds, named) for p in parts if p.rule == number)) for number in numbers]
    rules = tuple(Rule(f"r{n}", holds, "") for n, holds in enumerate(held))
    key = tuple(d.domain for d in decisions), rules, tuple(derived.values())
    known = _KNOWN.get(key)
    if known is None:
        known = _KNOWN.setdefault(key, SpaceBase("decisions apart", [Step("all", decisions, rules, derived)]))
    return Subspace(known, positions, numbers)


def _derived(space: SpaceBase, parts: Sequence[RulePart]) -> list[str]:
    """The derived quantities that rules read, through each other too, in the order of their definitions."""
    read: Set[str] = frozenset().union(*(free_vars(p.holds) for p in parts))
    found: list[str] = []
    for name, expression in reversed(space.derived.items()):
        if name in read:
            found.append(name)
            read = read | free_vars(expression)
    return found[::-1]


def groups_of(space: SpaceBase, together: Iterable[Set[int]] = ()) -> tuple[frozenset[int], ...]:
    """The positions of all decisions of several values, in groups: no rule, and none of the sets `together`, reads
    decisions of two of them. In the order of their first positions."""
    groups = [frozenset((d,)) for d, radix in enumerate(space.radices) if radix > 1]
    for reads in (*(part.depends for part in space.parts), *together):
        tied = [g for g in groups if g & reads]
        if len(tied) > 1:
            groups = [*(g for g in groups if g not in tied), frozenset().union(*tied)]
    return tuple(sorted(groups, key=min))
