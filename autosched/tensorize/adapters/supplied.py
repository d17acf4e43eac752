"""Constants supplied: a number of the term, or a run-time scalar, becomes the element that an operand has to hold.

    C[i] = max(A[i], 0)                     zero[0] = 0
                                            C[i] = max(A[i], zero[0])

So an instruction of two operands computes what the program writes with one tensor and a number. The element is one of
a tensor of its own, which the program fills first of all.
"""

from __future__ import annotations

from collections.abc import Sequence

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Assign, Tensor
from autosched.ir.printer import print_value
from autosched.ir.value import Cast, Literal, Read, Scalar, Value, map_value, walk
from autosched.logic import Const
from autosched.tensorize.adapters.proposal import Adapted, Proposal, adapted, lemma
from autosched.tensorize.adapters.site import Site
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.reduction.update import update_of_intrinsic


def supplied(facts: StageFacts, intrinsic: Intrinsic) -> Sequence[Proposal]:
    """Every number of the stage that an operand of the instruction can hold, one at a time, where the instruction takes
    one element more than the stage reads."""
    facts = facts.as_assignment
    operands, read = update_of_intrinsic(intrinsic).operands, facts.update.operands
    if intrinsic.accumulates or facts.update.target in read or len(operands) != len(read) + 1:
        return []
    types = dict.fromkeys(o.dtype for o in operands)
    numbers = dict.fromkeys(v for v in walk(facts.update.term) if isinstance(v, Literal | Scalar))
    return [_proposal(facts, number, dtype) for number in numbers for dtype in types if _fits(number, dtype)]


def _fits(number: Literal | Scalar, dtype: DType) -> bool:
    """Whether the type holds the number, so that converting it back gives the same."""
    if isinstance(number, Scalar) or not dtype.is_integer or not number.dtype.is_integer:
        return number.dtype == dtype
    return dtype.limits[0] <= number.value <= dtype.limits[1]


def _proposal(facts: StageFacts, number: Literal | Scalar, dtype: DType) -> Proposal:
    def make() -> Adapted:
        site = Site(facts.program, facts.original, facts.update)
        name = site.fresh(f"{facts.original.assign.tensor}_constant")
        site.tensors[name] = Tensor(name, dtype, (Const(1),), intermediate=True)
        own = number if isinstance(number, Scalar) else Literal(number.value, dtype)
        site.first.append(Assign(name, (Const(0),), "=", own))
        element = Read(name, (Const(0),), dtype)
        held: Value = element if dtype == number.dtype else Cast(element, number.dtype)
        assign = facts.original.assign
        value = map_value(assign.value, lambda v: held if v == number else v)
        core = Assign(assign.tensor, assign.index, assign.op, value, assign.location)
        said = f"{name}[0] holds {print_value(number)}, which is a {dtype}"
        after = site.with_assign(core)
        return adapted(facts.program, after, core, (f"supply {print_value(number)}",), [lemma(said, "structure")])

    return Proposal(("supply", number, dtype), make)
