"""Where barriers are needed: between two phases of a block's workers of which one accesses what the other writes.

In the tree every two loops over workers are separated by a barrier. Most pairs need none: they access other memory, or
registers alone. This analysis compares a phase with all phases since the last barrier, and a loop's end with its
beginning, unless its iterations are apart. An asynchronous copy counts as a write where it starts and as landed where
it is awaited: after a `WaitCopies`, other threads see the data behind the next barrier.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from autosched.codegen.tree.kernel import (
    WORKERS,
    Assign,
    AsyncCopies,
    Branch,
    For,
    IntrinsicCall,
    Kernel,
    Stmt,
    TileCopy,
    WaitCopies,
    bodies,
    statements,
)
from autosched.ir.value import Read, walk

Path = tuple[int, ...]
"""The path to a statement: its number in the body, then in the body inside it, and so on."""


@dataclass(frozen=True)
class Touched:
    """Buffers that phases have read and written, and into which awaited copies have landed."""

    read: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    landed: frozenset[str] = frozenset()

    def __or__(self, other: Touched) -> Touched:
        return Touched(self.read | other.read, self.written | other.written, self.landed | other.landed)

    def before(self, later: Touched) -> bool:
        """Whether a barrier is needed between this and a later phase."""
        mine = self.written | self.landed
        return bool(mine & later.read or (self.written | self.read) & later.written or self.landed & later.written)


@dataclass
class Phases:
    """The barriers of one block's body: `needed` has the phases before which one is needed."""

    kernel: Kernel
    body: tuple[Stmt, ...]
    needed: set[Path] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.copied = frozenset(
            inner.buffer
            for stmt in statements(self.body)
            if isinstance(stmt, AsyncCopies)
            for inner in statements(stmt.body)
            if isinstance(inner, Assign)
        )
        self._known: dict[int, Touched] = {}  # by the statement's identity: loops are walked twice
        self._walk(self.body, Touched(), ())

    def _walk(self, body: tuple[Stmt, ...], open_: Touched, path: Path) -> Touched:
        """Adds needed barriers of the statements; returns the accesses since the last barrier, after them."""
        for number, stmt in enumerate(body):
            here = (*path, number)
            if isinstance(stmt, For) and stmt.kind in WORKERS:
                if id(stmt) not in self._known:
                    self._known[id(stmt)] = self._touched((stmt,))
                phase = self._known[id(stmt)]
                if not stmt.no_barrier and open_.before(phase):
                    self.needed.add(here)
                    open_ = Touched()
                open_ = open_ | phase
            elif isinstance(stmt, For) and stmt.apart:
                inside = self._touched(stmt.body)
                if open_.before(inside):
                    self.needed.add(here)
                    open_ = Touched()
                self._walk(stmt.body, Touched(), here)
                open_ = open_ | inside
            elif isinstance(stmt, For):
                once = self._walk(stmt.body, open_, here)
                again = self._walk(stmt.body, once | open_, here)
                open_ = open_ | once | again
            else:
                after = open_
                for inner_number, inner in enumerate(bodies(stmt)):
                    after = after | self._walk(inner, open_, (*here, inner_number) if len(bodies(stmt)) > 1 else here)
                open_ = after
        return open_

    def _touched(self, body: tuple[Stmt, ...]) -> Touched:
        read: set[str] = set()
        written: set[str] = set()
        landed: set[str] = set()
        for stmt in statements(body):
            match stmt:
                case Assign():
                    written.add(stmt.buffer)
                    read |= {n.tensor for n in walk(stmt.value) if isinstance(n, Read)}
                case Branch():
                    read |= {n.tensor for n in walk(stmt.condition) if isinstance(n, Read)}
                case IntrinsicCall():
                    read |= {ref.buffer for ref in stmt.operands.values()}
                case TileCopy():
                    (read if stmt.store else written).add(stmt.buffer)
                case WaitCopies(engine=False):
                    landed |= self.copied
                case _:
                    pass
        return Touched(self._common(read), self._common(written), frozenset(landed))

    def _common(self, names: set[str]) -> frozenset[str]:
        """Memory that several workers see."""
        return frozenset(n for n in names if self.kernel.buffers[n].scope not in ("register", "local"))
