"""What a program is made of: tensors, scalars, loops, guards, assignments, assumptions; `Stage`: one assignment with
its axes. Sizes that a program keeps symbolic are variables in shapes and bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from autosched.errors import Location
from autosched.ir.dtypes import DType
from autosched.ir.value import Call, Condition, Index, Literal, Read, Value, is_value, reads, walk
from autosched.ir.variables import index_vars
from autosched.logic import Const, Int


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
    """`assume(low <= subject <= high)`: `subject` is a tensor's elements, a scalar or a size; None is unbounded. Or
    `assume(distinct(subject, n))`: of each n neighbours along a tensor's last dimension no two are equal."""

    subject: str
    low: int | float | None = None
    high: int | float | None = None
    multiple: int | None = None
    distinct: int | None = None
    location: Location | None = field(default=None, compare=False)

    @property
    def of_range(self) -> bool:
        """Whether it says between which ends the subject is."""
        return self.multiple is None and self.distinct is None


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
    def seldom(self) -> bool:
        """Whether data decide that it runs at all: how often is not known, and costs nothing here."""
        return any(is_value(g) for g in self.guards)

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


def _known(size: Int) -> int:
    if not isinstance(size, Const):
        raise ValueError(f"the size {size} is symbolic")
    return size.value


def is_zero(value: Value | None) -> bool:
    """Whether an initial value is the literal zero."""
    return isinstance(value, Literal) and value.value == 0
