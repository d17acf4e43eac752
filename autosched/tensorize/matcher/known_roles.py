"""What is the same for all axis maps of one assignment of roles, found once."""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from autosched.ir.value import Read, map_value
from autosched.tensorize.match_types import Obligation, Reason
from autosched.tensorize.matcher.roles import dtype_reason
from autosched.tensorize.matcher.staging import Stager
from autosched.tensorize.reduction.update import Update

Covers: TypeAlias = tuple[tuple[str, ...] | None, list[Obligation], tuple[str, ...]]
"""Of a guard: the operands that may hold its fill, the proofs, and the operands that see it and do not determine it."""


@dataclass
class KnownRoles:
    """What is the same for all axis maps of one assignment of roles, for an intrinsic's normal form (`update`):
    `combination` is why it combines in another way than the `program`. Where all operands are `plain`, which program
    axes a guard has in the tile is all that counts for who sees it (`covering`), and elements follow from any map."""

    program: Update
    update: Update
    roles: dict[str, Read]
    combination: Reason | None
    plain: bool
    addresses: tuple[Obligation, ...] | None = None
    inside: tuple[Obligation, ...] | None = None
    covering: dict[object, Covers] = field(default_factory=dict)
    stager: Stager | None = None

    @cached_property
    def refuse(self) -> Reason | None:
        """What of types or combination refuses the intrinsic under these roles."""
        return dtype_reason(self.update, self.roles, self.program) or self.combination

    @cached_property
    def applied(self) -> Update:
        """The intrinsic's normal form on the program's elements."""
        return with_roles(self.update, self.roles)


def with_roles(update: Update, roles: MappingOf[str, Read]) -> Update:
    """An intrinsic's normal form with the program's elements for its operands."""
    term = map_value(update.term, lambda v: roles.get(v.tensor, v) if isinstance(v, Read) else v)
    return replace(update, term=term)
