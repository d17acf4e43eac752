"""Products that run on a GPU's CUDA cores because one factor is wider than the other: what would put them on tensor
cores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Tensor
from autosched.ir.program import Program
from autosched.ir.value import Cast, Read
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tiling.plans.plan import Plan, TensorPart
from autosched.tiling.steps.gpu.bodies.tile_loops import parts_inside


def wide_factor_lines(plan: Plan, known: Iterable[Intrinsic]) -> list[str]:
    """A line for each product of a narrow float and of a wider one that the program computes, where one of the `known`
    instructions multiplies two of the narrow type."""
    multiplied = {i.inputs[0].dtype for i in known if i.scope in ("warp", "warpgroup") and _of_one_type(i)}
    return list(dict.fromkeys(_lines(plan, multiplied)))


def _of_one_type(intrinsic: Intrinsic) -> bool:
    return len(intrinsic.inputs) == 2 and len({o.dtype for o in intrinsic.inputs}) == 1


def _lines(plan: Plan, multiplied: set[DType]) -> Iterator[str]:
    for part in parts_inside(plan):
        if not isinstance(part, TensorPart) or part.nest.intrinsic.scope != "thread":
            continue
        mapping = part.nest.mapping
        factors = [_source(mapping.operands[o.name].tensor, mapping.program) for o in part.nest.intrinsic.inputs]
        for narrow in (t for t in factors if t.dtype.is_float and t.dtype in multiplied):
            for wide in (t for t in factors if t.intermediate and t.dtype.bits > narrow.dtype.bits):
                kind = narrow.dtype.name
                yield (
                    f"{mapping.stage.name} is computed on CUDA cores: {narrow.name} is {kind}, and {wide.name} stays "
                    f"{wide.dtype.name}; tensor cores take both where the program rounds it to {kind}"
                )


def _source(name: str, program: Program) -> Tensor:
    """A tensor, or the one whose elements it holds in a wider type."""
    writers = [s.assign for s in program.stages if s.assign.tensor == name]
    match [w.value for w in writers]:
        case [Cast(Read(narrower))] if writers[0].op == "=":
            return program.tensors[narrower]
    return program.tensors[name]
