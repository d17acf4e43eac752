"""`numerics:` of an intrinsic as `Numerics` values, with errors at the keys that make no sense together."""

from __future__ import annotations

import math
from math import prod

from autosched.ir.program import Program
from autosched.ir.value import reads
from autosched.logic import evaluate
from autosched.tensorize.numerics.contract import Numerics
from autosched.tensorize.numerics.scaled import bits_below
from autosched.tensorize.spec.expression import parse_expression
from autosched.tensorize.spec.keys.models import ContractKeys, NumericsKeys
from autosched.tensorize.spec.source import DocumentSource

_PLACE = ("numerics",)
MOST_RELATIVE = 0.125
"""An instruction that is further off says nothing."""


def contract(
    keys: ContractKeys, program: Program, source: DocumentSource, place: tuple[str | int, ...] = _PLACE
) -> Numerics:
    """The contract, with the default of the accumulator's type; SpecError where it makes no sense for it."""
    stage = program.stages[0]
    accumulator = program.tensors[stage.assign.tensor].dtype
    if accumulator.is_float and accumulator.finite and stage.assign.op in ("+=", "-=", "*="):
        hint = "add up in f16 or f32, and convert the result"
        text = f"numerics: an accumulator of {accumulator} saturates in the middle of a sum"
        raise source.error(text, *place, hint=hint)
    accumulate = keys.accumulate or ("sequential" if accumulator.is_float else "exact")
    if accumulator.is_float and accumulate == "exact":
        hint = "sequential or unordered: a float accumulation rounds"
        raise source.error(f"numerics: exact with an accumulator of {accumulator}", *place, "accumulate", hint=hint)
    if not accumulator.is_float and (said := keys.model_fields_set - {"accumulate", "when"}):
        raise source.error(
            f"numerics: {min(said)} is for floats, the accumulator is {accumulator}", *place, min(said), key=True
        )
    if not accumulator.is_float and accumulate != "exact":
        raise source.error(f"numerics: an accumulator of {accumulator} is exact", *place, "accumulate")
    way = keys.sum or ("chain" if keys.fraction_bits is None else "aligned")
    if fault := _fault(keys, way):
        raise source.error(f"numerics: {fault[1]}", *place, fault[0], key=True)
    own = way != "chain" or keys.start == "zero" or keys.sum_as is not None
    if own and (stage.assign.op != "+=" or any(r.tensor == stage.assign.tensor for r in reads(stage.assign.value))):
        hint = f"write {stage.assign.tensor}[…] += x * y"
        raise source.error(f"numerics: {way} sums need a semantics that adds terms", *place, "sum", hint=hint)
    if accumulator.name == "f64" and (keys.rounding != "rne" or way == "aligned" or keys.result_bits is not None):
        raise source.error("numerics: sums in f64 are rounded to nearest even, term by term", *place, "rounding")
    return Numerics(
        accumulate=accumulate,
        fraction_bits=keys.fraction_bits,
        terms=keys.terms,
        rounding=keys.rounding,
        subnormals=keys.subnormals,
        fused=keys.fused,
        sum=way,
        start=keys.start,
        result_bits=keys.result_bits,
        sum_bits=keys.sum_bits,
        accumulator_bits=keys.accumulator_bits,
        operands_as=keys.operands_as,
        sum_as=keys.sum_as,
        parts=keys.parts,
        accumulator_reach=keys.accumulator_reach,
        group=keys.group or 1,
        below=_below(keys, program, source, place),
        order=_order(keys, program, source, place),
        relative=_bound(keys, "relative", program, source, place),
        absolute=_bound(keys, "absolute", program, source, place),
    )


def _below(keys: ContractKeys, program: Program, source: DocumentSource, place: tuple[str | int, ...]) -> int:
    """`Numerics.below` of a contract with groups; SpecError where the semantics has none of that size."""
    if keys.group is None:
        return 0
    found = None if keys.terms is not None and keys.terms % keys.group else bits_below(program.stages[0], keys.group)
    if found is None:
        said = f"numerics: group: no {keys.group} neighbouring products share a factor"
        hint = "it is the number of products that have one scale, and divides `terms`"
        raise source.error(said, *place, "group", key=True, hint=hint)
    return found


def _bound(
    keys: ContractKeys, key: str, program: Program, source: DocumentSource, place: tuple[str | int, ...]
) -> float | None:
    """The stated bound, as a share of each element or a number; SpecError where sums would need one of their own, and
    for a share that is less than the type's own rounding."""
    given: float | str | None = getattr(keys, key)
    if given is None:
        return None
    stage = program.stages[0]
    dtype = program.tensors[stage.assign.tensor].dtype
    if stage.assign.op != "=" or any(r.tensor == stage.assign.tensor for r in reads(stage.assign.value)):
        said, hint = f"numerics: {key}: only an instruction that overwrites its target has one", "bound sums by `sum`"
        raise source.error(said, *place, key, key=True, hint=hint)
    share = _share(given)
    if not dtype.is_float:
        raise source.error(f"numerics: {key}: {dtype} has no roundings", *place, key, key=True, hint="leave it out")
    least = dtype.unit_roundoff if key == "relative" else 0.0
    if not least < share <= MOST_RELATIVE and key == "absolute":
        raise source.error(f"numerics: absolute: {share:g} is not between 0 and 1/8", *place, key)
    if not least < share <= MOST_RELATIVE:
        said = f"numerics: relative: {share:g} is not between the rounding of {dtype} ({dtype.unit_roundoff:g}) and 1/8"
        raise source.error(said, *place, "relative", hint="leave it out where results are rounded to nearest")
    return share


def _share(given: float | str) -> float:
    if not isinstance(given, str):
        return given
    factor, _, power = given.rpartition("*")
    return float(factor or 1) * math.pow(2.0, float(power.strip().removeprefix("2^")))


def target_contracts(
    keys: NumericsKeys, program: Program, source: DocumentSource
) -> tuple[tuple[frozenset[str], Numerics], ...]:
    """The contracts of targets with certain features, in order."""
    return tuple(
        (frozenset(given.when), contract(given, program, source, (*_PLACE, "targets", number)))
        for number, given in enumerate(keys.targets)
    )


def _order(
    keys: ContractKeys, program: Program, source: DocumentSource, place: tuple[str | int, ...]
) -> tuple[int, ...]:
    """The places of the products in the semantics' loops, in the order in which they are taken; () for that order."""
    if keys.order is None:
        return ()
    stage = program.stages[0]
    count = prod(a.extent for a in stage.axes if a not in stage.spatial)
    where = source.document.location(*source.path, *place, "order")
    expression = parse_expression(keys.order, ("k",), where)
    return tuple(sorted(range(count), key=lambda k: int(evaluate(expression, {"k": k}))))


def _fault(keys: ContractKeys, way: str) -> tuple[str, str] | None:
    """(key, message) of keys that contradict each other."""
    if (way == "aligned") != (keys.fraction_bits is not None):
        return ("fraction_bits" if keys.fraction_bits else "sum"), "aligned sums, and only they, have fraction_bits"
    if (keys.sum_bits is None) != (keys.accumulator_bits is None) or (keys.sum_bits and way != "aligned"):
        return "sum_bits", "sum_bits and accumulator_bits go together, with fraction_bits"
    if keys.sum_bits is None and (keys.parts > 1 or keys.accumulator_reach is not None):
        return "parts" if keys.parts > 1 else "accumulator_reach", "parts and accumulator_reach go with sum_bits"
    if way == "lanes" and keys.terms is None:
        return "sum", "lanes need `terms`, their number"
    other = keys.sum_bits or keys.operands_as or keys.sum_as or keys.order
    if keys.group is not None and (way != "aligned" or other):
        return "group", "groups are for aligned sums in one stage, in the order of the loops"
    if keys.operands_as is not None and way != "aligned":
        return "operands_as", "operands_as matters to aligned sums only"
    return None
