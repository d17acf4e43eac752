"""What a worker is sent: object files with their entry points, and how to time it. Plain values, standard library only,
because the worker's start must stay short."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

Box = tuple[tuple[int, int], ...]
"""The first element and the count, in each dimension."""


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """A function of an object: `void symbol(ptr, ptr, …, scalars…)`, one pointer a buffer, in order; a scalar is its
    LLVM type and its bytes."""

    symbol: str
    buffers: tuple[str, ...]
    scalars: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class ScratchBuffer:
    """A buffer of the kernel's own. `packed` ones are filled by a `prepare` entry, workspaces by nobody."""

    bytes: int
    packed: bool = False


@dataclass(frozen=True)
class Job:
    """One candidate, built. Buffers that `scratch` does not name are the program's tensors. `violations` are folders
    below the data's whose inputs break what the kernel checks: its answers must be right there too. `scalars` are the
    names of the entry's."""

    objects: tuple[bytes, ...] = field(repr=False)
    main: EntryPoint
    prepare: tuple[EntryPoint, ...] = ()
    scratch: dict[str, ScratchBuffer] = field(default_factory=dict)
    threads: int = 1
    violations: tuple[str, ...] = ()
    scalars: tuple[str, ...] = ()

    def given(self, scalars: Mapping[str, bytes]) -> EntryPoint:
        """The main entry with these values of scalars."""
        own = zip(self.scalars, self.main.scalars, strict=False)
        passed = tuple((kind, scalars.get(name, value)) for name, (kind, value) in own)
        return replace(self.main, scalars=passed) if passed else self.main


@dataclass(frozen=True, slots=True)
class DataSet:
    """A further data set: the folder below the data's that holds it, and run-time scalars' bytes by name."""

    folder: str
    scalars: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowsAlong:
    """Elements of an output whose subscript of the dimension `axis` is in low..high - 1."""

    axis: int
    low: int
    high: int


@dataclass(frozen=True)
class Band:
    """The program's loops as written, as far as these rows of its outputs need them."""

    job: Job
    rows: dict[str, RowsAlong]


@dataclass(frozen=True, slots=True)
class PlainRun:
    """What the loops as written made of a data set: `done` of `bands` ran, in `seconds`. `wrong` says where they differ
    from the interpreter, if they do: nothing is compared with them then; nor are outputs that are `vague`, of which no
    error is known in places."""

    done: int
    bands: int
    seconds: float
    wrong: str = ""
    vague: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """The part of the outputs that is compared with them."""
        return 0.0 if self.wrong or self.vague else self.done / self.bands

    @property
    def whole_s(self) -> float:
        """About how many seconds all bands take."""
        return self.seconds * self.bands / max(1, self.done)


@dataclass(frozen=True, slots=True)
class TensorFile:
    """One of the program's tensors in the data folder: `<name>.in` (its values at entry) where `input`, `<name>.want`
    (float64, or the dtype itself for integers) and `<name>.tol` (float64, absolute, an element) where `output`.
    `dtype` is numpy's name; `bytes` the size of the array."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    input: bool
    output: bool


@dataclass(frozen=True, slots=True)
class Sample:
    """A box of an output that is compared (first, length in each dimension), whose wanted elements and tolerances are
    in `<name>.want` and `<name>.tol` from element `start` on."""

    output: str
    box: Box
    start: int

    @property
    def elements(self) -> int:
        return prod(n for _, n in self.box)


@dataclass(frozen=True)
class Effort:
    """When to stop timing. A sample is a batch of calls that lasts `sample_s` or one call, whichever is longer.

    Sampling ends when the median is known to `tolerance` (relative), after `budget_s`, or after `most` samples; never
    before `fewest`, or five that last as long as so many of `sample_s`. `slower_than_s`: a candidate whose calls all
    take longer is not sampled further. `rough_above_s`: one whose samples all take longer will not win, and a few of
    them say what a model learns from it. `paced`: times are compared with those of trials before and after
    (`device.cpu.drift_correction`).
    """

    fewest: int = 5
    most: int = 25
    sample_s: float = 3e-4
    budget_s: float = 0.1
    tolerance: float = 0.01
    slower_than_s: float | None = None
    rough_above_s: float | None = None
    cold: bool = False
    paced: bool = False

    def slowed(self, by: float) -> Effort:
        """The same on a machine that is slower by this factor."""
        slower, rough = self.slower_than_s, self.rough_above_s
        return replace(self, slower_than_s=slower and by * slower, rough_above_s=rough and by * rough)


@dataclass(frozen=True)
class Outcome:
    """What the worker says: `ok` or `wrong` (the parent adds `crash` and `timeout`)."""

    status: str
    samples_s: tuple[float, ...] = ()
    max_abs_error: float | None = None
    tolerance: float | None = None
    message: str = ""
    costs_s: dict[str, float] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
