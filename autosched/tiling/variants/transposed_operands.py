"""Programs with operands transposed: where an instruction takes elements that lie side by side along its own axis, and
a tensor runs along another one (the weights of a convolution, for instructions of bytes)."""

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

TRANSPOSED_BITS = 16


def transposed_programs(program: Program, matches: Sequence[Match], numerics: str) -> Iterator[Variant]:
    """A variant for each stage of which an instruction asks for rows along another axis than a tensor's."""
    by_stage: dict[str, list[match_types.Mapping]] = {}
    for found in matches:
        plain = [m for m in found.mappings if not m.adapters and not m.conditions]
        by_stage.setdefault(found.stage, []).extend(m for m in plain if _asked(m.intrinsic))
    for name, mappings in by_stage.items():
        best = min(mappings, key=_spare, default=None)
        last = {} if best is None else _lying_across(best)
        made = transposed(StageFacts(program, program.stage(name)), last) if last else None
        if made is None:
            continue
        once = {m.intrinsic.name: m.intrinsic for m in mappings}
        again = tuple(match(made.rewrite.after, list(once.values()), numerics, [made.stage.name]))
        mapping = next((m for answer in again for m in answer.mappings if not m.adapters), None)
        if mapping is not None:
            how = mapping.adapted(made.names, made.obligations)
            yield Variant(made.rewrite.after, again, made.names, {made.stage.name: how})


def _asked(intrinsic: Intrinsic) -> dict[str, str]:
    """Operands that lie along an axis of the instruction and that nothing turns on their way: those that it reads from
    shared memory, and those whose elements are too narrow for `ldmatrix`, which turns 16 bits."""
    kept = intrinsic.shared_memory
    narrow = {o.name for o in intrinsic.inputs if o.dtype.bits < TRANSPOSED_BITS}
    return {o: axis for o, axis in intrinsic.contiguous.items() if o in kept or o in narrow}


def _spare(mapping: match_types.Mapping) -> tuple[float, int]:
    """How many points the instruction computes for each of the program's, fewest first; then the longest depth."""
    padding = 1.0
    for extent, whole in mapping.padding.values():
        padding *= whole / extent
    along = set(mapping.intrinsic.contiguous.values())
    return padding, -prod(extent for x, (extent, _) in mapping.padding.items() if x in along)


def _lying_across(mapping: match_types.Mapping) -> dict[Read, int]:
    """Operands whose tensors do not run along the axis that the instruction asks for, each with the dimension that
    does."""
    found: dict[Read, int] = {}
    for operand, axis in _asked(mapping.intrinsic).items():
        read = mapping.operands[operand]
        inner = mapping.axes.get(axis, ())[-1:]
        forms = [affine(i) if isinstance(i, Int) else None for i in read.index]
        steps = [0 if f is None or not inner else f.coefficient(inner[0]) for f in forms]
        if 1 in steps and not steps[-1]:
            found[read] = steps.index(1)
    return found
