"""Trees that remember their hash, and what names are in them: they are keys everywhere, and hashing one walks all of
it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Node = TypeVar("_Node", bound=type)


class Remembering:
    """A base with room for the hash and for `free_vars`. These are no fields: they are neither compared nor copied nor
    pickled: texts hash differently in another process."""

    __slots__ = ("_hash", "_names")
    _hash: int
    _names: frozenset[str]


def remembers_hash(cls: _Node) -> _Node:
    """A frozen dataclass with slots, below `Remembering`, whose hash is computed once an object."""
    compute: Callable[[object], int] = vars(cls)["__hash__"]

    def __hash__(self: Remembering) -> int:
        try:
            return self._hash
        except AttributeError:
            found = compute(self)
            object.__setattr__(self, "_hash", found)
            return found

    cls.__hash__ = __hash__  # type: ignore[assignment]  # of any class, so mypy knows no self
    return cls
