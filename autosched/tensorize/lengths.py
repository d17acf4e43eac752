"""Instructions that are told how many lanes take part (`if u32(i) < vl[0]: …`), at one length of these.

    def add(vl: u32[1], a: s32[16], b: s32[16], c: s32[16]):         def add(a: s32[16], b: s32[16], c: s32[16]):
        for i in range(16):                                              for i in range(11):
            if u32(i) < vl[0]: c[i] = a[i] + b[i]                            c[i] = a[i] + b[i]

With the number of lanes as its length an instruction is one without a length, which is matched as any other. With a
shorter length the lanes below it compute the same, and the others keep what they hold: so the last vector of a row is
issued with the lanes that are left. The length goes with the command, and is no tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from autosched.ir.nodes import Assign, Loop, Statement
from autosched.ir.stages import conjuncts_of
from autosched.ir.value import (
    Comparison,
    FromIndex,
    Literal,
    Logical,
    Read,
    Select,
    Value,
    is_value,
    map_value,
    reads,
    walk,
)
from autosched.logic import Const, Var
from autosched.logic.expr import OPPOSITE
from autosched.tensorize.body.governed import decided, governing
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Obligation
from autosched.tensorize.reduction.update import NotAnUpdate, update_of_intrinsic


def length_axes(intrinsic: Intrinsic) -> dict[str, str]:
    """The operands that hold a length, each with the axis that is compared with it. Empty where one of them is compared
    with anything else, or computed with, or where a text needs a register for it."""
    if intrinsic.kind != "compute" or intrinsic.emit or not intrinsic.governed:
        return {}
    try:
        update = update_of_intrinsic(intrinsic)
    except NotAnUpdate:
        return {}
    found: dict[str, set[str]] = {o: set() for o, counts in governing(update).items() if counts}
    used = {r.tensor for r in reads(update.term)}
    for part in (p for guard in update.guards for p in conjuncts_of(guard) if is_value(p)):
        axes = {v.index.name for v in walk(part) if isinstance(v, FromIndex) and isinstance(v.index, Var)}
        plain = sum(isinstance(v, FromIndex) for v in walk(part)) == len(axes) == 1
        for operand in {r.tensor for r in reads(part)} & set(found):
            found[operand] |= axes if plain else {"", "more"}
    for operand, axes in found.items():
        spec = intrinsic.operands[operand]
        if len(axes) != 1 or operand in used or not spec.dtype.is_integer or spec.elements != 1:
            return {}
    return {operand: axis for operand, (axis,) in ((o, tuple(a)) for o, a in found.items())}


def at_full_length(intrinsic: Intrinsic) -> tuple[Intrinsic, Obligation] | None:
    """The instruction with all of its lanes as its length, and what was proved of it; None where it has no length, or
    where its conditions do not hold in all lanes then."""
    if at_full_length not in intrinsic.cache:
        intrinsic.cache[at_full_length] = _at_full_length(intrinsic)
    found: tuple[Intrinsic, Obligation] | None = intrinsic.cache[at_full_length]
    return found


def _at_full_length(intrinsic: Intrinsic) -> tuple[Intrinsic, Obligation] | None:
    axes = length_axes(intrinsic)
    extents = {a.name: a.extent for a in intrinsic.stage.axes}
    numbers = {operand: extents[axis] for operand, axis in axes.items()}
    found = _at(intrinsic, numbers, {}) if numbers else None
    if found is None or not is_update(found):
        return None
    said = " and ".join(f"{o} = {n}" for o, n in numbers.items())
    text = f"with {said} its conditions hold in all lanes"
    if len(axes) == 1:
        ((operand, axis),) = axes.items()
        shorter = range(1, extents[axis])
        if all(_at(intrinsic, {operand: n}, {axis: n}) and _keeps(intrinsic, operand, axis, n) for n in shorter):
            found = replace(found, length=(operand, axis), lengthened=intrinsic)
            text += ", with a shorter length in those below it"
    return found, Obligation("body", text, "exhaustion")


def is_update(intrinsic: Intrinsic) -> bool:
    """Whether an instruction's semantics have the normal form of an update."""
    try:
        update_of_intrinsic(intrinsic)
    except NotAnUpdate:
        return False
    return True


def _keeps(intrinsic: Intrinsic, operand: str, axis: str, length: int) -> bool:
    """Whether the lanes from this length on keep what they hold: a condition on the length fails in all of them."""
    held = {operand: Literal(length, intrinsic.operands[operand].dtype)}
    extents = {a.name: a.extent for a in intrinsic.stage.axes}
    ranges = {name: (length if name == axis else 0, n - 1) for name, n in extents.items()}
    parts = (p for guard in update_of_intrinsic(intrinsic).guards for p in conjuncts_of(guard))
    tests = (p for p in parts if isinstance(p, Comparison) and operand in {r.tensor for r in reads(p)})
    return any(decided(replace(p, op=OPPOSITE[p.op]), held, ranges) for p in tests)


def at_length(intrinsic: Intrinsic, lanes: int) -> Intrinsic:
    """What `at_full_length` answers, with so many lanes along the axis of its `length`. Cycles between two issues are
    those of the least length that `timing.lengths` names and that is no shorter."""
    if (at_length, lanes) not in intrinsic.cache:
        intrinsic.cache[at_length, lanes] = _at_length(intrinsic, lanes)
    made: Intrinsic = intrinsic.cache[at_length, lanes]
    return made


def _at_length(intrinsic: Intrinsic, lanes: int) -> Intrinsic:
    assert intrinsic.length is not None
    assert intrinsic.lengthened is not None
    operand, axis = intrinsic.length
    found = _at(intrinsic.lengthened, {operand: lanes}, {axis: lanes})
    assert found is not None
    full = intrinsic.timing.get("interval", 1.0)
    cycles = next((c for n, c in intrinsic.interval_by_lanes if n >= lanes), full)
    timing = intrinsic.timing | ({"interval": cycles} if "interval" in intrinsic.timing else {})
    return replace(found, timing=timing, share=intrinsic.share * cycles / full, lanes=lanes)


def _at(intrinsic: Intrinsic, numbers: Mapping[str, int], cut: Mapping[str, int]) -> Intrinsic | None:
    """The instruction with these lengths, its axes `cut` to so many iterations. None where conditions on a length are
    left, or where its type does not hold the number."""
    limits = {o: intrinsic.operands[o].dtype.limits for o in numbers}
    if any(not limits[o][0] <= n <= limits[o][1] for o, n in numbers.items()):
        return None
    held = {o: Literal(n, intrinsic.operands[o].dtype) for o, n in numbers.items()}
    extents = {a.name: cut.get(a.name, a.extent) for a in intrinsic.stage.axes}
    ranges = {name: (0, n - 1) for name, n in extents.items()}
    target = intrinsic.stage.target

    def without(value: Value) -> Value:
        if not (isinstance(value, Select) and value.other == target and is_value(value.condition)):
            return value
        inner = without(value.then)
        left = tuple(p for p in conjuncts_of(value.condition) if not (is_value(p) and decided(p, held, ranges)))
        if not left:
            return inner
        parts = tuple(p for p in left if is_value(p))
        return Select(parts[0] if len(parts) == 1 else Logical("and", parts), inner, value.other, value.dtype)

    def visit(stmt: Statement) -> Statement:
        match stmt:
            case Assign():
                return replace(stmt, value=without(stmt.value))
            case Loop(axis, body):
                return Loop(replace(axis, upper=Const(extents[axis.name])), tuple(map(visit, body)))
        return replace(stmt, body=tuple(map(visit, stmt.body)))

    program = intrinsic.program
    body = tuple(map(visit, program.body))
    kept = {name: tensor for name, tensor in program.tensors.items() if name not in numbers}
    parameters = tuple(p for p in program.parameters if p not in numbers)
    program = replace(program, tensors=kept, parameters=parameters, body=body, source="")
    operands = {name: o for name, o in intrinsic.operands.items() if name not in numbers}
    if any(r.tensor in numbers for r in program.stages[0].reads) or _asks(program.stages[0].assign.value, numbers):
        return None
    return replace(intrinsic, program=program, operands=operands, second=None)


def _asks(value: Value, numbers: Mapping[str, int]) -> bool:
    """Whether anything in a value, conditions too, reads one of these operands."""
    found: list[str] = []

    def visit(v: Value) -> Value:
        if isinstance(v, Read):
            found.append(v.tensor)
        return v

    map_value(value, visit)
    return bool(numbers.keys() & set(found))
