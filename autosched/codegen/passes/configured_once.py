"""Registers that hold matrices are configured once around a loop, not in each of its iterations.

    for j_block in 0..4:                    configure 8 registers
      configure 8 registers                 for j_block in 0..4:
      …                                       …
      release 8 registers                     …
      …                                     release 8 registers
      configure 8 registers
      …
      release 8 registers

So it is where all that is configured inside is the same, outwards to what a thread does.
"""

from __future__ import annotations

from dataclasses import replace

from autosched.codegen.tree.kernel import Configure, For, Kernel, Stmt, statements
from autosched.tensorize.matrices import Matrices


def configure_once(kernel: Kernel) -> Kernel:
    """The kernel with configurations moved out of the loops of its main function."""
    if not any(isinstance(s, Configure) for s in statements(kernel.main.body)):
        return kernel
    return replace(kernel, main=replace(kernel.main, body=_whole(kernel.main.body)))


def _whole(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements with the one configuration around them; where there are several, with loops inside so."""
    matrices = _looped(body)
    if matrices is not None:
        return (Configure(matrices, on=True), *_without(body), Configure(matrices, on=False))
    found: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, For):
            found.append(stmt)
        elif _looped((stmt,)) is None or len(body) == 1:
            found.append(replace(stmt, body=_whole(stmt.body)))
        else:
            found += _whole((stmt,))
    return tuple(found)


def _looped(body: tuple[Stmt, ...]) -> Matrices | None:
    """The one configuration of all statements, where loops alone stand around it and some do; else None."""
    found: list[Matrices] = []
    inside = False
    waiting = [(stmt, 0) for stmt in body]
    while waiting:
        stmt, depth = waiting.pop()
        if isinstance(stmt, Configure):
            found.append(stmt.matrices)
            inside |= depth > 0
        elif isinstance(stmt, For) and stmt.kind != "parallel":
            waiting += [(s, depth + 1) for s in stmt.body]
        elif any(isinstance(s, Configure) for s in statements((stmt,))):
            return None
    return found[0] if found and inside and all(m == found[0] for m in found) else None


def _without(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    kept = (s for s in body if not isinstance(s, Configure))
    return tuple(replace(s, body=_without(s.body)) if isinstance(s, For) else s for s in kept)
