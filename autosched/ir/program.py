"""`Program`: parameters, sizes and a tree of loops, guards and assignments.

A program is a frozen value with its sizes and dtypes filled in. Sizes kept symbolic (`-D m=1..4096`) stay variables,
with their range in `symbolic`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy.typing as npt

from autosched.ir.nodes import Assume, ScalarParam, Stage, Statement, Tensor
from autosched.ir.prepared import prepared_tensors
from autosched.ir.printer import print_assume, print_block, print_docstring, print_parameter
from autosched.ir.stages import live_in, stages_of


@dataclass(frozen=True)
class KnownData:
    """What is known of one tensor's elements. `low`, `high`: least and greatest of an integer tensor; `values` are None
    where a stored study knows them by hash only. `holds`: sentences about the values, and whether they are true."""

    sha256: str
    low: int | None
    high: int | None
    values: npt.NDArray[Any] | None = field(default=None, compare=False, repr=False)
    holds: dict[str, bool] = field(default_factory=dict, compare=False)

    @property
    def text(self) -> str:
        """The hash as messages and keys show it: 16 hexadecimal digits."""
        return self.sha256[:16]


@dataclass(frozen=True)
class Program:
    """See the module's docstring. `sizes` and `dtypes` hold what `-D` set or defaulted; `parameters` keeps the
    signature's order of tensors and scalars; `tensors` also holds the intermediates; `data` is what is known of
    the values of const tensors (`ir.data`).

    Of the body of loops, `partial_sums` are intermediates whose elements others around it add up, and `names_around`
    are names that its own axes may not have: those of the loops."""

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
    partial_sums: frozenset[str] = frozenset()
    names_around: frozenset[str] = frozenset()
    source: str = field(default="", compare=False)

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """All stages in textual order."""
        return stages_of(self.body)

    @cached_property
    def written(self) -> frozenset[str]:
        return frozenset(s.assign.tensor for s in self.stages)

    @cached_property
    def lasting_assumptions(self) -> tuple[Assume, ...]:
        """The assumptions about what the program only reads. One about a tensor that it writes holds of what is passed,
        not of what is read later."""
        return tuple(a for a in self.assumptions if a.subject not in self.written)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Parameters that are written, in order (inout ones included)."""
        return tuple(p for p in self.parameters if p in self.written)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Tensor parameters whose values at entry matter, in order: read-only ones and inout ones."""
        tensors = {p: self.tensors[p] for p in self.parameters if p in self.tensors}
        live = live_in(self.body, tensors, self.symbolic)
        return tuple(p for p in tensors if p in live)

    @cached_property
    def inouts(self) -> tuple[str, ...]:
        return tuple(p for p in self.inputs if p in self.written)

    @property
    def constants(self) -> tuple[str, ...]:
        """`const` parameters, in order."""
        return tuple(p for p in self.parameters if p in self.tensors and self.tensors[p].const)

    @cached_property
    def prepared(self) -> tuple[str, ...]:
        """Intermediates that are computed once, before the run, in order (see `ir.prepared`)."""
        return prepared_tensors(self.body, self.tensors)

    @cached_property
    def cache(self) -> dict[str, Any]:
        """Where an analysis keeps its answer with the program (`ir.data.prepared_data`)."""
        return {}

    def known(self, tensor: str) -> bool:
        """Whether a tensor's values are known before the run."""
        return self.tensors[tensor].const or tensor in self.prepared

    def stage(self, name: str) -> Stage:
        """The stage called `name` (KeyError where there is none)."""
        return {s.name: s for s in self.stages}[name]

    @property
    def signature(self) -> str:
        """The program in a line: `gemm(A: f32[64, 64], B: f32[64, 64], C: f32[64, 64])`."""
        return f"{self.name}({', '.join(self._parameter_texts)})"

    @property
    def _parameter_texts(self) -> list[str]:
        return [print_parameter(self.scalars.get(n) or self.tensors[n]) for n in self.parameters]

    def __str__(self) -> str:
        """The program as text of the language, ending in a newline: `parse(str(p)) == p`. Known sizes are written as
        numbers; a symbolic size keeps its range as its default."""
        keywords = [f"{n}={v}" for n, v in self.sizes.items()]
        keywords += [f'{n}="{low}..{high}"' for n, (low, high) in self.symbolic.items()]
        keywords += [f'{n}="{t}"' for n, t in self.dtypes.items()]
        head = ", ".join(self._parameter_texts + (["*", *keywords] if keywords else []))
        body = print_docstring(self.doc)
        body += [print_parameter(t) for t in self.tensors.values() if t.intermediate]
        body += [print_assume(a) for a in self.assumptions]
        lines = [f"def {self.name}({head}):", *(f"    {line}" for line in body), *print_block(self.body)]
        return "\n".join(lines) + "\n"
