"""Programs with operands transposed: where an instruction needs contiguous elements along an axis, and the tensor is
contiguous along another one (the weights of a convolution, for instructions of bytes)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from autosched.ir.program import Program
from autosched.ir.value import Read
from autosched.logic import Int, affine
from autosched.tensorize import match_types
from autosched.tensorize.adapters.transposed import transposed
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Match
from autosched.tensorize.matcher.match import match
from autosched.tiling.variants.adapted import Variant

LDMATRIX_BITS = 16


def transposed_programs(program: Program, matches: Sequence[Match], numerics: str) -> Iterator[Variant]:
    """A variant for each stage with an instruction that needs rows along another axis than a tensor's."""
    by_stage: dict[str, list[match_types.Mapping]] = {}
    for found in matches:
        plain = [m for m in found.mappings if not m.adapters and not m.conditions]
        by_stage.setdefault(found.stage, []).extend(m for m in plain if _contiguous_operands(m.intrinsic))
    for name, mappings in by_stage.items():
        best = min(mappings, key=_padding_key, default=None)
        last = {} if best is None else _transposed_reads(best)
        made = transposed(StageFacts(program, program.stage(name)), last) if last else None
        if made is None:
            continue
        intrinsics = {m.intrinsic.name: m.intrinsic for m in mappings}
        again = tuple(match(made.rewrite.after, list(intrinsics.values()), numerics, [made.stage.name]))
        mapping = next((m for answer in again for m in answer.mappings if not m.adapters), None)
        if mapping is not None:
            how = mapping.adapted(made.names, made.obligations)
            yield Variant(made.rewrite.after, again, made.names, {made.stage.name: how})


def _contiguous_operands(intrinsic: Intrinsic) -> dict[str, str]:
    """Operands that must be contiguous along an axis of the instruction, with that axis, and that no load transposes:
    those that it reads from shared memory, and those too narrow for `ldmatrix`, which transposes 16 bits."""
    kept = intrinsic.shared_memory
    narrow = {o.name for o in intrinsic.inputs if o.dtype.bits < LDMATRIX_BITS}
    return {o: axis for o, axis in intrinsic.contiguous.items() if o in kept or o in narrow}


def _padding_key(mapping: match_types.Mapping) -> tuple[float, int]:
    """A sort key: points that the instruction computes for each of the program's; then the longest depth first."""
    padding = 1.0
    for extent, whole in mapping.padding.values():
        padding *= whole / extent
    along = set(mapping.intrinsic.contiguous.values())
    return padding, -prod(extent for x, (extent, _) in mapping.padding.items() if x in along)


def _transposed_reads(mapping: match_types.Mapping) -> dict[Read, int]:
    """Operands whose tensors are not contiguous along the axis that the instruction needs, each with the dimension that
    is that axis."""
    found: dict[Read, int] = {}
    for operand, axis in _contiguous_operands(mapping.intrinsic).items():
        read = mapping.operands[operand]
        inner = mapping.axes.get(axis, ())[-1:]
        forms = [affine(i) if isinstance(i, Int) else None for i in read.index]
        steps = [0 if f is None or not inner else f.coefficient(inner[0]) for f in forms]
        if 1 in steps and not steps[-1]:
            found[read] = steps.index(1)
    return found
