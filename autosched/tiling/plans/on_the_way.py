"""Operands computed on the way: an intermediate that one stage fills and a nest reads is never stored.

    F[p, j] = (f32(W[p, j]) - Z[p // 32, j]) * S[p // 32, j]
    Y[i, j] += X[i, p] * F[p, j]                              F's element is computed where the nest takes it

What was proved of the nest (axes, addresses, the body of a step) was proved of F and holds as it is: its element is a
value, whichever way it comes about.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from autosched.ir.nodes import Stage, Statement
from autosched.ir.prepared import assigns
from autosched.ir.program import Program
from autosched.ir.value import Read, Value, map_value, reads
from autosched.logic import Const, Int, Var
from autosched.logic.walk import substitute_bool, substitute_int
from autosched.tiling.plans.integer_differences import integer_differences

LOAD, PACKING, BLOCK = "load", "packing", "block"
"""Places: where registers are loaded; where a panel is filled; in a block of a GPU, where its row of the space says: as
fragments are loaded, or as slices in shared memory are filled."""
_WORDS = {LOAD: "in the load", PACKING: "in packing", BLOCK: "on the way"}


@dataclass(frozen=True)
class OnTheWay:
    """An operand's element as a value over the axes of the stage that takes it. `tensor`, which `stage` would fill, is
    the intermediate it stands for."""

    tensor: str
    stage: str
    value: Value
    place: str

    @cached_property
    def sources(self) -> tuple[Read, ...]:
        """The elements that it is computed from, each once; those that address others (a gather) too."""
        return tuple(dict.fromkeys(reads(self.value)))

    @property
    def title(self) -> str:
        return f"{self.tensor} {_WORDS[self.place]}"


def computed_on_the_way(program: Program, stage: Stage, read: Read, place: str) -> OnTheWay | None:
    """The element of an intermediate as a value at the stage's own axes, where computing it there is the same: one
    stage fills all of the tensor, each element once, this stage alone reads it, as one operand, and nothing that it is
    computed from is written any more from there on."""
    tensor, index = read.tensor, [i for i in read.index if isinstance(i, Int)]
    makers = [s for s in program.stages if s.assign.tensor == tensor]
    takers = [s.name for s in program.stages if tensor in {r.tensor for r in (*s.reads, *_started_from(s))}]
    once = len({r for r in stage.reads if r.tensor == tensor}) == 1
    once = once and tensor not in {r.tensor for r in _started_from(stage)}
    if not program.tensors[tensor].intermediate or len(makers) != 1 or takers != [stage.name] or not once:
        return None
    (maker,) = makers
    names = _filled(program, maker)
    if names is None or len(index) != len(read.index):
        return None
    written = [{a.tensor for a in assigns(stmt)} for stmt in program.body]
    (top,) = (k for k, tensors in enumerate(written) if tensor in tensors)
    sources = {r.tensor for r in reads(maker.assign.value)}
    read_in = [k for k, stmt in enumerate(program.body) if tensor in _read_by(stmt)]
    if not read_in:  # what a condition asks is no operand
        return None
    if written[top] != {tensor} or any(sources & tensors for tensors in written[top:]) or min(read_in) <= top:
        return None
    at = dict(zip(names, index, strict=True))
    value = map_value(
        maker.assign.value, on_int=lambda e: substitute_int(e, at), on_bool=lambda b: substitute_bool(b, at)
    )
    return OnTheWay(tensor, maker.name, integer_differences(value), place)


def _read_by(stmt: Statement) -> set[str]:
    return {r.tensor for a in assigns(stmt) for r in reads(a.value)}


def _started_from(stage: Stage) -> tuple[Read, ...]:
    return () if stage.init is None else reads(stage.init)


def _filled(program: Program, maker: Stage) -> list[str] | None:
    """The maker's axis along each dimension of its tensor, all of which it fills; None where it does something else."""
    extents = program.tensors[maker.assign.tensor].shape
    plain = maker.assign.op == "=" and maker.init is None and not maker.guards and not maker.reduction
    names = [i.name for i in maker.assign.index if isinstance(i, Var)]
    bounds = {a.name: (a.lower, a.upper) for a in maker.axes}
    if not plain or len(names) != len(extents) or len({*names}) != len(names) or {*names} != set(bounds):
        return None
    whole = all(bounds[n] == (Const(0), e) and isinstance(e, Const) for n, e in zip(names, extents, strict=True))
    return names if whole else None
