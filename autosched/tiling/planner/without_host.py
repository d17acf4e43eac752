"""What of a plan no unit of an accelerator does: statements without an instruction, and elements without a way.

For chips that have no host (`Target.host`). Everything is asked of the plan and of the instructions that the chip
describes; nothing here knows a program or an instruction by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from autosched.errors import Location, NoScheduleError
from autosched.ir.as_written import as_written, written_stage
from autosched.ir.dtypes import DType
from autosched.ir.nodes import Stage
from autosched.ir.printer import print_value
from autosched.ir.program import Program
from autosched.ir.value import (
    Comparison,
    Literal,
    Read,
    Scalar,
    Select,
    Value,
    children,
    reads,
    walk,
    with_children,
)
from autosched.machine.target import Target
from autosched.tiling.planner.scheme import scheme_of
from autosched.tiling.plans.plan import Fused, FusedLoopsPart, LiteralPart, Part, Plan, ScalarPart, TensorPart
from autosched.tiling.plans.units import Place, operation_of
from autosched.tiling.variants.stepped import Pattern, types_of, uncovered

MOST_TOLD = 6
"""Places that an error names."""
MOST_NAMED = 4
"""Stages that a line names."""


@dataclass(frozen=True)
class Missing:
    """A statement, what of it nothing does, and what would mend that; in names that the file has."""

    stage: str
    location: Location | None
    what: str
    mend: str
    way: bool = False
    """Whether elements do not get there, or back, or state is not set; else nothing computes the statement."""
    taken: str = ""
    """What would take the elements that do not get there."""

    def __str__(self) -> str:
        at = f"{self.location}: " if self.location is not None else ""
        return f"{at}{self.stage}: {self.what}{self.taken}"


def refuse_host_work(
    plans: Sequence[Plan],
    target: Target,
    patterns: Sequence[Pattern] = (),
    given: Program | None = None,
    unplanned: Callable[[], Mapping[str, tuple[tuple[str, ...], str]]] = dict,
    known: bool = True,
) -> list[Plan]:
    """The plans that an accelerator without a host runs whole. NoScheduleError where there is none: with what the plan
    that leaves least to do lacks, each with its place, and what would mend it. `patterns` say which part of a value it
    is that none computes; plans are of the program `given`, where they are not of one that was made of it; `unplanned`
    tells of stages which instructions fit them and cannot be laid out, and why; `known`: whether there is any that
    computes."""
    if target.host or scheme_of(target) != "spatial":
        return list(plans)
    if plans and not known and not any(map(_of_the_chip, plans)):
        said = f"{target.name} has no host, and no instruction of isa {target.isa} that it has is known"
        raise NoScheduleError(said, hint="give their file with --intrinsics, spelt as the target is")
    lacking = [(plan, list(dict.fromkeys(missing(plan, patterns, given)))) for plan in plans]
    whole = [plan for plan, found in lacking if not found]
    if whole or not lacking:
        return whole

    def left(one: tuple[Plan, list[Missing]]) -> tuple[int, int, int]:
        plan, found = one
        own = sum(t.nest.intrinsic.isa == target.isa for t in plan.tensor_parts)
        return sum(not m.way for m in found), -own, len(found)

    plan, least = min(lacking, key=left)
    if stuck := unplanned():
        least = list(dict.fromkeys(missing(plan, patterns, given, stuck)))
    message = f"{target.name} has no host, and no unit of it does all of the program:"
    raise NoScheduleError("\n  ".join([message, *_told(least)]), hint="\n".join(_mends(least)))


def _told(found: Sequence[Missing]) -> list[str]:
    """A line for each thing that is missing, with the first place that lacks it and the names of the others."""
    same: dict[tuple[str, str], list[Missing]] = {}
    for m in found:
        same.setdefault((m.what, m.mend), []).append(m)
    lines = []
    for first, *others in same.values():
        names = list(dict.fromkeys(m.stage for m in others if m.stage != first.stage))
        lines.append(str(first) + (f"; nor for {_some(names)}" if names else ""))
    return [*lines[:MOST_TOLD], *([f"and {len(lines) - MOST_TOLD} more"] if len(lines) > MOST_TOLD else [])]


def _mends(found: Sequence[Missing]) -> list[str]:
    """What would mend these, each once, with the stages that it is for."""
    stages: dict[str, list[str]] = {}
    for m in found:
        stages.setdefault(m.mend, []).append(m.stage)
    return [f"{_some(list(dict.fromkeys(names)))}: {mend}" for mend, names in stages.items()][:MOST_TOLD]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _of_the_chip(plan: Plan) -> bool:
    """Whether anything of a plan is described for its target."""
    units = plan.units
    own = any(t.nest.intrinsic.isa == plan.target.isa for t in plan.tensor_parts)
    return own or bool(units.copies or units.functions or units.configs)


def missing(
    plan: Plan,
    patterns: Sequence[Pattern] = (),
    given: Program | None = None,
    unplanned: Mapping[str, tuple[tuple[str, ...], str]] | None = None,
) -> Iterator[Missing]:
    """What of a plan no instruction of its target does, in the order of its parts; see `refuse_host_work`."""
    asked = _WithoutHost(plan, patterns, given or plan.program, unplanned or {})
    for part in plan.parts:
        if isinstance(part, TensorPart):
            yield from asked.of_nest(part)
        else:
            for stage, held in _stages(part, plan.program):
                yield from asked.of_loops(stage, held)


def _stages(part: Part, program: Program) -> Iterator[tuple[Stage, bool]]:
    """The stages of a part without an instruction, and whether each element waits for another of its own."""
    match part:
        case ScalarPart():
            yield part.stage, part.running is not None or part.carried is not None
        case FusedLoopsPart():
            for member in part.members:
                yield from _stages(member, program)
        case LiteralPart():
            yield from ((s, True) for s in program.stages if s.name in part.stages)


@dataclass(frozen=True)
class _WithoutHost:
    """A plan of which it is asked what it lacks, the program whose names are used, and what fits and is in no plan."""

    plan: Plan
    patterns: Sequence[Pattern]
    given: Program
    unplanned: Mapping[str, tuple[tuple[str, ...], str]]

    def lacks(self, stage: Stage, what: str, mend: str, way: bool = False, taken: str = "") -> Missing:
        written = written_stage(stage, self.plan.program, self.given)
        return Missing(written.name, written.assign.location, what, mend, way, taken)

    def text(self, value: Value, stage: Stage) -> str:
        return print_value(as_written(value, stage, self.plan.program, self.given))

    def of_loops(self, stage: Stage, held: bool) -> Iterator[Missing]:
        """A stage that no instruction computes as a whole: numbers that stay on the chip go with commands, operations
        of which the target states rates are its unit's; all else has no place."""
        plan, value = self.plan, stage.assign.value
        stays = plan.program.tensors[stage.assign.tensor].intermediate
        if isinstance(value, Literal | Scalar) and stays and not stage.reduction:
            return
        kinds = {kind for n in walk(value) if (kind := operation_of(n)) is not None}
        kinds |= {("", value.dtype.name)} if stage.assign.op != "=" else set()
        priced = [plan.units.price(plan.target, *kind)[0] == "vector" for kind in kinds]
        if not held and priced and all(priced):
            return
        if stage.name in self.unplanned:
            (name, *_), why = self.unplanned[stage.name]
            mend = "describe an instruction that computes it in another way"
            yield self.lacks(stage, f"{name} fits, and no plan can use it: {why}", mend)
            return
        part = uncovered(stage, self.patterns)
        value = value if part is None or held else part
        said = f"no instruction computes {self.text(value, stage)}"
        if part is not None and not held:
            types = ", ".join(dict.fromkeys(t.name for t in types_of(part)))
            said = f"no instruction computes {_operation(part)}{self.text(part, stage)}"
            kept = plan.program.tensors[stage.assign.tensor].dtype if part.dtype.name == "bool" else part.dtype
            mend = f"describe an instruction of kind compute that writes {kept.name} from {types or 'numbers'}"
            if (chosen := _chosen_by(part, value=stage.assign.value)) is not None:
                own = chosen.dtype.name
                mend = "describe an instruction of kind compute that chooses by a mask: "
                mend += f"`c[i] = a[i] if m[i] != 0 else b[i]`, with m: b1 and {own} a, b, c"
            yield self.lacks(stage, said + self.takes(stage), mend)
            return
        if stage.assign.op != "=":
            said = f"no instruction adds up {self.text(value, stage)} by {stage.assign.op}"
        said += ", and its iterations depend on each other" if held else ""
        form = "adds to its result over the axes that this leaves out" if stage.reduction else "overwrites its result"
        types = ", ".join(dict.fromkeys(r.dtype.name for r in reads(value)))
        mend = f"describe an instruction of kind compute that {form}, from {types or 'numbers'}"
        mend += " (`autosched match --explain` says how near others are)"
        if isinstance(value, Literal | Scalar) and not stage.reduction:
            of = value.dtype.name
            mend = f"describe an instruction of kind compute that fills: `c[i] = a[0]`, with a: {of}[1] and {of} c"
        yield self.lacks(stage, said + self.takes(stage), mend)

    def takes(self, stage: Stage) -> str:
        """Which operand of an instruction a stage is computed for, where the program does not have it."""
        if stage.assign.tensor in self.given.tensors:
            return ""
        nests = (t.nest for t in self.plan.tensor_parts if t.nest.intrinsic.isa == self.plan.target.isa)
        uses = ((n, o) for n in nests for o, r in n.mapping.operands.items() if r.tensor == stage.assign.tensor)
        return next((f", which {n.intrinsic.name} takes as {o}" for n, o in uses), "")

    def of_nest(self, part: TensorPart) -> Iterator[Missing]:
        plan = self.plan
        nest, target, units = part.nest, plan.target, plan.units
        stage, out = nest.stage, nest.intrinsic.accumulator
        if nest.intrinsic.isa != target.isa:  # portable code
            yield from self.of_loops(stage, held=False)
            return
        for i in (nest.intrinsic, *(f.proved.intrinsic for f in part.epilogue if f.proved is not None)):
            for state in i.configured:
                if units.setting(target, state) is None:
                    said = f"{i.name} computes with {state}, which nothing sets before"
                    mend = f"describe an instruction of kind: config with `sets: [{state}]`"
                    yield self.lacks(stage, said, mend, way=True)
        yield from self.unheld(stage, [*(("inputs",) if nest.intrinsic.inputs else ()), "accumulators"])
        for operand in nest.intrinsic.inputs:
            if units.copying(target, "memory", "inputs", operand.dtype, operand.dtype) is None:
                taken = f", where {nest.intrinsic.name} takes {operand.name}"
                yield self.no_way(stage, "memory", "inputs", operand.dtype, operand.dtype, taken)
        if stage.init is None and stage.assign.op != "=":  # sums go on from what memory has
            tensor = plan.program.tensors[stage.assign.tensor]
            if units.copying(target, "memory", "accumulators", tensor.dtype, out.dtype) is None:
                taken = f", and the sums of {tensor.name} go on from what is there"
                yield self.no_way(stage, "memory", "accumulators", tensor.dtype, out.dtype, taken)
        if stage.init is not None and not isinstance(stage.init, Literal):
            if not isinstance(stage.init, Read):
                said = f"no instruction computes {self.text(stage.init, stage)}, which its sums begin with"
                yield self.lacks(stage, said, "write the sums to a tensor that begins with 0")
            elif units.copying(target, "memory", "accumulators", stage.init.dtype, out.dtype) is None:
                yield self.no_way(stage, "memory", "accumulators", stage.init.dtype, out.dtype)
        made, lost = {stage.assign.tensor}, set[str]()
        for fused in part.epilogue:
            for found in self.finishing(fused, out.dtype):
                lost.add(fused.stage.name)
                yield found
            for read in reads(fused.stage.assign.value):
                to: tuple[Place, ...] = ("inputs", "accumulators")
                ways = (units.copying(target, "memory", end, read.dtype, read.dtype) for end in to)
                if read.tensor not in made and all(way is None for way in ways):
                    taken = f", for {self.text(read, fused.stage)}"
                    yield self.no_way(fused.stage, "memory", "inputs", read.dtype, read.dtype, taken)
            made.add(fused.stage.assign.tensor)
        for written in [*([stage] if part.keep else []), *(f.stage for f in part.epilogue)]:
            tensor = plan.program.tensors[written.assign.tensor]
            if tensor.name in units.passing:
                continue  # it stays on the chip
            if written.name not in lost and units.leaving(target, tensor.name, out.dtype, tensor.dtype) is None:
                finished = units.finishing.get(tensor.name)
                start = out.dtype if finished is None else finished.accumulator.dtype
                yield self.no_way(written, "accumulators", "memory", start, tensor.dtype)

    def unheld(self, stage: Stage, places: Sequence[Place]) -> Iterator[Missing]:
        """Places of the chip that no memory of it holds."""
        target = self.plan.target
        for place in places:
            if place not in {what for m in target.memories for what in m.holds}:
                said = f"no memory of {target.name} holds {place}"
                mend = f"state `holds: [{place}]` of the memory of {target.name} that does"
                yield self.lacks(stage, said, mend, way=True)

    def finishing(self, fused: Fused, sums: DType) -> Iterator[Missing]:
        """A stage on finished sums: an instruction does it, or rates, or the copy that takes it out."""
        value = fused.stage.assign.value
        if fused.proved is None and not (isinstance(value, Read) and value.dtype == sums):
            yield from self.of_loops(fused.stage, held=False)

    def no_way(
        self, stage: Stage, start: Place, end: Place, read: DType, written: DType, taken: str = ""
    ) -> Missing:
        target = self.plan.target
        changed = "" if read == written else f" as {written.name}"
        said = f"nothing copies {read.name} from {start} to {end}{changed}"
        holds = {"inputs", "accumulators"} - {what for m in target.memories for what in m.holds}
        mend = f"describe one of kind: copy with `moves: {{from: {start}, to: {end}}}` that reads {read.name}"
        mend += "" if read == written else f" and writes {written.name}"
        lacking = {start, end} & holds
        mend += f"; no memory of {target.name} holds {' or '.join(sorted(lacking))}" if lacking else ""
        return self.lacks(stage, said, mend, way=True, taken=taken)


def _chosen_by(part: Value, value: Value) -> Select | None:
    """The choice in a value that a part is the condition of, where it only asks a mask that the program has: an
    instruction that writes such a mask would copy it."""
    match part:
        case Comparison("!=", Read(dtype=DType(name="b1")), Literal(0)):
            return next((v for v in walk(value) if isinstance(v, Select) and v.condition == part), None)
    return None


def _operation(value: Value) -> str:
    """A value's own operation, where what it is computed from is more than elements: `exp(f32) in `."""
    parts = children(value)
    if all(isinstance(part, Read) or not children(part) for part in parts):
        return ""
    of = [p if isinstance(p, Literal) else Scalar(p.dtype.name, p.dtype) for p in parts]
    return f"{print_value(with_children(value, of))} in "
