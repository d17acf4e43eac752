"""What names mean at a point of the text: sizes, dtypes, tensors, scalars, axes and locals."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TypeAlias

from autosched.errors import ProgramError, nearest
from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.nodes import Axis, ScalarParam, Tensor
from autosched.ir.parser.source import Source
from autosched.ir.value import UNARY_FUNCTIONS, Condition, Value
from autosched.logic import Bool, Int

FUNCTIONS = frozenset([*UNARY_FUNCTIONS, "min", "max", "fma", "scalb", "lookup"])
WORDS = frozenset([*FUNCTIONS, *DTYPES, "grid", "range", "assume", "const", "inf"])
"""Names that a program may not give to anything."""


def is_word(name: str) -> bool:
    """Whether a name is one that a program may not give to anything.

    >>> is_word("max"), is_word("sat_s8"), is_word("max_2")
    (True, True, False)
    """
    return name in WORDS or name.startswith(("sat_", "bits_"))


@dataclass(frozen=True)
class Choice:
    """`1.0 if c else 0.0`: literals on both sides, whose dtype the context gives."""

    test: Condition
    then: Operand
    other: Operand


Operand: TypeAlias = Int | Bool | float | Choice | Value
"""What an expression means before its context is known: an integer over axes and sizes (a literal one is a constant),
a condition on axes, a float literal, a choice of literals, or a typed value."""


@dataclass(frozen=True)
class Local:
    """A single-assignment local: what it stands for, the tensors it reads and how often each was written by then,
    and how many loops were open. `nodes` and `depth` bound the tree that a use of it adds."""

    operand: Operand
    versions: dict[str, int]
    loops: int
    nodes: int
    depth: int


@dataclass
class Scope:
    """Mutable while one function is parsed. `axes` maps a source name to the axis that it means here; `given` are the
    sizes of the signature; `taken` holds every name ever used, so that axis names stay unique in the program."""

    source: Source
    sizes: dict[str, Int] = field(default_factory=dict)
    dtypes: dict[str, DType] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    scalars: dict[str, ScalarParam] = field(default_factory=dict)
    axes: dict[str, Axis] = field(default_factory=dict)
    locals: dict[str, Local] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)
    numbers: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    loop_writes: list[frozenset[str]] = field(default_factory=list)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    conditions: list[Condition] = field(default_factory=list)
    proofs: dict[object, dict[str, int] | str] = field(default_factory=dict)

    def means(self, name: str) -> bool:
        """Whether a name means something here."""
        tables = (self.sizes, self.dtypes, self.tensors, self.scalars, self.axes, self.locals)
        return any(name in table for table in tables)

    def unused(self, name: str) -> str:
        """The first of `name_2`, `name_3`, … that is not a name in the program."""
        number = self.numbers.get(name, 2)
        while f"{name}_{number}" in self.taken:
            number += 1
        self.numbers[name] = number + 1
        return f"{name}_{number}"

    def known(self) -> list[str]:
        """All names that mean something here."""
        return [*self.sizes, *self.dtypes, *self.tensors, *self.scalars, *self.axes, *self.locals]

    def declare(self, node: ast.AST, name: str) -> None:
        """Take a new name; ProgramError where it already means something."""
        if is_word(name):
            raise self.source.error(node, f"{name!r} is a word of the language", "choose another name")
        if self.means(name):
            raise self.source.error(node, f"{name!r} already has a meaning here", "every name is given once")
        self.taken.add(name)

    def unknown(self, node: ast.AST, name: str) -> ProgramError:
        """The error for a name without a meaning."""
        if name in self.gone:
            return self.source.error(node, f"{name!r} is defined only inside the block above", "define it here too")
        close = nearest(name, [*self.known(), *(WORDS if len(name) > 2 else ())])  # `n` is no misspelt `min`
        return self.source.error(node, f"unknown name {name!r}", f"did you mean {close!r}?" if close else None)
