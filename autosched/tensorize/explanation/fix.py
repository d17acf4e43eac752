"""The smallest change that would make an instruction fit: derived from the reason, and shown only once matching the
changed program again says that it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Assign, Assume, Axis, Loop, Statement
from autosched.ir.oracle import numerics as kinds
from autosched.ir.printer import print_value
from autosched.ir.program import Program
from autosched.ir.rewrites.selected import MOST
from autosched.ir.value import (
    Arith,
    Call,
    Cast,
    Literal,
    Read,
    Select,
    Unary,
    Value,
    is_value,
    map_value,
    reads,
    walk,
)
from autosched.logic import Const
from autosched.numerics_levels import DEFAULT_NUMERICS, NUMERICS_LEVELS
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.arrays import evaluate
from autosched.tensorize.body.counterexample import leaves
from autosched.tensorize.body.intervals import loses
from autosched.tensorize.body.not_negative import under_magnitudes
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import REASON_CODES, Match
from autosched.tensorize.matcher.known_roles import with_roles
from autosched.tensorize.matcher.match import match
from autosched.tensorize.matcher.roles import role_assignments
from autosched.tensorize.reduction.update import NotAnUpdate, Update, update_of_intrinsic

_FITS = ("match", "conditional")


@dataclass(frozen=True)
class Change:
    """A program that differs in one thing, which `text` says; `numerics` is the level to ask for."""

    text: str
    program: Program
    numerics: str
    intrinsic: Intrinsic | None = None
    """An instruction described in another way, where the change is in its description."""


def with_fix(found: Match, numerics: str = DEFAULT_NUMERICS) -> Match:
    """The answer with a verified fix: of a "no", a change with which the instruction fits; of a "conditional", the
    assumption that makes it unconditional. Where none of the changes tried does, the first that gets further, with
    what stands in the way then; else the same answer."""
    wanted = _FITS if found.verdict == "no" else ("match",)
    begun: str | None = None
    for change in _changes(found, numerics):
        after = _matched(change, found)
        if begun is None and after is not None and _further(after, found):
            assert after.reason is not None
            begun = f"{change.text}; not enough by itself: then {after.reason.code}, {after.reason.message}"
        if after is not None and after.verdict in wanted:
            text = change.text + (", under a condition" if after.verdict == "conditional" else "")
            if after.mappings[0].adapters:
                text += f" (and {', '.join(after.mappings[0].adapters)})"
            if found.reason is None:
                return replace(found, notes=(*found.notes, f"fix: {text} (verified: then it matches unconditionally)"))
            return replace(found, reason=replace(found.reason, fix=text, verified=True))
    if begun is not None and found.reason is not None:
        return replace(found, reason=replace(found.reason, fix=begun))
    return found


def _further(after: Match, before: Match) -> bool:
    """Whether the changed program is refused later than the one before."""
    if after.verdict != "no" or after.reason is None or before.reason is None:
        return False
    return REASON_CODES.index(after.reason.code) > REASON_CODES.index(before.reason.code)


def _matched(change: Change, found: Match) -> Match | None:
    """The changed program's answer: for the stage of that name, or the last that writes its tensor, since a stage that
    has become a sum takes in its initial value, and the number behind its name goes."""
    written = found.program.stage(found.stage).assign.tensor
    stages = [s for s in change.program.stages if s.assign.tensor == written]
    names = [s.name for s in stages if s.name == found.stage] or [s.name for s in stages[-1:]]
    intrinsic = change.intrinsic or found.intrinsic
    return match(change.program, [intrinsic], change.numerics, names)[0] if names else None


def _changes(found: Match, numerics: str) -> Iterator[Change]:
    if found.verdict == "conditional":
        yield from _assumed(found, numerics)
        return
    reason = found.reason
    if reason is None or reason.code in ("UNSUPPORTED", "ALIAS", "WRITE_CONFLICT"):
        return
    program, stage = found.program, found.program.stage(found.stage)
    facts = StageFacts(program, stage)
    try:
        theirs, mine = update_of_intrinsic(found.intrinsic), facts.update
    except NotAnUpdate:
        return
    if reason.code == "NUMERICS":
        # Where matching was told to leave adapters out.
        yield Change(f"promote the accumulator to {mine.target.dtype} every few steps", program, numerics)
        weaker = NUMERICS_LEVELS[NUMERICS_LEVELS.index(numerics) + 1 :]
        for level in (x for x in weaker if x not in ("special", "rescaled")):
            yield Change(f"accept --numerics {level}", program, level)
    if found.intrinsic.chooses:
        yield from _selecting(found, stage.assign.value, numerics)
    yield from _redeclared(program, stage.assign, mine, theirs, numerics)
    if reason.code == "BODY_DIFFERS" and "padding" in reason.message:
        yield from _resized(facts, found.intrinsic, numerics)
    if reason.code == "BODY_DIFFERS":
        yield from _without_signs(program, mine, theirs, numerics)
        yield from _restated(program, stage.assign, mine, theirs, numerics)
        yield from _described(program, found.intrinsic, mine, theirs, numerics)
    if reason.code == "COMBINE_DIFFERS" and mine.combine is None and theirs.combine == "+":
        yield from _accumulated(program, stage.assign, numerics)


def _assumed(found: Match, numerics: str) -> Iterator[Change]:
    """The conditions of one mapping, stated."""
    for mapping in sorted(found.mappings, key=lambda m: len(m.conditions)):
        stated = tuple(c.assume for c in mapping.conditions if c.assume is not None)
        if len(stated) == len(mapping.conditions):
            text = " and ".join(f"assume({c.text})" for c in mapping.conditions)
            after = replace(found.program, assumptions=(*found.program.assumptions, *stated))
            yield Change(f"add {text}", after, numerics)
            return


def _without_signs(program: Program, mine: Update, theirs: Update, numerics: str) -> Iterator[Change]:
    """The signs ruled out that the instruction does not look at."""
    seen = set[tuple[str, ...]]()
    for roles in role_assignments(theirs, mine):
        tensors = under_magnitudes(with_roles(theirs, roles).term)
        if tensors and tensors not in seen and all(t in program.inputs for t in tensors):
            seen.add(tensors)
            stated = tuple(Assume(t, low=0) for t in tensors)
            text = " and ".join(f"assume(0 <= {t})" for t in tensors)
            yield Change(f"add {text}", replace(program, assumptions=(*program.assumptions, *stated)), numerics)


def _selecting(found: Match, value: Value, numerics: str) -> Iterator[Change]:
    """The numbers bounded by which data say which element is meant, with what the instruction asks beside."""
    program = found.program
    subscripts = (part for v in walk(value) if isinstance(v, Read) for part in v.index if is_value(part))
    tensors = tuple(dict.fromkeys(r.tensor for part in subscripts for r in reads(part)))
    if not tensors or not all(t in program.inputs and program.tensors[t].dtype.is_integer for t in tensors):
        return
    for most in (2**n - 1 for n in range(1, MOST.bit_length())):
        stated = tuple(Assume(t, low=0, high=most) for t in tensors)
        text = "add " + " and ".join(f"assume(0 <= {t} <= {most})" for t in tensors)
        change = Change(text, replace(program, assumptions=(*program.assumptions, *stated)), numerics)
        after = _matched(change, found)
        if after is not None and after.verdict == "conditional":
            for more in _assumed(after, numerics):
                yield replace(more, text=f"{text} and {more.text.removeprefix('add ')}")
        yield change


def _redeclared(program: Program, assign: Assign, mine: Update, theirs: Update, numerics: str) -> Iterator[Change]:
    """Tensors in the instruction's types: its operands in each order of roles, then the accumulator, then both."""
    target = mine.target
    accumulator: dict[str, DType] = {}
    if target.dtype != theirs.target.dtype:
        accumulator = {target.tensor: theirs.target.dtype}
        yield from _declared(program, assign, accumulator, target.dtype, numerics)
    seen = []
    for roles in role_assignments(theirs, mine):
        types = {roles[r.tensor].tensor: r.dtype for r in theirs.operands if r.tensor in roles}
        changed = {t: d for t, d in types.items() if program.tensors[t].dtype != d}
        if changed and changed not in seen:
            seen.append(changed)
    for changed in sorted(seen, key=len):
        yield from _declared(program, assign, changed, target.dtype, numerics)
        if accumulator:
            yield from _declared(program, assign, changed | accumulator, target.dtype, numerics)


def _declared(program: Program, assign: Assign, types: dict[str, DType], old: DType, numerics: str) -> Iterator[Change]:
    written = types.get(assign.tensor)
    if written is not None and written.is_float != old.is_float:
        return  # another program altogether
    declared = {t: program.tensors[t].dtype for t in types}
    converted: dict[str, None] = {}

    def node(v: Value) -> Value:
        match v:
            case Read(tensor, _, dtype) if tensor in types and tensor != assign.tensor:
                v = Cast(replace(v, dtype=types[tensor]), dtype)  # used as before, until a conversion takes it apart
            case Cast(Cast(Read(tensor, _, _) as read, inner, False), dtype, saturate) if inner == declared.get(tensor):
                v = Cast(read, dtype, saturate)
            case Call(name, (Cast(Read(tensor, _, _) as read, inner, False),), _) if inner == declared.get(tensor):
                v = read if name == f"bits_{read.dtype}" else v  # of these bits it is made
        if written is None or v.dtype != old:
            return v
        match v:
            case Literal(number, _):
                return Literal(float(number) if written.is_float else int(number), written)
            case Cast(operand, _, saturate):
                return operand if operand.dtype == written else Cast(operand, written, saturate)
            case Arith() | Unary() | Select() | Call():
                return replace(v, dtype=written)
        return v if v.dtype == written else Cast(v, written)

    value = map_value(assign.value, node)
    for v in walk(value):
        if isinstance(v, Cast) and isinstance(v.operand, Read) and v not in set(walk(assign.value)):
            converted[print_value(v)] = None
    if not _well_typed(value) or value.dtype != (written or assign.value.dtype):
        return
    tensors = {n: replace(t, dtype=types.get(n, t.dtype)) for n, t in program.tensors.items()}

    def statement(a: Assign) -> Assign:
        if a is assign:
            return replace(a, value=value)
        return replace(a, value=map_value(a.value, node)) if a.tensor == assign.tensor else a

    text = "declare " + " and ".join(f"{t} as {d}" for t, d in types.items())
    text += f", with {' and '.join(converted)} where it is read" if converted else ""
    text += f", and convert {assign.tensor} to {old} afterwards" if written is not None else ""
    yield Change(text, replace(program, tensors=tensors, body=_body(program.body, statement)), numerics)


def _well_typed(value: Value) -> bool:
    casts = (v for v in walk(value) if isinstance(v, Cast))
    alike = all(v.left.dtype == v.right.dtype == v.dtype for v in walk(value) if isinstance(v, Arith))
    return alike and not any(c.operand.dtype.scale and c.dtype.is_integer for c in casts)


def _restated(program: Program, assign: Assign, mine: Update, theirs: Update, numerics: str) -> Iterator[Change]:
    """The instruction's own term, on the program's elements, where it means the same but for what wraps or rounds in
    the program: the commonest difference is where casts stand. A term that wraps or rounds sooner than the program's is
    no fix of the program."""
    for _, term in _alike(mine, theirs):
        if loses(term) > loses(mine.term):
            continue
        op = "=" if theirs.combine is None else f"{theirs.combine}="
        if op == "=" and assign.op != "=":  # what was there before would be lost
            continue
        target = Read(assign.tensor, assign.index, assign.value.dtype)
        text = f"add {print_value(term)} to {print_value(target)} instead" if op == "+=" else f"use {print_value(term)}"
        text += ", which wraps or rounds later" if loses(term) < loses(mine.term) else ""
        yield Change(text, _exchanged(program, assign, replace(assign, op=op, value=term)), numerics)


def _described(program: Program, intrinsic: Intrinsic, mine: Update, theirs: Update, numerics: str) -> Iterator[Change]:
    """The program's term as the instruction's, where that is described as one that wraps or rounds sooner: a cast may
    stand in the wrong place in the description."""
    stage = intrinsic.stage
    if theirs.term != stage.assign.value:
        return  # it is written in some other way
    for roles, term in _alike(mine, theirs):
        if loses(term) <= loses(mine.term):
            continue
        operands: dict[Value, Value] = {roles[r.tensor]: r for r in theirs.operands}
        own = _exchanged_parts(mine.term, operands)
        made = _exchanged(intrinsic.program, stage.assign, replace(stage.assign, value=own))
        text = (
            f"describe {intrinsic.name} with {print_value(own)}, if that is what it computes: as described, "
            f"{print_value(stage.assign.value)} wraps or rounds where the program does not"
        )
        yield Change(text, program, numerics, replace(intrinsic, program=made))


def _exchanged_parts(value: Value, parts: Mapping[Value, Value]) -> Value:
    return map_value(value, lambda v: parts.get(v, v))


def _alike(mine: Update, theirs: Update) -> Iterator[tuple[dict[str, Read], Value]]:
    """The instruction's term on the program's elements, where it is the program's on small numbers."""
    if mine.target.dtype != theirs.term.dtype:
        return
    for roles in role_assignments(theirs, mine):
        if any(roles[r.tensor].dtype != r.dtype for r in theirs.operands):
            continue
        term = with_roles(theirs, roles).term
        if _agree_when_small(mine.term, term):
            yield roles, term


def _agree_when_small(one: Value, other: Value) -> bool:
    """Whether two terms are the same on elements from 0 to 3, where nothing wraps or rounds."""
    elements = list(dict.fromkeys([*leaves(one), *leaves(other)]))
    if not all(isinstance(e, Read) for e in elements):
        return False
    few = [[n for n in range(4) if not e.dtype.is_integer or n <= e.dtype.limits[1]] for e in elements]
    for values in product(*few):
        inputs = {e: kinds.container(e.dtype)(v) for e, v in zip(elements, values, strict=True)}
        if evaluate(one, inputs) != evaluate(other, inputs):
            return False
    return True


def _accumulated(program: Program, assign: Assign, numerics: str) -> Iterator[Change]:
    target = print_value(Read(assign.tensor, assign.index, assign.value.dtype))
    text = f"initialise {target} = 0 and accumulate with +="
    yield Change(text, _exchanged(program, assign, replace(assign, op="+=")), numerics)


def _resized(facts: StageFacts, intrinsic: Intrinsic, numerics: str) -> Iterator[Change]:
    """A reduction axis that runs over whole tiles of one of the instruction's."""
    units = [a.extent for a in intrinsic.reduction]
    for axis in facts.stage.reduction:
        extent = facts.extents[axis.name]
        for unit in units:
            longer = -(-extent // unit) * unit
            if axis.name in facts.exact and longer != extent:
                more = 100 * (longer - extent) / extent
                upper = Const(facts.ranges[axis.name][0] + longer)
                resized = Axis(axis.name, axis.lower, upper)
                text = f"run {axis.name} over {longer} in place of {extent} ({more:.1f} % more work)"
                yield Change(text, replace(facts.program, body=_with_axis(facts.program.body, resized)), numerics)


def _with_axis(body: tuple[Statement, ...], axis: Axis) -> tuple[Statement, ...]:
    def visit(s: Statement) -> Statement:
        if isinstance(s, Assign):
            return s
        s = replace(s, body=_with_axis(s.body, axis))
        return replace(s, axis=axis) if isinstance(s, Loop) and s.axis.name == axis.name else s

    return tuple(visit(s) for s in body)


def _exchanged(program: Program, old: Assign, new: Assign) -> Program:
    return replace(program, body=_body(program.body, lambda a: new if a is old else a))


def _body(body: tuple[Statement, ...], change: Callable[[Assign], Assign]) -> tuple[Statement, ...]:
    return tuple(change(s) if isinstance(s, Assign) else replace(s, body=_body(s.body, change)) for s in body)
