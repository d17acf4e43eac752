"""Widening: an element of a narrower type is staged in the instruction's, which holds every value of it.

    f32(A[i]) = f32(f16(A[i]))              A: e4m3; every e4m3 is an f16
    abs(s16(A[i]) - s16(B[i]))              A, B: u4, staged as u8

A conversion depends on the number alone, so wherever the program converts the element, the staged one converts to the
same. It says nothing of the rest of the term, and so serves bodies of every kind, integers and floats alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from autosched.ir.dtypes import DType
from autosched.ir.value import Cast, Read, Value, is_value, map_value, walk
from autosched.tensorize.adapters.proof import prove_conversion
from autosched.tensorize.adapters.proposal import Adapted, Proposal, adapted, lemma
from autosched.tensorize.adapters.site import Site
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.body.equal import holds
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.reduction.update import operand_reads


def widened(facts: StageFacts, intrinsic: Intrinsic) -> Sequence[Proposal]:
    """Every way to give the tensors of the term types of the instruction's operands that hold theirs, those that change
    the fewest tensors."""
    update = facts.update
    wanted = list(dict.fromkeys(o.dtype for o in intrinsic.inputs))
    tensors = {r.tensor: r.dtype for r in update.operands}
    if intrinsic.accumulator.dtype != update.target.dtype or not 0 < len(tensors) <= len(intrinsic.inputs):
        return []
    choices = [[d for d in wanted if holds(t, d)] for t in tensors.values()]
    found = []
    for types in product(*choices):
        chosen = {n: d for (n, t), d in zip(tensors.items(), types, strict=True) if t != d}
        covered = len(tensors) < len(wanted) or {*types} == {*wanted}
        if chosen and covered and all(_only_converted(update.term, n) for n in chosen):
            found.append(chosen)
    least = min((len(c) for c in found), default=0)
    return [_proposal(facts, c) for c in found if len(c) == least]


def _only_converted(term: Value, tensor: str) -> bool:
    """Whether every use of the tensor's elements is a conversion, and none is an address or addressed by data."""
    nodes = list(walk(term))
    converted = [v.operand for v in nodes if isinstance(v, Cast)]
    reads = [v for v in nodes if isinstance(v, Read) and v.tensor == tensor]
    operands = {r for r in operand_reads(term) if not any(is_value(i) for i in r.index)}
    return all(r in operands for r in reads) and len(reads) == sum(r in reads for r in converted)


def _proposal(facts: StageFacts, chosen: dict[str, DType]) -> Proposal:
    def make() -> Adapted:
        site = Site(facts.program, facts.original, facts.update)
        lemmas = []
        for read in dict.fromkeys(r for r in facts.update.operands if r.tensor in chosen):
            dtype = chosen[read.tensor]
            how = prove_conversion(Cast(read, dtype), read)
            text = f"{dtype}({show_leaf(read)}) is {show_leaf(read)}: every {read.dtype} is a {dtype}"
            lemmas.append(lemma(text, how))

        def staged(value: Value) -> Value:
            match value:
                case Cast(Read(tensor) as read, dtype, saturate) if tensor in chosen:
                    into = chosen[tensor]
                    held = site.converted(read, into, lambda r: Cast(r, into), f"{tensor}_{into}")
                    return held if into == dtype else Cast(held, dtype, saturate)
            return value

        core = facts.original.assign
        core = type(core)(core.tensor, core.index, core.op, map_value(core.value, staged), core.location)
        names = tuple(f"widen {n} to {d}" for n, d in chosen.items())
        return adapted(facts.program, site.with_assign(core), core, names, lemmas)

    return Proposal(("widen", tuple(chosen.items())), make)
