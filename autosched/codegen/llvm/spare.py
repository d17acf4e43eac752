"""What stands by for a function where a check refuses the data, as a function of its own: kernels that differ only in
what they do as a rule have it in common."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from autosched.codegen.kernel import Buffer, Choose, Function, Stmt
from autosched.codegen.lower.context import used_buffers

KEPT = 16
"""Texts that are kept: a search has few plans that check anything."""


@dataclass(frozen=True)
class Spare:
    """The fallback of a `choice`, as a function that is passed `buffers`."""

    choice: Choose
    name: str
    buffers: tuple[str, ...]


def spare_of(function: Function, buffers: Mapping[str, Buffer]) -> Spare | None:
    """What stands by for the function; None where nothing does, or several do, or it shares registers with the rest."""
    choices = [s for s in function.body if isinstance(s, Choose)]
    if len(choices) != 1:
        return None
    (choice,) = choices
    others = tuple(s for s in function.body if s is not choice)
    own = used_buffers(choice.fallback)
    shared = own & (used_buffers(others) | used_buffers(choice.body))
    if any(buffers[name].scope == "register" for name in shared):
        return None
    return Spare(choice, f"{function.name}.fallback", tuple(b for b in function.buffers if b in own))


class Printed:
    """Texts of what stands by: lowering answers the very same statements for all kernels that share them."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Hashable], tuple[tuple[Stmt, ...], str]] = {}  # statements that live keep their id

    def of(self, statements: tuple[Stmt, ...], other: Hashable, text: Callable[[], str]) -> str:
        """The text for these statements and whatever `other` it depends on."""
        key = id(statements), other
        found = self._known.pop(key, None) or (statements, text())
        self._known[key] = found  # the last one now
        if len(self._known) > KEPT:
            del self._known[next(iter(self._known))]
        return found[1]
