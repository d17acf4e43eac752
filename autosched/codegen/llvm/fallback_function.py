"""Emits a guarded kernel's fallback as a function of its own: kernels that differ in the main path alone share it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autosched.codegen.tree.kernel import Buffer, Function, GuardedDispatch
from autosched.codegen.tree.uses import used_buffers


@dataclass(frozen=True)
class FallbackFunction:
    """The fallback of a `choice`, as a function of `buffers`."""

    choice: GuardedDispatch
    name: str
    buffers: tuple[str, ...]


def fallback_of(function: Function, buffers: Mapping[str, Buffer]) -> FallbackFunction | None:
    """The function's fallback; None where it has none or several, or shares registers with the fallback."""
    choices = [s for s in function.body if isinstance(s, GuardedDispatch)]
    if len(choices) != 1:
        return None
    (choice,) = choices
    others = tuple(s for s in function.body if s is not choice)
    own = used_buffers(choice.fallback)
    shared = own & (used_buffers(others) | used_buffers(choice.body))
    if any(buffers[name].scope == "register" for name in shared):
        return None
    return FallbackFunction(choice, f"{function.name}.fallback", tuple(b for b in function.buffers if b in own))
