"""How operands of an instruction must lie: which ones it reads in shared memory itself, which must be contiguous along
one of its axes.

`shared_memory` and `contiguous` say so in a file. Older files have sentences among their `rules` in place of both;
these are understood too. What people read (`intrinsics show`), and the version of an intrinsic, have sentences always.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autosched.ir.program import Program
from autosched.tensorize.spec.keys.models import IntrinsicKeys
from autosched.tensorize.spec.source import DocumentSource

_SHARED = re.compile(r"(\w+): in shared memory(?:, by descriptor)?( or registers)?")
_CONTIGUOUS = re.compile(r"([\w ]+): contiguous along (\w+)")


@dataclass(frozen=True)
class Placement:
    """`shared_memory`: operands that the instruction reads in shared memory itself, and whether they must be there;
    `contiguous`: operands, and the axis of the instruction along which their elements are neighbours in memory;
    `rules`: these and all others, in words."""

    shared_memory: dict[str, bool]
    contiguous: dict[str, str]
    rules: tuple[str, ...]


def placement(keys: IntrinsicKeys, program: Program, source: DocumentSource) -> Placement:
    """What an entry says, in either way; SpecError for an unknown operand or axis, and for both ways at once."""
    shared = {name: how == "required" for name, how in keys.shared_memory.items()}
    _check(keys, program, source)
    said_shared, said_contiguous = _said(keys.rules)
    for key, typed, said in (("shared_memory", shared, said_shared), ("contiguous", keys.contiguous, said_contiguous)):
        if twice := sorted(typed.keys() & said.keys()):
            message = f"{key} and a sentence among the rules both speak of {twice[0]}"
            raise source.error(message, key, twice[0], key=True, hint="leave the sentence out")
    rules = (*_sentences(shared, keys.contiguous), *keys.rules)
    return Placement(shared | said_shared, keys.contiguous | said_contiguous, rules)


def _check(keys: IntrinsicKeys, program: Program, source: DocumentSource) -> None:
    written = program.stages[0].assign.tensor
    inputs = [name for name in program.tensors if name != written]
    axes = [a.name for a in program.stages[0].axes]
    for key in ("shared_memory", "contiguous"):
        for name in getattr(keys, key):
            if name not in inputs:
                hint = f"inputs: {', '.join(inputs)}"
                raise source.error(f"{key}: {name!r} is no input of the semantics", key, name, key=True, hint=hint)
    for name, axis in keys.contiguous.items():
        if axis not in axes:
            hint = f"axes: {', '.join(axes)}"
            raise source.error(f"contiguous: {name} along {axis!r}, which is no axis", "contiguous", name, hint=hint)


def _said(rules: Sequence[str]) -> tuple[dict[str, bool], dict[str, str]]:
    """What sentences say of both."""
    shared = {name: not either for rule in rules for name, either in _SHARED.findall(rule)}
    contiguous: dict[str, str] = {}
    for rule in rules:
        for names, axis in _CONTIGUOUS.findall(rule):
            contiguous |= dict.fromkeys(names.split(" and "), axis)
    return shared, contiguous


def _sentences(shared: Mapping[str, bool], contiguous: Mapping[str, str]) -> list[str]:
    """The same in words."""
    said = [f"{n}: in shared memory{', by descriptor' if must else ' or registers'}" for n, must in shared.items()]
    along: dict[str, list[str]] = {}
    for name, axis in contiguous.items():
        along.setdefault(axis, []).append(name)
    both = [f"{' and '.join(names)}: contiguous along {axis}" for axis, names in along.items()]
    return ["; ".join(said), *both] if said else both
