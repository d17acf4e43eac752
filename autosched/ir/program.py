"""`Program`: parameters, sizes and a tree of loops, guards and assignments; `Stage`: one assignment with its axes.

A program is a frozen value with its sizes and dtypes filled in. Sizes kept symbolic (`-D m=1..4096`) stay variables,
with their range in `symbolic`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from autosched.errors import Location
from autosched.ir.dtypes import DType
from autosched.ir.value import Call, Condition, Index, Literal, Read, Value, is_value, reads, walk
from autosched.ir.variables import index_vars
from autosched.logic import Const, Int

if TYPE_CHECKING:
    from autosched.ir.data import KnownData


@dataclass(frozen=True, slots=True)
class Tensor:
    """An array parameter or intermediate. `shape` is in elements; `const` marks data known before the run."""

    name: str
    dtype: DType
    shape: tuple[Int, ...]
    const: bool = False
    intermediate: bool = False

    @property
    def extents(self) -> tuple[int, ...]:
        """The shape as ints; only where no size is symbolic."""
        return tuple(_known(s) for s in self.shape)


@dataclass(frozen=True, slots=True)
class ScalarParam:
    """A run-time scalar parameter."""

    name: str
    dtype: DType


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop: `lower <= name < upper`, bounds affine in sizes and outer axes. Names are unique in a program."""

    name: str
    lower: Int
    upper: Int

    @property
    def extent(self) -> int:
        """The trip count, where the bounds are constants."""
        return max(0, _known(self.upper) - _known(self.lower))


@dataclass(frozen=True, slots=True)
class Loop:
    axis: Axis
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Guard:
    """`if condition:` without an else."""

    condition: Condition
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Assign:
    """`tensor[index] op value`; `op` is one of `= += -= *= min= max=` (`C[i] = max(C[i], e)` is `max=`)."""

    tensor: str
    index: tuple[Index, ...]
    op: str
    value: Value
    location: Location | None = field(default=None, compare=False)


Statement: TypeAlias = Loop | Guard | Assign


@dataclass(frozen=True, slots=True)
class Assume:
    """`assume(low <= subject <= high)`: `subject` is a tensor's elements, a scalar or a size; None is unbounded."""

    subject: str
    low: int | float | None = None
    high: int | float | None = None
    multiple: int | None = None
    location: Location | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Stage:
    """One assignment with its axes, outermost first.

    A reduction whose target is initialised by a plain assignment to the same element just before its reduction loops
    is one stage: the initial value is `init`, and that assignment is no stage of its own. `name` is the written
    tensor's, with `.2`, `.3` … for later stages that write the same one.
    """

    name: str
    axes: tuple[Axis, ...]
    guards: tuple[Condition, ...]
    assign: Assign
    init: Value | None = None

    @cached_property
    def spatial(self) -> tuple[Axis, ...]:
        """Axes that occur in the written element's address."""
        used = index_vars(self.assign.index)
        return tuple(a for a in self.axes if a.name in used)

    @cached_property
    def reduction(self) -> tuple[Axis, ...]:
        """Axes that do not."""
        names = {a.name for a in self.spatial}
        return tuple(a for a in self.axes if a.name not in names)

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """Every tensor read of the value, its subscripts and its guards."""
        found = list(reads(self.assign.value))
        for g in (*self.guards, *self.assign.index):
            if is_value(g):
                found += reads(g)
        return tuple(found)

    @property
    def calls(self) -> bool:
        """Whether it calls a function (`exp`, …) anywhere."""
        start = () if self.init is None else (self.init,)
        roots = (self.assign.value, *start, *(v for v in (*self.guards, *self.assign.index) if is_value(v)))
        return any(isinstance(v, Call) for root in roots for v in walk(root))

    @property
    def target(self) -> Read:
        """The written element as a read of it (dtype of the value)."""
        return Read(self.assign.tensor, self.assign.index, self.assign.value.dtype)


@dataclass(frozen=True)
class Program:
    """See the module's docstring. `sizes` and `dtypes` hold what `-D` set or defaulted; `parameters` keeps the
    signature's order of tensors and scalars; `tensors` also holds the intermediates; `data` is what is known of
    the values of const tensors (`ir.data`)."""

    name: str
    doc: str
    tensors: dict[str, Tensor]
    scalars: dict[str, ScalarParam]
    parameters: tuple[str, ...]
    sizes: dict[str, int]
    dtypes: dict[str, str]
    body: tuple[Statement, ...]
    assumptions: tuple[Assume, ...] = ()
    symbolic: dict[str, tuple[int, int]] = field(default_factory=dict)
    data: dict[str, KnownData] = field(default_factory=dict)
    source: str = field(default="", compare=False)

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """All stages in textual order."""
        from autosched.ir.stages import stages_of

        return stages_of(self)

    @cached_property
    def written(self) -> frozenset[str]:
        return frozenset(s.assign.tensor for s in self.stages)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Parameters that are written, in order (inout ones included)."""
        return tuple(p for p in self.parameters if p in self.written)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Tensor parameters whose values at entry matter, in order: read-only ones and inout ones."""
        from autosched.ir.stages import live_in

        live = live_in(self)
        return tuple(p for p in self.parameters if p in live)

    @cached_property
    def inouts(self) -> tuple[str, ...]:
        return tuple(p for p in self.inputs if p in self.written)

    @cached_property
    def prepared(self) -> tuple[str, ...]:
        """Intermediates that are computed once, before the run, in order (see `ir.prepared`)."""
        from autosched.ir.prepared import prepared_tensors

        return prepared_tensors(self)

    @cached_property
    def prepared_data(self) -> dict[str, KnownData]:
        """What `data` says of the tensors that are prepared from it."""
        from autosched.ir.data import prepared_data

        return prepared_data(self)

    def known(self, tensor: str) -> bool:
        """Whether a tensor's values are known before the run."""
        return self.tensors[tensor].const or tensor in self.prepared

    def stage(self, name: str) -> Stage:
        """The stage called `name` (KeyError where there is none)."""
        return {s.name: s for s in self.stages}[name]

    def __str__(self) -> str:
        from autosched.ir.printer import print_program

        return print_program(self)


def _known(size: Int) -> int:
    if not isinstance(size, Const):
        raise ValueError(f"the size {size} is symbolic")
    return size.value


def is_zero(value: Value | None) -> bool:
    """Whether an initial value is the literal zero."""
    return isinstance(value, Literal) and value.value == 0
