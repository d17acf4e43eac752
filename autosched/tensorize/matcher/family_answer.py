"""One answer for a family: instructions, of any machines, that differ in nothing but how far their spatial axes run.

    wgmma.m64n8k16.f16.f32, wgmma.m64n16k16.f16.f32, …      one proof, and 32 tilings

Every proof speaks of the coordinates of one element and of the sum it takes; how many elements there are beside it only
says how the program's extents are rounded up. So the second member takes the first one's mappings with its own padding.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from autosched.ir.value import FromIndex, walk
from autosched.logic import Var
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Certificate, Mapping, Match, Reason


def kinship(intrinsic: Intrinsic) -> Hashable | None:
    """Equal for instructions that get one answer; None for one that is like no other.

    All that a proof may look at but the extents of spatial axes; each dimension must be indexed by one axis alone, so
    that such an extent says no more than how many elements there are. Which of them are equal still counts: axes of one
    extent may be exchanged.
    """
    if kinship not in intrinsic.cache:
        intrinsic.cache[kinship] = _kinship(intrinsic)
    found: Hashable | None = intrinsic.cache[kinship]
    return found


def _kinship(intrinsic: Intrinsic) -> Hashable | None:
    shape = lane_form(intrinsic)
    if shape is None:
        return None
    return intrinsic.kind, intrinsic.numerics, intrinsic.by_lane, intrinsic.contracts, shape


def lane_form(intrinsic: Intrinsic) -> Hashable | None:
    """What an instruction computes, but for how far its spatial axes run; None where that says more than a number of
    elements."""
    stage = intrinsic.stage
    if intrinsic.governed and not intrinsic.accumulates:
        return None  # the answer may be of another form of it: with what it keeps as an operand
    if any(not isinstance(part, Var) for read in (*stage.reads, stage.target) for part in read.index):
        return None
    if any(isinstance(v, FromIndex) for v in walk(stage.assign.value)):
        return None  # compared with a length, which is another for another extent
    if any(axis.extent == 1 for axis in stage.axes):
        return None  # such a loop is no axis
    free = {axis.name for axis in intrinsic.spatial}
    extents = [axis.extent for axis in intrinsic.spatial]
    return (
        intrinsic.from_zero,
        stage.assign.op,
        replace(stage.assign, location=None),
        tuple((axis.name, None if axis.name in free else axis.extent) for axis in stage.axes),
        tuple(extents.index(n) for n in extents),
        tuple((o.name, o.dtype, o.broadcast, o.distinct, o.bits) for o in intrinsic.operands.values()),
    )


def carried(known: Match, intrinsic: Intrinsic) -> Match:
    """The answer for `intrinsic`, from that for its kin."""
    old, new = known.intrinsic.name, intrinsic.name

    def said(text: str) -> str:
        return text.replace(old, new)

    def reason(found: Reason) -> Reason:
        return replace(found, message=said(found.message), fix=said(found.fix) if found.fix else found.fix)

    renamed: dict[int, Certificate] = {}  # many mappings share one

    def certificate(found: Certificate) -> Certificate:
        if id(found) not in renamed:
            renamed[id(found)] = _certificate(found)
        return renamed[id(found)]

    def _certificate(found: Certificate) -> Certificate:
        proved = tuple(replace(o, statement=said(o.statement)) if old in o.statement else o for o in found.obligations)
        assumed = tuple(said(a) for a in found.assumptions)
        if (proved, assumed) == (found.obligations, found.assumptions):
            return found
        return replace(found, obligations=proved, assumptions=assumed)

    extents = {axis.name: axis.extent for axis in intrinsic.axes}

    def mapping(found: Mapping) -> Mapping:
        padding = {x: (n, -(-n // extents[x]) * extents[x]) for x, (n, _) in found.padding.items()}
        return replace(found, intrinsic=intrinsic, padding=padding, certificate=certificate(found.certificate))

    return replace(
        known,
        intrinsic=intrinsic,
        mappings=tuple(mapping(m) for m in known.mappings),
        reason=None if known.reason is None else reason(known.reason),
        notes=tuple(said(n) for n in known.notes),
        seconds=0.0,
    )
