"""`FreeNames`: names that neither a program has yet nor the loops around it."""

from __future__ import annotations

import re
from itertools import count
from keyword import iskeyword

from autosched.ir.nodes import Assign, Loop, Statement
from autosched.ir.parser.scope import is_word
from autosched.ir.program import Program


class FreeNames:
    """A call with a name returns, and takes, the first free one of `name`, `name_2`, `name_3`, … A number at the end of
    the given name is dropped first: `i_4` asks for a name like `i`. Words of the language are not free."""

    def __init__(self, program: Program) -> None:
        self._taken = {*program.tensors, *program.scalars, *program.sizes, *program.symbolic, *program.dtypes}
        self._taken |= {*_axes(program.body), *program.names_around}

    def __call__(self, like: str) -> str:
        stem = re.sub(r"(?<=.)_\d+$", "", like)
        if is_word(f"{stem}_"):  # as `sat_sum` is
            stem = f"_{stem}"
        names = (stem if k == 1 else f"{stem}_{k}" for k in count(1))
        name = next(n for n in names if n not in self._taken and not is_word(n) and not iskeyword(n))
        self._taken.add(name)
        return name


def _axes(body: tuple[Statement, ...]) -> list[str]:
    found = []
    for stmt in body:
        if isinstance(stmt, Loop):
            found.append(stmt.axis.name)
        if not isinstance(stmt, Assign):
            found += _axes(stmt.body)
    return found
