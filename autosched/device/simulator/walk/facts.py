"""What a kernel's statement does, as flat facts: accesses, calls, arithmetic, and the loops around them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from autosched.codegen.analysis.access import LaneAccess as Pattern
from autosched.codegen.tree.kernel import Lane
from autosched.logic import Int
from autosched.tensorize.intrinsic import Intrinsic


@dataclass(frozen=True)
class Level:
    """One loop around a statement; `number` tells it from all others, `runs` is how often its body runs in all, `value`
    is where it stands when the statement runs most."""

    number: int
    var: str
    kind: str
    lower: Int
    upper: Int
    step: int
    trips: float
    runs: float
    value: int
    barrier: bool = False
    """Whether a block's workers meet before they come here."""

    def standing(self, value: int) -> Level:
        return self if value == self.value else replace(self, value=value)


@dataclass(frozen=True)
class Touch:
    """One memory access: `runs` executions of its lanes; `path` are its loops, outermost first; `bytes` an element.
    `place` is the same number for the same elements of the same buffer, `order` tells what comes first in the text."""

    place: int
    buffer: str
    scope: str
    bytes: float
    index: tuple[Int, ...]
    lane: Lane | None
    pattern: Pattern
    write: bool
    path: tuple[Level, ...]
    runs: float
    order: int
    engine: bool = False
    """Whether a box of TMA makes it."""
    single: bool = False
    """Whether threads take its elements one by one: operands of arithmetic in registers, which no copy brings there."""
    rows: int = 0
    """Of the matrix that it moves as a whole; 0 where it moves a vector."""


@dataclass(frozen=True)
class Fetch:
    """`runs` boxes of TMA, each of `rows` rows of so many bytes, for so many `blocks` of a cluster."""

    rows: int
    row_bytes: float
    blocks: int
    store: bool
    path: tuple[Level, ...]
    runs: float
    order: int


@dataclass(frozen=True)
class Stop:
    """`runs` waits of a worker for calls that it made before (`calls`), or for a barrier in memory."""

    calls: bool
    path: tuple[Level, ...]
    runs: float
    order: int


@dataclass(frozen=True)
class Issue:
    """`runs` executions of an intrinsic; `accumulators` independent ones take turns within its unrolled loops. `into`
    is the accumulators' buffer."""

    intrinsic: Intrinsic
    path: tuple[Level, ...]
    runs: float
    accumulators: float
    order: int
    into: str
    slots: int = 1
    """Sets of accumulators that outer loops take turns at."""
    shared: float = 0.0
    """Bytes that one execution reads from shared memory itself, by descriptors."""


@dataclass(frozen=True)
class Work:
    """Plain arithmetic: `runs` executions of `width` lanes of `operations` operations, `calls` of them library calls.
    `chained`: the result goes back into what it was computed from."""

    operations: int
    calls: int
    width: int
    path: tuple[Level, ...]
    runs: float
    chained: bool
    order: int
    into: str = ""
    """The buffer that the result goes to."""
    kinds: tuple[tuple[str, str, int], ...] = ()
    """The operations of one lane, by function (empty: plain arithmetic) and type."""


@dataclass(frozen=True)
class Facts:
    """Everything about one top-level statement of a kernel."""

    touches: tuple[Touch, ...]
    issues: tuple[Issue, ...]
    works: tuple[Work, ...]
    statements: float
    buffers: frozenset[str]
    owned: frozenset[str] = frozenset()
    """Register buffers whose first index is a worker of a GPU's block: each worker has its own part."""
    fetches: tuple[Fetch, ...] = ()
    stops: tuple[Stop, ...] = ()
    apart: frozenset[int] = frozenset()
    """Numbers of loops of workers that only fetch, beside those who compute."""

    @cached_property
    def levels(self) -> dict[int, Level]:
        """Every loop around an access or an issue, by its number."""
        paths = [t.path for t in self.touches] + [i.path for i in self.issues]
        return {level.number: level for path in paths for level in path}
