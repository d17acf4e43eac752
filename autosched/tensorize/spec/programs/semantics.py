"""`semantics:` as a program, with errors at the YAML file's own line, and what an intrinsic asks of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from autosched.errors import Location, ProgramError, SpecError
from autosched.ir.nodes import Assign, Axis, Guard, Loop, Stage, Statement
from autosched.ir.oracle.nests import axis_ranges
from autosched.ir.prepared import assigns
from autosched.ir.program import Program
from autosched.ir.rewrites.selected import with_choices
from autosched.ir.stages import conjuncts_of
from autosched.ir.value import Arith, Read, Select, Value, is_value, reads
from autosched.ir.variables import index_vars
from autosched.logic import Const, Int, Var, interval
from autosched.tensorize.intrinsic import Operand
from autosched.tensorize.reduction.update import merge_of
from autosched.tensorize.spec.programs.parts import in_parts, one_term
from autosched.tensorize.spec.programs.results import NotOneResult, one_result
from autosched.tensorize.spec.programs.started import Started, sum_from_zero, with_start
from autosched.tensorize.spec.programs.temporaries import NoTemporary, named_as_written, without_temporaries
from autosched.tensorize.spec.source import DocumentSource

MAX_POINTS = 1 << 24


def parse_semantics(
    text: str, kind: str, source: DocumentSource, result: str | None, whole: Callable[[str], bool]
) -> Started:
    """The program of `semantics`: one statement that updates one operand, that of `result` where there are several,
    what it says in temporaries filled in; on parts of operands where it is one term of those alone, and none of them
    has to stay `whole`. With how its sum starts, where it says so. SpecError with the line in the YAML file."""
    from autosched.ir.parser import parse

    try:
        started = with_start(parse(text, filename=source.document.file))
        program = _selecting(without_temporaries(started.program, text))
        _ = [t.extents for t in program.tensors.values()]
        parted, operands = in_parts(program)
        may = kind == "compute" and bool(operands) and not any(map(whole, operands.values()))
        twice = len({s.assign.tensor for s in program.stages}) < len(program.stages)
        one = one_result(parted if may and twice else program, result)
        if may and not twice and not one_term(source.name, one):
            one = one_result(parted, result)
        if operands and kind == "compute" and not twice:
            summed = sum_from_zero(one_result(program, result))
            if summed is not None and one_term(source.name, summed):
                summing = sorted({*operands.values()} - {a.tensor for stmt in summed.body for a in assigns(stmt)})
                started = replace(started, from_zero=not may, written_out=tuple(summing) if may else ())
                one = one if may else summed
        program = named_as_written(one, text)
        stages = program.stages
        shapes = {name: t.extents for name, t in program.tensors.items()}
    except ProgramError as error:
        hint = error.hint or _undeclared(error.message, text)
        raise moved(error.message, hint, error.location, text, source) from None
    except (NoTemporary, NotOneResult) as error:
        raise moved(error.message, error.hint, error.location, text, source) from None
    except ValueError as error:
        raise source.error(f"semantics: {error}", "semantics", hint="give every size a number") from None
    parts = [a for stmt in program.body for a in assigns(stmt)]
    if len(stages) != 1 or len(parts) != 1:
        hint = "an instruction writes one operand in one statement, others fill temporaries (`t: s32[16]`)"
        hint += "; one that can start from zero says so with `overwrite:`"
        where = parts[1].location if len(parts) > 1 else None
        raise moved(f"{len(parts)} statements where one is expected", hint, where, text, source)
    if fault := _fault(program, stages[0], shapes, kind):
        raise moved(fault[0], fault[1], parts[0].location, text, source)
    return replace(started, program=_merging(program) if stages[0].guards else program)


def _selecting(program: Program) -> Program:
    """The program with choices where an operand addresses another by low bits (`b[k // 2, s32(e[i, k] & 3), j]`)."""
    ranges = axis_ranges(program.body)

    def visit(stmt: Statement) -> Statement:
        if isinstance(stmt, Assign):
            return replace(stmt, value=with_choices(stmt.value, lambda _: None, ranges))
        return replace(stmt, body=tuple(map(visit, stmt.body)))

    body = tuple(map(visit, program.body))
    return program if body == program.body else replace(program, body=body, source="")


def _undeclared(message: str, text: str) -> str | None:
    """What helps where a statement fills a tensor that is nowhere declared."""
    name = re.fullmatch(r"unknown name '(\w+)'", message)
    if name is None or not re.search(rf"^\s*{name[1]}\[[^\]]*\]\s*[-+*]?=", text, re.MULTILINE):
        return None
    return f"declare the temporary {name[1]} before it is filled, with its type and shape: `{name[1]}: s32[16]`"


def _merging(program: Program) -> Program:
    """The program whose statement keeps what its target holds where its conditions fail, as a value."""

    def visit(stmt: Statement, guards: tuple[Value, ...]) -> Statement:
        match stmt:
            case Guard(condition, (inner,)):
                assert is_value(condition)
                return visit(inner, (*guards, condition))
            case Loop(axis, (inner,)):
                return Loop(axis, (visit(inner, guards),))
            case Assign(tensor, index, op, value):
                own = Read(tensor, index, value.dtype)
                value = value if op == "=" else Arith(op.removesuffix("="), own, value, own.dtype)
                for guard in reversed(guards):
                    value = Select(guard, value, own, own.dtype)
                return replace(stmt, op="=", value=value)
        raise AssertionError(stmt)

    (stmt,) = program.body
    return replace(program, body=(visit(stmt, ()),), source="")


def overwrites(program: Program) -> bool:
    """Whether the one statement of an instruction does not take what its target holds, but to keep it."""
    stage = program.stages[0]
    return stage.assign.op == "=" and all(r.tensor != stage.assign.tensor for r in reads(_where_it_counts(stage)))


def _where_it_counts(stage: Stage) -> Value:
    """What a statement assigns where the conditions hold under which its target does not keep what it holds."""
    value = stage.assign.value
    while (merge := merge_of(value, stage.target)) is not None:
        value = merge.then
    return value


def parse_pseudocode(text: str, semantics: Program, operands: dict[str, Operand], source: DocumentSource) -> Program:
    """The program of `pseudocode`: any statements over the same operands, which write the same one; else SpecError.

    A parameter has its operand's shape, or that of its registers: [lanes, elements of each] or [elements]. An integer
    of the other signedness reads the same bits: such a difference is for `check` to show.
    """
    from autosched.ir.parser import parse

    key = "pseudocode"
    try:
        program = parse(text, filename=source.document.file)
        mine = {p: program.tensors[p] for p in program.parameters if p in program.tensors}
        shapes = {name: (t.dtype, t.extents) for name, t in mine.items()}
    except ProgramError as error:
        raise moved(error.message, error.hint, error.location, text, source, key) from None
    except ValueError as error:
        raise source.error(f"{key}: {error}", key, hint="give every size a number") from None
    if list(shapes) != list(operands) or program.scalars:
        raise source.error(f"{key}: its parameters are not {', '.join(operands)}, as in the semantics", key)
    for name, operand in operands.items():
        relation = operand.order if operand.fragment is None else operand.fragment
        accepted = operand.shape, tuple(n for _, n in relation.domain)
        same_bits = (
            shapes[name][0].is_integer and operand.dtype.is_integer and shapes[name][0].bits == operand.dtype.bits
        )
        if not (shapes[name][0] == operand.dtype or same_bits) or shapes[name][1] not in accepted:
            shown = " or ".join(dict.fromkeys(f"{operand.dtype}{list(shape)}" for shape in accepted))
            raise source.error(f"{key}: {name} is not {shown}", key, hint="its own shape, or that of its registers")
    written = {a.tensor for stmt in program.body for a in assigns(stmt)} & set(mine)
    target = semantics.stages[0].assign.tensor
    if written != {target}:
        said = ", ".join(sorted(written)) or "nothing"
        raise source.error(f"{key}: it writes {said}, the semantics {target}", key)
    return program


def moved(
    message: str, hint: str | None, place: Location | None, text: str, source: DocumentSource, key: str = "semantics"
) -> SpecError:
    """An error of the semantics (or `key`) at its place in the YAML file."""
    where = (
        place_inside(source, text, place.line, place.column, key)
        if place
        else source.document.location(*source.path, key)
    )
    return SpecError(f"{source.name}: {key}: {message}", hint=hint, location=where)


def place_inside(source: DocumentSource, text: str, line: int, column: int, key: str = "semantics") -> Location:
    """The YAML file's place of a line and column (from 1) of the literal block (`|`) that reads `text`."""
    document = source.document
    start = document.location(*source.path, key)
    header = document.lines[start.line - 1][start.column - 1 :] if start.line <= len(document.lines) else ""
    if not header.startswith("|"):
        return start
    first = next((raw for raw in document.lines[start.line :] if raw.strip()), "")
    indent = len(first) - len(first.lstrip(" "))
    written = text.splitlines()
    shown = " " * indent + written[line - 1] if 0 < line <= len(written) else ""
    return Location(document.file, start.line + line, column + indent, shown)


def _fault(
    program: Program, stage: Stage, shapes: dict[str, tuple[int, ...]], kind: str
) -> tuple[str, str | None] | None:
    """(message, hint) of what keeps the program from being one instruction; None: nothing."""
    if program.scalars:
        return (
            f"the parameter {next(iter(program.scalars))!r} is a scalar",
            "write it as a tensor of one element, a: f32[1]",
        )
    if program.assumptions or any(t.intermediate for t in program.tensors.values()):
        return "assumptions and intermediate tensors are no part of an instruction", None
    if said := _fault_of_guards(stage, kind):
        return said
    if any(a.lower != Const(0) or not isinstance(a.upper, Const) for a in stage.axes):
        return "loops run from 0 to a constant", None
    points = 1
    for axis in stage.axes:
        points *= axis.extent
    if points > MAX_POINTS:
        return f"{points:,} steps; at most {MAX_POINTS:,}", None
    used = {stage.assign.tensor, *(r.tensor for r in stage.reads)}
    if unused := [name for name in program.tensors if name not in used]:
        return f"the operand {unused[0]!r} is not used", _start_hint(program, stage, unused[0])
    for read in (stage.target, *stage.reads):
        if outside := _outside(read, stage.axes, shapes[read.tensor]):
            return outside, None
        if read.tensor == stage.assign.tensor and read.index != stage.assign.index:
            return f"{read.tensor} is read at another element than the one written", None
    reads_target = any(r.tensor == stage.assign.tensor for r in reads(_where_it_counts(stage)))
    if kind == "compute" and stage.assign.op == "=" and not reads_target:
        return _fault_of_overwriting(stage, shapes)
    return None


def _start_hint(program: Program, stage: Stage, unused: str) -> str:
    """What to do with an operand that is not used: the sum may start from it."""
    own, target = program.tensors[unused], program.tensors[stage.assign.tensor]
    if stage.assign.op == "=" or (own.dtype, own.extents) != (target.dtype, target.extents):
        return "leave it out of the parameters"
    at = ", ".join(map(str, stage.assign.index))
    return f"where the sum starts from it: `{target.name}[{at}] = {unused}[{at}]` before it; else leave it out"


def _fault_of_guards(stage: Stage, kind: str) -> tuple[str, str | None] | None:
    """(message, hint) of what keeps conditions from being masks and lengths; None: nothing, or there are none."""
    if not stage.guards:
        return None
    hint = "compare an operand with a number (p[i] != 0), or an axis with a length (s32(i) < vl[0])"
    if not all(is_value(g) and all(is_value(c) and reads(c) for c in conjuncts_of(g)) for g in stage.guards):
        return "a condition asks no operand: the same elements would always take part", hint
    assign = stage.assign
    tested = {r.tensor for g in stage.guards if is_value(g) for r in reads(g)}
    if kind != "compute":
        said = f"{assign.tensor} is overwritten under a condition"
        return said, f"say what else it is: {assign.tensor}[…] = … if p[i] != 0 else d[i]"
    if assign.tensor in tested:
        return f"a condition asks {assign.tensor}, which is written", hint
    if shared := tested & {r.tensor for r in reads(assign.value)}:
        return f"a condition asks {min(shared)}, which is computed with", "choose in the value: a[i] if a[i] > 0 else 0"
    return None


def _fault_of_overwriting(stage: Stage, shapes: dict[str, tuple[int, ...]]) -> tuple[str, str | None] | None:
    """(message, hint) of what keeps a statement `c[…] = …` from being an instruction; None: nothing. It writes every
    element of its target once, from elements of its operands at the same axes."""
    written, extents = stage.assign.tensor, {a.name: a.extent for a in stage.axes}
    names = [p.name for p in stage.assign.index if isinstance(p, Var)]
    moved = index_vars(stage.assign.index)
    if over := [a for a, extent in extents.items() if extent > 1 and a not in moved]:
        hint = f"write {written}[…] += …, min= or max= for a reduction, or index {written} by {over[0]}"
        return f"{written} is overwritten {extents[over[0]]} times along {over[0]}", hint
    for d, (part, extent) in enumerate(zip(stage.assign.index, shapes[written], strict=True)):
        if extent > 1 and not (isinstance(part, Var) and extents[part.name] == extent):
            said = f"{written} is overwritten, and its dimension {d} is not indexed by one axis from end to end"
            return said, "an instruction that overwrites writes every element of its target"
    if len(set(names)) != len(names):
        return f"{written} is overwritten, and two of its dimensions are indexed by one axis", None
    if not stage.reads:
        return f"{written} is overwritten by a constant", "set kind: fill"
    for read in stage.reads:
        for d, (part, extent) in enumerate(zip(read.index, shapes[read.tensor], strict=True)):
            if extent > 1 and not isinstance(part, Var):
                said = f"{written} is overwritten, and dimension {d} of {read.tensor} is indexed by {part}"
                return said, "each dimension of an operand is indexed by one axis of the target, or has one element"
    return None


def _outside(read: Read, axes: tuple[Axis, ...], shape: tuple[int, ...]) -> str | None:
    ranges = {a.name: (0, a.extent - 1) for a in axes}
    for d, (index, extent) in enumerate(zip(read.index, shape, strict=True)):
        if not isinstance(index, Int):
            return f"{read.tensor}: dimension {d} is indexed by data; an instruction's addresses are fixed"
        low, high = interval(index, ranges)
        if low < 0 or high >= extent:
            return f"{read.tensor}: dimension {d} is indexed up to {low}..{high}, outside 0..{extent - 1}"
    return None
