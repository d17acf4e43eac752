"""Decisions that have to do with each other: the parts of a program that share nothing are decided apart."""

from __future__ import annotations

from collections.abc import Iterable, Set

from autosched.tiling.space.base import SpaceBase


def groups_of(space: SpaceBase, together: Iterable[Set[int]] = ()) -> tuple[frozenset[int], ...]:
    """The positions of all decisions of several values, in groups: no rule, and none of the sets `together`, reads
    decisions of two of them. In the order of their first positions."""
    groups = [frozenset((d,)) for d, radix in enumerate(space.radices) if radix > 1]
    for reads in (*(part.depends for part in space.parts), *together):
        tied = [g for g in groups if g & reads]
        if len(tied) > 1:
            groups = [*(g for g in groups if g not in tied), frozenset().union(*tied)]
    return tuple(sorted(groups, key=min))
